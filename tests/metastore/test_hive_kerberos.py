"""Kerberos: a real KDC, and a real Hive Metastore that asks for tickets."""

import time
from importlib.util import find_spec
from types import SimpleNamespace

import hive_metastore as servers
import kdc
import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")
if find_spec("kerberos") is None:
    pytest.skip("pip install 'acidsql[hive-kerberos]'", allow_module_level=True)

from acidsql.errors import MetastoreError
from acidsql.metastore.hive.wire.address import Address
from acidsql.metastore.hive.wire.client import Client
from acidsql.terminal.hive_check import Fact, check

CORE_SITE = """<configuration>
<property><name>hadoop.security.authentication</name><value>kerberos</value></property>
<property><name>hadoop.rpc.protection</name><value>{protection}</value></property>
</configuration>"""


class SecureServer(servers.HiveMetastoreServer):
    """A server whose Hadoop finds ``core-site.xml`` in the directory ``conf``."""

    def classpath(self):
        return [self.work / "conf", *super().classpath()]


@pytest.fixture(scope="module")
def realm(tmp_path_factory):
    """A KDC, the ticket of ann, and a server that signs and encrypts all that it sends."""
    for reason in (kdc.missing(), servers.missing()):
        if reason is not None:
            pytest.skip(reason)
    work = tmp_path_factory.mktemp("kdc")
    running = kdc.Kdc(work)
    server = None
    try:
        ann = running.keytab("ann")
        running.ticket("ann", ann, work / "ticket")
        server = secure(running, tmp_path_factory.mktemp("hms"), "privacy")
        yield SimpleNamespace(
            kdc=running, work=work, keytab=ann, server=server,
            url=f"thrift://localhost:{server.port}/?auth=kerberos",
        )  # fmt: skip
    finally:
        if server is not None:
            server.close()
        running.stop()


def secure(running, work, protection):
    (work / "conf").mkdir()
    (work / "conf" / "core-site.xml").write_text(CORE_SITE.format(protection=protection))
    settings = {
        "metastore.sasl.enabled": "true",
        "metastore.kerberos.keytab.file": str(running.keytab("hive/localhost", work.name)),
        "metastore.kerberos.principal": f"hive/_HOST@{kdc.REALM}",
    }
    options = [f"-Djava.security.krb5.conf={running.conf}"]
    return SecureServer(work, settings=settings, options=options)


@pytest.fixture
def use(realm, monkeypatch):
    """Let this process use a cache of tickets."""
    monkeypatch.setenv("KRB5_CONFIG", str(realm.kdc.conf))

    def use(name):
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{realm.work / name}")
        return realm.work / name

    use("ticket")
    return use


def asked(url):
    """What a new connection is told."""
    client = Client(Address.parse(url))
    try:
        assert client.call("getVersion") == "4.0.1"
        return client.user, client.protection
    finally:
        client.close()


def refused(url):
    with pytest.raises(MetastoreError) as caught:
        asked(url)
    return caught.value.message


def test_a_ticket_signs_in_its_user_and_kerberos_encrypts(realm, use):
    assert asked(realm.url) == ("ann", "encrypted")
    assert asked(f"{realm.url}&user=ann@{kdc.REALM}&service=hive/localhost")[0] == "ann"


def test_large_messages_are_encrypted_as_a_whole(realm, use):
    client = Client(Address.parse(realm.url))
    large = "x" * 1_000_000  # pure-sasl says that it takes 64 KiB at once
    assert client.call("get_config_value", "hive.no.such.setting", large) == large
    client.close()


def test_the_check_shows_who_is_signed_in_and_how_it_is_secured(realm, use):
    (found,) = [
        one for one in check(realm.url) if isinstance(one, Fact) and one.about == "security"
    ]
    assert found.message == "auth=kerberos, no TLS, encrypted by Kerberos, user ann"


def test_without_a_ticket_the_error_says_where_it_was_looked_for(realm, use):
    cache = use("none")
    said = refused(realm.url)
    assert str(cache) in said and "run kinit" in said and "KRB5CCNAME" in said


def test_a_service_that_the_kdc_does_not_know_is_named(realm, use):
    said = refused(f"{realm.url}&service=hdfs")
    assert f"hdfs/localhost@{kdc.REALM}" in said and "metastore.kerberos.principal" in said
    said = refused(f"{realm.url}&service=hive/elsewhere")
    assert f"hive/elsewhere@{kdc.REALM}" in said


def test_a_ticket_of_another_user_than_the_urls_is_not_used(realm, use):
    assert f"bob@{kdc.REALM}" in refused(f"{realm.url}&user=bob@{kdc.REALM}")


def test_a_server_that_asks_for_tickets_refuses_others(realm, use, monkeypatch):
    monkeypatch.setenv("ACIDSQL_METASTORE_PASSWORD", "open sesame")
    plain = realm.url.replace("kerberos", "plain")
    assert "does not know auth=plain" in refused(plain)
    assert "auth=" in refused(realm.url.partition("?")[0])


def test_a_session_outlives_its_ticket_and_goes_on_with_a_new_one(realm, use):
    cache = use("short")
    realm.kdc.ticket("ann", realm.keytab, cache, "1s")
    while realm.kdc.is_valid(cache):
        time.sleep(0.05)  # it is the KDC's clock that we wait for
    client = Client(Address.parse(realm.url))
    with pytest.raises(MetastoreError, match="ticket has expired: run kinit"):
        client.call("getVersion")
    realm.kdc.ticket("ann", realm.keytab, cache)
    assert client.call("getVersion") == "4.0.1"
    cache.unlink()
    assert client.call("getVersion") == "4.0.1"  # an open connection needs no ticket
    client.close()


def test_a_server_whose_keytab_is_old_refuses_the_ticket(realm, use):
    cache = use("newer")
    realm.kdc.keytab("hive/localhost", "unknown")  # a new key; the server has the old one
    realm.kdc.ticket("ann", realm.keytab, cache)
    try:
        assert "has its keytab the newest key" in refused(realm.url)
    finally:
        use("ticket")
    assert asked(realm.url)[0] == "ann"  # the old key is still in the old ticket


def test_a_kdc_that_does_not_run_is_named(realm, use, tmp_path, monkeypatch):
    silent = tmp_path / "krb5.conf"
    text = realm.kdc.conf.read_text()
    silent.write_text(text.replace(f"{kdc.REALM} = {{", "OTHER = {"))
    monkeypatch.setenv("KRB5_CONFIG", str(silent))
    said = refused(f"{realm.url}&service=hdfs")
    assert "KDC" in said and "krb5.conf" in said


@pytest.mark.slow
@pytest.mark.parametrize(("protection", "words"), [("authentication", ""), ("integrity", "signed")])
def test_other_protections(realm, use, tmp_path_factory, protection, words):
    server = secure(realm.kdc, tmp_path_factory.mktemp("hms"), protection)
    cache = use("other")
    realm.kdc.ticket("ann", realm.keytab, cache)
    try:
        assert asked(f"thrift://localhost:{server.port}/?auth=kerberos") == ("ann", words)
    finally:
        server.close()
