"""The client of a Hive Metastore, against servers that misbehave."""

import os
import socket
import threading
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from fake_hive import CLOSE, FAIL, HALF, RUBBISH, FakeHive

from acidsql.acid.table import TableName
from acidsql.errors import (
    CatalogError,
    MetastoreError,
    NoSuchTxnError,
    SettingError,
    TxnAbortedError,
)
from acidsql.metastore.hive import commit_call
from acidsql.metastore.hive.locking import locks as locks_module
from acidsql.metastore.hive.parts import Parts
from acidsql.metastore.hive.wire import client as client_module
from acidsql.metastore.hive.wire.address import Address, is_address
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.connection import Connection
from acidsql.metastore.hive.wire.idl import hive, methods
from acidsql.metastore.hive.wire.own_txns import OwnTxn
from acidsql.metastore.hive.wire.server import Server
from acidsql.metastore.interface import RowChange

TXNS = hive.OpenTxnsResponse(txn_ids=[7])
OPEN = hive.OpenTxnRequest(num_txns=1, user="ann", hostname="h")
COMMIT = hive.CommitTxnRequest(txnid=7)
T = TableName("d", "t")
has_sasl = pytest.mark.skipif(find_spec("puresasl") is None, reason="pip install pure-sasl")


@pytest.fixture
def serve():
    servers, clients = [], []

    def start(answer, *others, url="", **kind):
        servers.append(FakeHive(answer if callable(answer) else lambda *_: answer, **kind))
        hosts = ",".join(f"127.0.0.1:{port}" for port in [servers[-1].port, *others])
        clients.append(Client(Address.parse(f"thrift://{hosts}/{url}"), sleep=lambda _: None))
        return servers[-1], clients[-1]

    yield start
    for one in [*clients, *servers]:
        one.close()


def in_turn(*answers):
    left = list(answers)
    return lambda *_: left.pop(0)


def raises(error):
    def fail(*_):
        raise error

    return fail


# ── addresses ────────────────────────────────────────────────────────────────────────────────


def test_an_address_names_servers_and_options():
    found = Address.parse("thrift://h1:9083,[::1]:9084,h3/?auth=plain&user=ann&tls=1&catalog=c")
    assert found.hosts == (("h1", 9083), ("::1", 9084), ("h3", 9083))
    assert str(found) == "thrift://h1:9083,[::1]:9084,h3:9083"
    assert (found.auth, found.user, found.tls, found.catalog) == ("plain", "ann", True, "c")
    assert Address.parse("thrift://h/?timeout=90s").timeout_s == 90 and found.timeout_s == 600
    over_http = Address.parse("thrift+https://h:9001/hms")
    assert (over_http.path, over_http.tls) == ("hms", True)
    assert is_address("thrift://h") and not is_address("sqlite:///f")


@pytest.mark.parametrize(
    "url",
    [
        "thrift://", "thrift://h:99999", "thrift://h:x", "thrift://h/?auth=magic",
        "thrift://h/?tls=perhaps", "thrift://h/?fremad=1", "thrift://h/?auth=jwt",
        "thrift+http://h/?auth=plain", "thrift://ann:secret@h", "thrift://h/?password=secret",
        "thrift://h/?auth=token", "thrift://h/?auth=kerberos&service=hive/h@REALM",
        "thrift://h/?auth=kerberos&service=a/b/c", "thrift://h/?user=a%0Ab",
        "thrift://ann:[secret@h", "thrift://ann:secret：x@h", "thrift://ann:secret/x@h",
        "thrift://ann:secret?x@h", "thrift://ann:x?secret@h", "thrift://ann:secret#x@h",
        "thrift://ann:x#secret@h", "thrift://[::1", "thrift://[host]", "thrift://h:٣",
        "thrift://h/?timeout=0", "thrift://h/?timeout=5min", "thrift://h/?timeout=",
    ],
)  # fmt: skip
def test_a_bad_address_is_refused_without_showing_it(url):
    with pytest.raises(SettingError, match="metastore's URL") as caught:
        Address.parse(url)
    assert "secret" not in str(caught.value)


def test_a_password_comes_from_the_environment_alone(monkeypatch):
    address = Address.parse("thrift://h/?auth=plain&user=ann")
    monkeypatch.delenv("ACIDSQL_METASTORE_PASSWORD", raising=False)
    with pytest.raises(SettingError, match="ACIDSQL_METASTORE_PASSWORD"):
        address.secret()
    monkeypatch.setenv("ACIDSQL_METASTORE_PASSWORD", "open sesame")
    assert address.secret() == "open sesame"
    assert "sesame" not in f"{address} {address!r}"


# ── repeats ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("fault", [CLOSE, HALF, RUBBISH])
def test_a_read_is_repeated_after_a_lost_reply(serve, fault):
    server, client = serve(in_turn(fault, fault, "4.0.1"))
    assert client.call("getVersion") == "4.0.1"
    assert (server.calls, server.connections) == (["getVersion"] * 3, 3)


@pytest.mark.parametrize("fault", [CLOSE, HALF, RUBBISH])
def test_a_call_is_repeated_at_most_twice(serve, fault):
    server, client = serve(fault)
    with pytest.raises(MetastoreError, match="open_txns"):
        client.call("open_txns", OPEN)
    assert server.calls == ["open_txns"] * 3


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("commit_txn", [COMMIT]),
        ("lock", [hive.LockRequest(component=[], txnid=7, user="u", hostname="h")]),
        ("drop_database", ["d", True, False]),
        ("drop_table_req", [hive.DropTableRequest(dbName="d", tableName="t")]),
        ("create_table_req", [hive.CreateTableRequest(table=hive.Table())]),
    ],
)
@pytest.mark.parametrize("fault", [CLOSE, HALF])
def test_a_change_that_may_have_happened_is_not_repeated(serve, name, values, fault):
    server, client = serve(fault)
    with pytest.raises(MetastoreError, match=name):
        client.call(name, *values)
    assert server.calls == [name]


@pytest.mark.parametrize(
    ("option", "heartbeat", "others"), [("", 20_000, 600_000), ("/?timeout=5", 5_000, 5_000)]
)
def test_a_slow_server_is_waited_for_but_not_by_a_heartbeat(
    serve, monkeypatch, option, heartbeat, others
):
    """While a heartbeat waits for a server that hangs, its transaction times out."""
    server, _ = serve(None)
    limits = {}
    monkeypatch.setattr(
        Connection, "call", lambda _, name, limit, *__: limits.setdefault(name, limit)
    )
    client = Client(Address.parse(server.url + option))
    for name in ("heartbeat", "commit_txn", "lock", "get_table_req", "create_table_req"):
        client.call(name)
    client.close()
    assert limits.pop("set_ugi") and limits.pop("heartbeat") == heartbeat
    assert set(limits.values()) == {others}


def test_a_call_that_has_used_up_its_time_is_not_repeated(serve, monkeypatch):
    server, client = serve(CLOSE)
    hours = iter(range(0, 36_000, 3_600))
    monkeypatch.setattr(client_module, "time", SimpleNamespace(monotonic=lambda: next(hours)))
    with pytest.raises(MetastoreError, match="getVersion"):
        client.call("getVersion")
    assert server.calls == ["getVersion"]


def test_a_commit_is_sent_again_until_its_time_is_used_up(serve, monkeypatch):
    server, client = serve(CLOSE)
    passed = []
    clock = SimpleNamespace(monotonic=lambda: 400 * len(passed), sleep=passed.append)
    monkeypatch.setattr(commit_call, "time", clock)
    with pytest.raises(MetastoreError, match="commit_txn"):
        commit_call.send_commit(client, OwnTxn(7, "ann", "h"))
    assert server.calls == ["commit_txn"] * 3


@pytest.mark.parametrize(
    ("state", "left"), [(hive.LockState.ACQUIRED, {"numRows": "7"}), (hive.LockState.WAITING, {})]
)
def test_a_number_of_rows_that_others_have_locked_is_forgotten_instead_of_taken_back(
    serve, monkeypatch, state, left
):
    """An aborted transaction has told of 3 rows. Who holds the lock may have read 10 already."""
    monkeypatch.setattr(locks_module, "_PAUSES_S", (0,))
    place, written = hive.StorageDescriptor(location="file:/t"), []

    def answer(name, given):
        match name:
            case "open_txns":
                return hive.OpenTxnsResponse(txn_ids=[8])
            case "lock" | "check_lock":
                return hive.LockResponse(lockid=1, state=state)
            case "get_table_req":
                known = {"numRows": "10", "COLUMN_STATS_ACCURATE": "{}", "mine": "1"}
                table = hive.Table(dbName="d", tableName="t", sd=place, parameters=known)
                return hive.GetTableResult(table=table)
            case "alter_table_req":
                written.append(given.req.table.parameters)
                return hive.AlterTableResponse()
        return None

    server, client = serve(answer)
    parts = Parts(Server(client, SimpleNamespace(is_hive3=False), lambda _: []))
    own = parts.server.own_txns[7] = OwnTxn(7, "ann", "h")
    own.reported_row_counts[T], own.counts_locked = {"": RowChange(3)}, {T}
    monkeypatch.setattr(parts.numbers, "heartbeat", raises(TxnAbortedError("aborted by others")))
    parts.txns.abort_txn(7)
    assert written == [{"mine": "1"} | left]
    assert server.calls.count("abort_txn") == 2  # the one that held the lock ends, too


def test_a_machine_that_is_gone_is_noticed(serve):
    _, client = serve("4.0.1")
    client.call("getVersion")
    handle = client._thread_connection()._socket.handle
    assert handle.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    if hasattr(socket, "TCP_KEEPIDLE"):  # Linux
        assert handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30


# Methods that change something, and that may be sent again: the second time changes nothing more.
SENT_AGAIN = {
    "abort_Compactions", "abort_txn", "add_dynamic_partitions", "add_partitions_req",
    "allocate_table_write_ids", "alter_partitions_req", "alter_partitions_with_environment_context",
    "check_lock", "compact2", "drop_partitions_req", "heartbeat", "mark_compacted", "mark_failed",
    "mark_refused", "open_txns", "unlock",
}  # fmt: skip


@pytest.mark.parametrize("fault", [CLOSE, HALF])
def test_each_method_of_the_interface_is_sent_again_or_not_by_its_word(serve, fault):
    """Whatever the call, its loss is a MetastoreError that names the call."""
    server, client = serve(fault)
    for name, method in sorted(methods.items()):
        if name == "set_ugi":
            continue  # the connection's own
        server.calls.clear()
        values = [None for one in method.arguments.thrift_spec if one is not None]
        with pytest.raises(MetastoreError, match=name):
            client.call(name, *values)
        may_repeat = name.startswith(("get", "show_")) or name in SENT_AGAIN
        assert server.calls == [name] * (3 if may_repeat else 1)


def test_a_server_that_fails_is_not_asked_again_and_gets_a_new_connection(serve):
    server, client = serve(in_turn(FAIL, "4.0.1"))
    with pytest.raises(MetastoreError, match="Internal error processing getVersion"):
        client.call("getVersion")
    assert client.call("getVersion") == "4.0.1"
    assert server.connections == 2


def test_a_call_that_was_interrupted_leaves_its_answer_to_no_other_call(serve, monkeypatch):
    """As by Ctrl-C in a notebook. COMMIT is not repeated, so it would have failed."""
    server, client = serve(in_turn("4.0.1", "4.0.1", None))
    client.call("getVersion")
    with monkeypatch.context() as interrupted:
        interrupted.setattr(Connection, "_receive", raises(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            client.call("getVersion")
    client.call("commit_txn", COMMIT)
    assert (server.calls[2:], server.connections) == (["commit_txn"], 2)


def test_a_connection_that_the_server_closed_while_idle_is_not_used(serve):
    """So that a restart of the server costs no call, whatever its word."""
    server, client = serve(in_turn("4.0.1", None))
    client.call("getVersion")
    server.hang_up()
    client.call("commit_txn", COMMIT)
    assert server.calls == ["getVersion", "commit_txn"]


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("", {}),
        ("?framed=1", {"frames": True}),
        pytest.param("?auth=plain&user=ann", {"sasl": True}, marks=has_sasl),
    ],
)
def test_an_answer_may_be_longer_than_what_thrift_takes_as_one_frame(serve, monkeypatch, url, kind):
    """Java's server sends an answer as one frame; Thrift's default limit is 16,384,000 bytes."""
    monkeypatch.setenv("ACIDSQL_METASTORE_PASSWORD", "open sesame")
    names = [f"{number:04d}" * 250_000 for number in range(18)]
    _, client = serve(names, url=url, **kind)
    assert client.call("get_databases", "*") == names


def test_the_next_server_is_asked_if_one_does_not_answer(serve):
    dead = FakeHive(lambda *_: CLOSE)
    dead.close()
    for _ in range(4):  # the order is random
        _, client = serve(TXNS, dead.port)
        assert client.call("open_txns", OPEN) == TXNS


def test_no_server_at_all_is_one_error_that_names_each(serve):
    server, client = serve("4.0.1")
    server.close()
    with pytest.raises(MetastoreError, match=f"127.0.0.1:{server.port}"):
        client.call("getVersion")


# ── threads and processes ────────────────────────────────────────────────────────────────────


def test_each_thread_has_a_connection(serve):
    server, client = serve("4.0.1")
    threads = [threading.Thread(target=client.call, args=("getVersion",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.call("getVersion")
    client.call("getVersion")
    assert server.connections == 4


def test_a_forked_process_does_not_use_its_parents_connection(serve):
    server, client = serve("4.0.1")
    client.call("getVersion")
    child = os.fork()
    if child == 0:
        os._exit(0 if client.call("getVersion") == "4.0.1" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert server.connections == 2
    assert client.call("getVersion") == "4.0.1"


def test_a_closed_client_is_refused(serve):
    _, client = serve("4.0.1")
    client.call("getVersion")
    client.close()
    with pytest.raises(MetastoreError, match="closed"):
        client.call("getVersion")


# ── errors ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("thrown", "wanted"),
    [
        (hive.NoSuchTxnException(message="gone"), NoSuchTxnError),
        (hive.TxnAbortedException(message="gone"), TxnAbortedError),
    ],
    ids=["no such txn", "aborted"],
)
def test_what_the_server_says_no_to_is_an_error_of_ours(serve, thrown, wanted):
    server, client = serve(thrown)
    with pytest.raises(wanted, match="gone"):
        client.call("commit_txn", COMMIT)
    assert server.connections == 1  # the connection is as good as before


def test_other_refusals_name_the_call(serve):
    _, client = serve(hive.MetaException(message="not below\nthe root"))
    with pytest.raises(CatalogError, match="create_table_req: not below the root") as caught:
        client.call("create_table_req", hive.CreateTableRequest(table=hive.Table()))
    assert caught.value.getCondition() == "METASTORE_REFUSED"


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setenv("ACIDSQL_METASTORE_PASSWORD", "x")
    monkeypatch.setitem(__import__("sys").modules, "kerberos", None)
    client = Client(Address.parse("thrift://127.0.0.1:1/?auth=kerberos"))
    with pytest.raises(SettingError, match=r"acidsql\[hive-kerberos\]"):
        client.call("getVersion")
