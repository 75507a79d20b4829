"""The client of a Hive Metastore, against a real one."""

import hive_metastore as servers
import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from certificates import certificate

from acidsql.errors import MetastoreError
from acidsql.metastore.hive.wire.address import Address
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.idl import hive


def asked(url):
    """Who answers there."""
    client = Client(Address.parse(url))
    try:
        request = hive.OpenTxnRequest(num_txns=1, user="ann", hostname="h")
        found = client.call("open_txns", request)
        client.call("abort_txn", hive.AbortTxnRequest(txnid=found.txn_ids[0]))
        return client.call("getVersion")
    finally:
        client.close()


@pytest.fixture
def serve(tmp_path_factory):
    """Start a server of this test's own."""
    if servers.missing() is not None:
        pytest.skip(servers.missing())
    started = []

    def start(**settings):
        work = tmp_path_factory.mktemp("hms")
        started.append(servers.HiveMetastoreServer(work, settings=settings))
        return started[-1]

    yield start
    for server in started:
        server.close()


def test_a_real_metastore_answers(hive_metastore):
    assert asked(hive_metastore.url) == "4.0.1"


@pytest.mark.slow
def test_a_server_with_framed_transport_and_compact_protocol(serve):
    server = serve(**{
        "metastore.thrift.framed.transport.enabled": "true",
        "metastore.thrift.compact.protocol.enabled": "true",
    })  # fmt: skip
    assert asked(f"{server.url}/?framed=1&compact=1") == "4.0.1"


@pytest.mark.slow
def test_a_server_that_asks_for_a_password_and_encryption(serve, tmp_path, monkeypatch):
    """TLS with a certificate that is checked, and SASL PLAIN inside of it."""
    made = certificate(tmp_path)
    server = serve(**{
        "metastore.use.SSL": "true", "metastore.keystore.path": str(made.keystore),
        "metastore.keystore.password": "secret", "metastore.keystore.type": "PKCS12",
        "metastore.authentication": "CONFIG",
        "metastore.authentication.config.username": "ann",
        "metastore.authentication.config.password": "sesame",
    })  # fmt: skip
    url = f"{server.url}/?tls=1&cafile={made.path}&auth=plain&user="
    monkeypatch.setenv("ACIDSQL_METASTORE_PASSWORD", "sesame")
    assert asked(f"{url}ann") == "4.0.1"
    with pytest.raises(MetastoreError, match="refuses the user 'bob' or the password in") as caught:
        asked(f"{url}bob")
    assert "sesame" not in str(caught.value)
    monkeypatch.setenv("ACIDSQL_METASTORE_PASSWORD", "open sesame")
    with pytest.raises(MetastoreError, match="password in ACIDSQL_METASTORE_PASSWORD") as caught:
        asked(f"{url}ann")
    assert "sesame" not in str(caught.value)
    with pytest.raises(MetastoreError, match="certificate"):
        asked(f"{server.url}/?tls=1&auth=plain&user=ann")
    with pytest.raises(MetastoreError, match="tls="):
        asked(server.url)
