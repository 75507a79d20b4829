"""TLS: a server whose certificate is right, and servers whose certificates are wrong."""

import ssl
from types import SimpleNamespace

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from certificates import certificate
from fake_hive import FakeHive

from acidsql.errors import MetastoreError, SettingError
from acidsql.metastore.hive.wire.address import Address
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.idl import hive


@pytest.fixture
def serve(tmp_path):
    """Start a server with a certificate."""
    opened = []

    def start(change=lambda _: None, **options):
        made = certificate(tmp_path, **options)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.chain)
        change(context)
        server = FakeHive(lambda *_: "4.0.1", context)

        def asks(options=f"&cafile={made.path}"):
            client = Client(Address.parse(f"{server.url}/?tls=1{options}"), sleep=lambda _: None)
            opened.append(client)
            return client

        opened.append(server)
        return SimpleNamespace(server=server, asks=asks)

    yield start
    for one in reversed(opened):
        one.close()


def refused(client):
    with pytest.raises(MetastoreError) as caught:
        client.call("getVersion")
    return caught.value.message


def test_a_certificate_that_is_known_is_trusted(serve):
    assert serve().asks().call("getVersion") == "4.0.1"


def test_a_connection_with_tls_that_the_server_closed_while_idle_is_not_used(serve):
    started = serve()
    client = started.asks()
    client.call("getVersion")
    started.server.hang_up()
    client.call("commit_txn", hive.CommitTxnRequest(txnid=7))
    assert started.server.calls == ["getVersion", "commit_txn"]


def test_a_certificate_that_nobody_knows_is_refused(serve, tmp_path_factory):
    started = serve()
    said = refused(started.asks(""))
    assert "signed by none of the authorities of this machine" in said and "cafile=" in said
    other = certificate(tmp_path_factory.mktemp("other")).path
    assert f"none of the authorities in '{other}'" in refused(started.asks(f"&cafile={other}"))
    assert started.server.calls == []


def test_a_certificate_for_another_name_is_refused(serve):
    assert "certificate is not for '127.0.0.1'" in refused(serve(host="hms.example.com").asks())


def test_a_certificate_that_has_expired_is_refused(serve):
    said = refused(serve(days=-1).asks())
    assert "expired" in said and "needs a new certificate" in said


def asks_for_a_certificate(context):
    context.verify_mode = ssl.CERT_REQUIRED


def test_a_server_that_refuses_us_in_tls_is_not_said_to_be_without_tls(serve):
    """It sends an alert and hangs up; whether the alert is read before depends on the time."""
    assert "does not answer in TLS" not in refused(serve(asks_for_a_certificate).asks())


def test_certificates_that_cannot_be_read_are_named(tmp_path):
    for name, text in (("none.pem", None), ("rubbish.pem", "rubbish")):
        if text is not None:
            (tmp_path / name).write_text(text)
        client = Client(Address.parse(f"thrift://127.0.0.1:1/?tls=1&cafile={tmp_path / name}"))
        with pytest.raises(SettingError, match=f"{name}' cannot be read"):
            client.call("getVersion")
