"""A Hive Metastore over HTTP: with a user's name, and with a token."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import hive_metastore as servers
import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from certificates import Issuer, certificate

from acidsql.errors import MetastoreError, SettingError
from acidsql.metastore.hive.wire.address import Address
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.idl import hive
from acidsql.terminal.hive_check import Fact, check

HTTP = {"metastore.server.thrift.transport.mode": "http"}


@contextmanager
def web(status, text):
    """A web server that gives one answer to all; its port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_GET  # noqa: N815 - the library's name

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


@contextmanager
def running(work, settings):
    if servers.missing() is not None:
        pytest.skip(servers.missing())
    server = servers.HiveMetastoreServer(work, settings=HTTP | settings)
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        server.close()


@contextmanager
def connected(url):
    client = Client(Address.parse(url), sleep=lambda _: None)
    try:
        yield client
    finally:
        client.close()


def refused(url):
    with connected(url) as client, pytest.raises(MetastoreError) as caught:
        client.call("getVersion")
    return caught.value.message


def owner_of_a_new_database(client, name):
    """Who the server thinks we are."""
    client.call("create_database", hive.Database(name=name))
    request = hive.GetDatabaseRequest(name=name, catalogName="hive")
    return client.call("get_database_req", request).ownerName


# ── a web server that is none ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "options", "advice"),
    [
        (401, "", "asks for a token: say auth=jwt, and set HMS_JWT"),
        (401, "&auth=jwt", "refuses the token in HMS_JWT"),
        (404, "", "metastore.server.thrift.http.path=metastore"),
        (503, "", "HTTP status 503"),
        (200, "", "Is the address right"),
    ],
)
def test_an_answer_that_is_none_of_a_metastore_is_named_and_not_shown(
    monkeypatch, status, options, advice
):
    monkeypatch.setenv("HMS_JWT", "open.sesame")
    with web(status, "<html>sesame</html>") as port:
        said = refused(f"thrift+http://127.0.0.1:{port}/?user=ann{options}")
    assert advice in said and "sesame" not in said


@pytest.mark.parametrize("token", ["open sesame", "open\nsesame", "öffne"])
def test_what_is_no_token_is_refused_without_showing_it(monkeypatch, token):
    """Python's HTTP would show it: ``Invalid header value b'Bearer …'``."""
    monkeypatch.setenv("HMS_JWT", token)
    client = Client(Address.parse("thrift+http://127.0.0.1:1/?auth=jwt"))
    with pytest.raises(SettingError, match="HMS_JWT is no token") as caught:
        client.call("getVersion")
    assert "sesame" not in str(caught.value) and "ffne" not in str(caught.value)


# ── real servers ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_server_that_speaks_http_believes_the_users_name(tmp_path, tmp_path_factory):
    with running(tmp_path_factory.mktemp("hms"), {}) as place:
        # The first server does not answer; as the order is random, a few clients are tried.
        for _ in range(4):
            with connected(f"thrift+http://127.0.0.1:1,{place}/metastore?user=bob") as client:
                assert client.call("getVersion") == "4.0.1"
        with connected(f"thrift+http://{place}?user=bob") as client:
            assert owner_of_a_new_database(client, "of_bob") == "bob"
        assert "http.path=elsewhere" in refused(f"thrift+http://{place}/elsewhere")
        assert "auth=, tls=" in refused(f"thrift://{place}")


@pytest.mark.slow
def test_a_server_that_asks_for_tokens_over_https(tmp_path, tmp_path_factory, monkeypatch):
    made, issuer = certificate(tmp_path), Issuer()
    with web(200, issuer.keys()) as port:
        settings = {
            "metastore.authentication": "JWT",
            "metastore.authentication.jwt.jwks.url": f"http://127.0.0.1:{port}/jwks",
            "metastore.use.SSL": "true", "metastore.keystore.path": str(made.keystore),
            "metastore.keystore.password": "secret", "metastore.keystore.type": "PKCS12",
            "metastore.keymanagerfactory.algorithm": "PKIX",
        }  # fmt: skip
        with running(tmp_path_factory.mktemp("hms"), settings) as place:
            url = f"thrift+https://{place}/?cafile={made.path}"
            monkeypatch.setenv("HMS_JWT", issuer.token("ann") + "\n")
            with connected(f"{url}&auth=jwt") as client:
                assert owner_of_a_new_database(client, "of_ann") == "ann"
                expired = issuer.token("ann", days=-2)
                monkeypatch.setenv("HMS_JWT", expired)
                with pytest.raises(MetastoreError, match="it may have expired") as caught:
                    client.call("get_databases", "*")
                assert expired not in str(caught.value)
                monkeypatch.setenv("HMS_JWT", issuer.token("ann"))
                assert "of_ann" in client.call("get_databases", "*")
            found = [one for one in check(f"{url}&auth=jwt") if isinstance(one, Fact)]
            (security,) = [one for one in found if one.about == "security"]
            assert security.message == "auth=jwt, TLS over HTTP, the token's user"
            monkeypatch.setenv("HMS_JWT", Issuer().token("ann"))
            assert "refuses the token" in refused(f"{url}&auth=jwt")
            assert "say auth=jwt" in refused(url)
            assert "cafile=" in refused(f"thrift+https://{place}/?auth=jwt")
