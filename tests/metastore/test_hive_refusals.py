"""Programs that are no Hive Metastore, servers that lack something, and secrets."""

import contextlib
import logging
import socket
import threading
from importlib.util import find_spec

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from fake_hive import FakeHive

from acidsql.errors import CatalogError, MetastoreError, SettingError
from acidsql.metastore.hive.store import HiveMetastore
from acidsql.metastore.hive.wire import connection
from acidsql.metastore.hive.wire.address import Address
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.idl import hive

has_sasl = pytest.mark.skipif(find_spec("puresasl") is None, reason="pip install pure-sasl")
PLAIN = pytest.param("/?auth=plain&user=ann", marks=has_sasl)


@pytest.fixture
def listen(monkeypatch):
    """Start a program that says something to each client, and reads nothing."""
    monkeypatch.setattr(connection, "OPEN_TIMEOUT_MS", 300)
    listener = socket.create_server(("127.0.0.1", 0))
    kept = []

    def accept(said):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                kept.append(peer)
                peer.sendall(said)

    def start(said):
        threading.Thread(target=accept, args=(said,), daemon=True).start()
        return f"thrift://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    with contextlib.suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for peer in kept:
        peer.close()


@pytest.mark.parametrize(
    "said",
    [b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 400 Bad\r\n\r\n", b"\0" * 64, b"\x80" * 64],
    ids=["nothing", "ssh", "http", "zeroes", "noise"],
)
@pytest.mark.parametrize("options", ["", "/?framed=1", "/?compact=1", PLAIN])
def test_a_port_of_another_program_is_an_error_that_says_what_to_check(
    listen, monkeypatch, said, options
):
    monkeypatch.setenv("ACIDSQL_METASTORE_PASSWORD", "open sesame")
    with pytest.raises(MetastoreError, match="Is the address right.*auth=, tls=") as caught:
        HiveMetastore(listen(said) + options, list_names=lambda _: [])
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH_9.6\r\n", b"\0" * 64])
def test_a_server_without_tls_is_an_error_that_says_so(listen, said):
    with pytest.raises(MetastoreError, match="does not answer in TLS: leave out tls=1"):
        HiveMetastore(listen(said) + "/?tls=1", list_names=lambda _: [])


def test_nobody_at_the_port_is_an_error_that_names_it():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(MetastoreError, match=rf"127\.0\.0\.1:{port}.*is the server running"):
        HiveMetastore(f"thrift://127.0.0.1:{port}", list_names=lambda _: [])


def test_t20_a_server_without_hives_formats_is_told_of_the_jar_that_it_lacks():
    said = "The table must be stored using an ACID compliant format (such as ORC): d.t"
    server = FakeHive(lambda *_: hive.MetaException(message=said))
    client = Client(Address.parse(server.url))
    with pytest.raises(CatalogError, match="class path of the metastore.*hive-exec"):
        client.call("create_table_req", hive.CreateTableRequest(table=hive.Table()))
    client.close()
    server.close()


def test_no_message_log_or_text_of_an_object_has_the_password(monkeypatch, caplog):
    monkeypatch.setenv("ACIDSQL_METASTORE_PASSWORD", "open sesame")
    monkeypatch.setenv("HMS_JWT", "open sesame")
    caplog.set_level(logging.DEBUG)
    for url in ("thrift://127.0.0.1:1/?auth=plain&user=ann", "thrift+http://127.0.0.1:1/?auth=jwt"):
        client = Client(Address.parse(url))
        with pytest.raises((MetastoreError, SettingError)) as caught:  # there may be no pure-sasl
            client.call("getVersion")
        seen = [caught.value, client, client.address, vars(client), vars(caught.value)]
        assert "sesame" not in " ".join(map(repr, seen)) + str(caught.value)
        client.close()
    assert "sesame" not in caplog.text
