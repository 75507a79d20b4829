"""What a session asks a server before it uses it, and how it refuses a server."""

import sys

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from fake_hive import FAIL, UNKNOWN, FakeHive

from acidsql.acid.table import TableName
from acidsql.api.opening import open_hive
from acidsql.errors import MetastoreError, NoSuchTxnError, SettingError
from acidsql.metastore.hive.store import HiveMetastore
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.interface import TxnType

NEWEST = hive.CurrentNotificationEventId(eventId=7)
NOTHING_OPEN = hive.GetOpenTxnsResponse(txn_high_water_mark=0, open_txns=[], abortedBits=b"")
MODERN = {
    "getVersion": "4.0.1",
    "get_open_txns_req": NOTHING_OPEN,
    "metastore.txn.timeout": "90s",
    "metastore.warehouse.dir": "file:///wh/",
    "hive.exec.default.partition.name": "__HIVE_DEFAULT_PARTITION__",
    "hive.metastore.dml.events": "false",
    "metastore.transactional.event.listeners": "",
    "metastore.rawstore.impl": "org.apache.hadoop.hive.metastore.ObjectStore",
    "metastore.txn.use.minhistorywriteid": "false",
    "metastore.txn.use.minhistorylevel": "false",
}
T = TableName("d", "t")


@pytest.fixture
def opened():
    servers = []

    def start(**answers):
        known = {**MODERN, **answers}

        def answer(name, arguments):
            found = known[arguments.name if name == "get_config_value" else name]
            return found(arguments) if callable(found) else found

        servers.append(FakeHive(answer))
        return HiveMetastore(servers[-1].url, list_names=lambda _: [])

    yield start
    for server in servers:
        server.close()


def test_a_server_tells_its_version_its_time_out_and_its_warehouse(opened):
    store = opened()
    assert (store.features.version, store.warehouse) == ("4.0.1", "/wh")
    assert store.abilities.txn_timeout_ms == 90_000
    store.close()


def test_a_vendors_build_is_known_by_its_calls_and_not_by_its_number(opened):
    opened(getVersion="3.1.3000").close()


def test_a_server_without_hive_4s_calls_gets_those_of_hive_3(opened):
    checks = hive.CheckConstraintsResponse(checkConstraints=[])
    store = opened(getVersion="4.9", get_open_txns_req=UNKNOWN, get_check_constraints=checks)
    assert store.features.is_hive3
    assert not store.abilities.can_work and store.abilities.read_by_hive3
    store.close()


def test_a_server_older_than_hive_3_1_is_refused_by_its_version(opened):
    with pytest.raises(SettingError, match=r"calls itself 2\.3.*Hive 3\.1"):
        opened(getVersion="2.3", get_open_txns_req=UNKNOWN, get_check_constraints=UNKNOWN)


def test_a_server_that_fails_once_is_not_taken_for_an_older_one(opened):
    with pytest.raises(MetastoreError, match="get_open_txns_req"):
        opened(get_open_txns_req=FAIL)


def test_a_server_without_a_warehouse_is_refused(opened):
    with pytest.raises(MetastoreError, match="metastore.warehouse.dir"):
        opened(**{"metastore.warehouse.dir": ""})


@pytest.mark.parametrize(
    ("text", "wanted"), [("300", 300_000), ("5min", 300_000), ("100ms", 100), ("odd", 300_000)]
)
def test_a_time_out_is_read_in_hives_units(opened, text, wanted):
    store = opened(**{"metastore.txn.timeout": text})
    assert store.abilities.txn_timeout_ms == wanted
    store.close()


@pytest.mark.parametrize(
    ("listeners", "answer", "known"),
    [
        ("org.apache.hive.hcatalog.listener.DbNotificationListener", NEWEST, True),
        ("other.Listener,org.apache.hive.hcatalog.listener.DbNotificationListener", NEWEST, True),
        ("org.apache.hive.hcatalog.listener.DbNotificationListener", FAIL, False),  # not this user
        ("other.Listener", NEWEST, False),
    ],
)
def test_changes_of_the_catalog_are_known_by_a_log_that_may_be_read(
    opened, listeners, answer, known
):
    store = opened(**{
        "metastore.transactional.event.listeners": listeners,
        "get_current_notificationEventId": answer,
    })  # fmt: skip
    assert store.abilities.remembers_changes is known
    store.close()


def test_a_server_that_shows_properties_from_its_memory_keeps_no_streams(opened):
    cache = "org.apache.hadoop.hive.metastore.cache.CachedStore"
    store = opened(**{"metastore.rawstore.impl": cache})
    assert not store.abilities.keeps_streams
    store.close()
    store = opened()
    assert store.abilities.keeps_streams
    store.close()


def test_readers_register_what_they_read_where_the_cleaner_asks_for_it(opened):
    registered = []

    def register(arguments):
        registered.append((arguments.txnId, arguments.writeIds))

    store = opened(**{
        "metastore.txn.use.minhistorywriteid": "true",
        "add_write_ids_to_min_history": register,
        "open_txns": hive.OpenTxnsResponse(txn_ids=[7]),
        "heartbeat": None,
    })  # fmt: skip
    assert store.abilities.leases_keep_files
    lease = store.open_txn(user="ann", host="h1", txn_type=TxnType.READ_ONLY)
    registered.clear()
    for _ in range(2):
        store.keep_files(lease, [T, TableName("d", "u")])
    assert registered == [(7, {"d.t": 1, "d.u": 1})]  # the second call has nothing new
    store.close()


def test_a_lease_that_has_ended_registers_nothing(opened):
    store = opened(**{
        "metastore.txn.use.minhistorywriteid": "true",
        "add_write_ids_to_min_history": None,
        "open_txns": hive.OpenTxnsResponse(txn_ids=[7]),
        "heartbeat": hive.NoSuchTxnException(message="No such transaction txnid:7"),
    })  # fmt: skip
    lease = store.open_txn(user="ann", host="h1", txn_type=TxnType.READ_ONLY)
    with pytest.raises(NoSuchTxnError):
        store.keep_files(lease, [T])
    store.close()


def test_leases_keep_no_files_if_the_cleaner_asks_for_what_nobody_can_register(opened):
    store = opened(**{
        "metastore.txn.use.minhistorywriteid": "true",
        "add_write_ids_to_min_history": UNKNOWN,
    })  # fmt: skip
    assert not store.abilities.leases_keep_files
    store.close()


@pytest.mark.parametrize(
    ("version", "by_write_id", "level", "is_refused"),
    [
        ("4.0.1", "true", "true", True),
        ("4.1.0", "true", "TRUE", True),
        ("4.0.0-vendor-7", "true", FAIL, True),
        ("unknown", "true", "true", True),
        ("4.0.1", "true", "false", False),
        ("4.0.1", "false", "true", False),
        ("4.2.0", "true", "true", False),
        ("4.10", "true", "true", False),
        ("5.0", "true", "true", False),
    ],
)
def test_a_server_that_forgets_the_write_ids_of_open_transactions_is_refused(
    opened, version, by_write_id, level, is_refused
):
    answers = {
        "getVersion": version,
        "metastore.txn.use.minhistorywriteid": by_write_id,
        "metastore.txn.use.minhistorylevel": level,
        "add_write_ids_to_min_history": None,
    }
    if not is_refused:
        opened(**answers).close()
        return
    with pytest.raises(SettingError, match=r"minhistorylevel to false") as refused:
        opened(**answers)
    assert version in refused.value.message


def test_nothing_is_registered_where_the_cleaner_waits_for_open_transactions(opened):
    store = opened(open_txns=hive.OpenTxnsResponse(txn_ids=[7]))
    assert store.abilities.leases_keep_files
    store.keep_files(store.open_txn(user="ann", host="h1", txn_type=TxnType.READ_ONLY), [T])
    store.close()


def test_without_thrift_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "acidsql.metastore.hive.store")
    for name in [name for name in sys.modules if name.startswith("acidsql.metastore.hive.wire.c")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "thrift.transport.TSocket", None)
    with pytest.raises(SettingError, match=r"pip install 'acidsql\[hive\]'"):
        open_hive("thrift://127.0.0.1:1", None)


def test_a_warehouse_beside_a_hive_metastore_is_refused():
    with pytest.raises(SettingError, match="warehouse"):
        open_hive("thrift://127.0.0.1:1", "/wh")
