"""``acidsql hive-check``: against a real server, and against what is none."""

from __future__ import annotations

import itertools
import re
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from click.testing import CliRunner

from acidsql.acid.table import TableName
from acidsql.api.opening import open_survey
from acidsql.errors import CatalogError
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.interface import TxnType
from acidsql.storage.folding.compact import staging_of
from acidsql.storage.writing.publish import staging_directory
from acidsql.terminal.cli import main
from acidsql.terminal.hive_check import Fact, Level, Verdict, check

_numbers = itertools.count(1)
SEQUENCE = "org.apache.hadoop.mapred.SequenceFileInputFormat"
CLASSES = {
    "orc": ("org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
            "org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
    "text": ("org.apache.hadoop.mapred.TextInputFormat",
             "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    "sequence": (SEQUENCE,
                 "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    "hudi": ("org.apache.hudi.hadoop.HoodieParquetInputFormat",
             "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"),
}  # fmt: skip


@pytest.fixture
def acid(acid_over_hive):
    return acid_over_hive


@pytest.fixture
def put(acid, hive_metastore):
    """Make a table that is none of acidsql's."""

    def put(name, form="orc", kind="EXTERNAL_TABLE", **parameters):
        if kind == "EXTERNAL_TABLE":
            parameters["EXTERNAL"] = "TRUE"
        database = acid.spark.catalog.currentDatabase()
        inputs, serde = CLASSES[form]
        view = kind.endswith("VIEW")
        sd = hive.StorageDescriptor(
            cols=[hive.FieldSchema(name="a", type="int")],
            location=None if view else f"file:{hive_metastore.work}/external/{database}/{name}",
            inputFormat=inputs, outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
            numBuckets=-1, bucketCols=[], sortCols=[], parameters={},
            serdeInfo=hive.SerDeInfo(name=name, serializationLib=serde, parameters={}),
        )  # fmt: skip
        table = hive.Table(
            tableName=name, dbName=database, owner="ann", createTime=0, lastAccessTime=0,
            retention=0, sd=sd, partitionKeys=[], tableType=kind, catName="hive",
            parameters=parameters,
            viewOriginalText="SELECT 1 a" if view else None,
            viewExpandedText="SELECT 1 a" if view else None,
        )  # fmt: skip
        acid.metastore.parts.server.call("create_table_req", hive.CreateTableRequest(table=table))

    return put


def checked(*words):
    """What the command did, and the cells of the lines that it printed."""
    done = CliRunner().invoke(main, ["hive-check", *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    lines = [
        [cell.strip() for cell in line.replace("┃", "│").split("│")[1:-1]]
        for line in done.stdout.splitlines()
        if line[0] in "│┃"
    ]
    return done, lines


def fact(lines, about):
    (found,) = [line for line in lines if about in line]
    return found


def test_the_server_is_described_and_each_table_is_judged(acid, put, hive_metastore):
    acid.sql("CREATE TABLE full (a INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO full VALUES (1, 1)")
    acid.sql("CREATE TABLE only (a INT) TBLPROPERTIES ('transactional_properties'='insert_only')")
    put("ext")
    put("lines", "text")
    put("seq", "sequence")
    put("view", kind="VIRTUAL_VIEW")
    put("ice", table_type="ICEBERG")
    put("hudi", "hudi")
    put("kudu", storage_handler="org.apache.hadoop.hive.kudu.KuduStorageHandler")
    put("db", storage_handler="org.apache.hive.storage.jdbc.JdbcStorageHandler")
    database = acid.spark.catalog.currentDatabase()
    done, lines = checked("--metastore", hive_metastore.url, "--database", database)
    assert "4.0.1" in fact(lines, "version")
    assert fact(lines, "security")[2].startswith("auth=none, no TLS")
    assert fact(lines, "metastore.txn.timeout")[2].startswith("300 s")
    assert done.exit_code == 1  # the tests' server has no compactor
    assert "!" in fact(lines, "metastore.compactor.initiator.on")[0]
    judged = {line[1]: line[2:] for line in lines if line[1].startswith(f"{database}.")}
    assert {name.partition(".")[2]: line for name, line in judged.items()} == {
        "full": ["full ACID", "orc", "reads, inserts, updates, deletes, merges"],
        "only": ["insert-only", "orc", "reads, inserts, overwrites"],
        "ext": ["external", "orc", "reads in queries; changes are Spark's or Hive's"],
        "lines": ["external", "text", "reads in queries; changes are Spark's or Hive's"],
        "seq": ["external", SEQUENCE, f"refused: it has files of the format {SEQUENCE}, which "
                "acidsql does not read. Read them by a Spark session with Hive support, or by "
                "Hive."],
        "view": ["view", "", "reads in queries, if Spark understands its text"],
        **{name: ["another engine's", engine,
                  f"refused: it is a table of {engine}, whose files mean nothing without {engine}: "
                  f"use {engine} for Spark."]
           for name, engine in [("ice", "Iceberg"), ("hudi", "Hudi"), ("kudu", "Kudu"),
                                ("db", "JDBC")]},
    }  # fmt: skip


def test_a_dead_transaction_that_nobody_aborts_is_marked(hive_metastore, monkeypatch):
    def dead_transactions():
        facts = check(hive_metastore.url, ["default"])
        return [fact for fact in facts if fact.about == "dead transactions"]

    survey, real_time = open_survey(hive_metastore.url), time.time
    request = hive.OpenTxnRequest(num_txns=1, user="ann", hostname="a host")
    (number,) = survey.parts.server.call("open_txns", request).txn_ids
    try:
        assert dead_transactions() == []
        monkeypatch.setattr(time, "time", lambda: real_time() + 7200)
        (found,) = dead_transactions()
        assert found.level is Level.WARNING
        assert str(number) in found.message and "ABORT TRANSACTIONS" in found.advice
    finally:
        survey.parts.server.call("abort_txn", hive.AbortTxnRequest(txnid=number))
        survey.close()


def test_a_hive_without_locks_is_marked(hive_metastore, monkeypatch):
    real = Client.call
    said = {
        "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager",
        "hive.support.concurrency": "false",
    }

    def call(self, name, *values, **options):
        if name == "get_config_value" and values[0] in said:
            return said[values[0]]
        return real(self, name, *values, **options)

    def marked():
        found = check(hive_metastore.url, ["default"])
        return {one.about: one for one in found if isinstance(one, Fact) and one.about in said}

    assert marked() == {}
    monkeypatch.setattr(Client, "call", call)
    assert set(marked()) == set(said)
    for one in marked().values():
        assert one.level is Level.WARNING and "no locks" in one.advice


def test_the_check_opens_no_transaction_and_takes_no_lock(acid, hive_metastore, monkeypatch):
    acid.sql("CREATE TABLE t (a INT)")
    made, real = set(), Client.call
    leave(acid, "t", staging_directory("", 1, 0, "x"))  # the check asks for transactions, too

    def call(self, name, *values, **options):
        made.add(name)
        return real(self, name, *values, **options)

    monkeypatch.setattr(Client, "call", call)
    checked("--metastore", hive_metastore.url)
    assert all(name.startswith("get") for name in made), made


def leave(acid, table, *names):
    """Make directories as a session leaves them that is killed."""
    name = TableName(acid.spark.catalog.currentDatabase(), table)
    for one in names:
        Path(location_of(acid, name), one.lstrip("/")).mkdir(parents=True)
    return name


def location_of(acid, name):
    return acid.metastore.find(name).location.removeprefix("file:")


def test_directories_that_dead_sessions_left_are_named_and_deleted_and_those_of_living_ones_are_not(
    acid, hive_metastore
):
    """No worker and no cleaner of Hive's knows them."""
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    store = acid.metastore
    name = leave(acid, "t")
    committed = store.valid_write_ids(store.valid_txns(), [name])[name].high_water_mark

    def begin():
        return store.open_txn(user="ann", host="here", txn_type=TxnType.DEFAULT)

    living, killed = begin(), begin()
    writes = {txn: store.allocate_write_id(txn, name) for txn in (killed, living)}
    store.abort_txn(killed)
    dead = [
        *(staging_directory("", one, 0, "x") for one in (committed, writes[killed])),
        staging_of("", killed),
        f"/_tmp_source_{killed:07d}_x",
    ]
    unknown = 1 << 40  # as if the transaction had begun after the check asked
    others = [
        *(staging_directory("", one, 0, "y") for one in (writes[living], unknown)),
        *(staging_of("", one) for one in (living, unknown)),
        f"/_tmp_source_{living:07d}_y", "/_tmp_of_somebody",
    ]  # fmt: skip
    leave(acid, "t", *dead, *others)
    (found,) = [
        one
        for one in check(hive_metastore.url, [name.database])
        if isinstance(one, Verdict) and one.table == str(name)
    ]
    assert found.level is Level.WARNING
    names = {one.lstrip("/") for one in dead}
    assert set(re.findall(r"_tmp_\w+", found.message)) == names
    removed = [one for one in acid.clean().collect() if one.table == str(name)]
    store.abort_txn(living)
    assert {one.kind for one in removed} == {"litter"} and len(removed) == len(dead)
    # A compaction's directory is first renamed, to the same name and more.
    assert all(one.path.rpartition("/")[2].startswith(tuple(names)) for one in removed)
    left = {path.name for path in Path(location_of(acid, name)).glob("_tmp_*")}
    assert left == {one.lstrip("/") for one in others}
    assert len(acid.sql("SELECT * FROM t").collect()) == 1


def test_a_table_whose_directory_is_not_on_this_machine_is_named_and_not_changed(
    acid, hive_metastore
):
    """An INSERT would make the directory here, where nobody else looks for its rows."""
    acid.sql("CREATE TABLE t (a INT)")
    name = leave(acid, "t")
    there = Path(acid.metastore.find(name).location)
    elsewhere = there.rename(there.with_name("unmounted"))
    with pytest.raises(CatalogError, match=f"'{there}' of {name} cannot be seen") as caught:
        acid.sql("INSERT INTO t VALUES (1)")
    assert caught.value.getCondition() == "PATH_NOT_FOUND"
    assert not there.exists()
    (found,) = [
        one for one in check(hive_metastore.url, [name.database]) if isinstance(one, Verdict)
    ]
    assert found.level is Level.WARNING and "there is no such directory" in found.message
    elsewhere.rename(there)
    acid.sql("INSERT INTO t VALUES (1)")
    assert acid.table("t").count() == 1


def test_directories_are_tried_from_executors_when_asked(acid, hive_metastore):
    done, lines = checked("--metastore", hive_metastore.url, "--executors")
    found = [line for line in lines if "an executor on" in " ".join(line)]
    assert any("can be read" in " ".join(line) for line in found)
    assert socket.gethostname() in done.stdout


def test_a_database_that_is_not_there_and_one_without_a_directory_are_named(acid, hive_metastore):
    store = acid.metastore
    name = f"check{next(_numbers)}"
    request = hive.CreateDatabaseRequest(
        databaseName=name, managedLocationUri=f"file:{hive_metastore.work}/gone", catalogName="hive"
    )
    store.parts.server.call("create_database_req", request)
    (hive_metastore.work / "gone").rmdir()
    words = ["--database", "nowhere", "--database", name]
    done, lines = checked("--metastore", hive_metastore.url, *words)
    assert done.exit_code == 1
    assert "There is no such database." in fact(lines, "database nowhere")
    assert "there is no such directory" in fact(lines, f"database {name}, from this machine")[2]
    store.parts.server.call("drop_database", name, True, True)


# ── what is no metastore ─────────────────────────────────────────────────────────────────────


def refused(*words):
    done, lines = checked(*words)
    assert done.exit_code == 2
    (line,) = lines[1:]  # without the head
    assert line[:2] == ["✗", "connection"]
    return line[2]


def test_no_server():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert "Is the address right" in refused("--metastore", f"thrift://127.0.0.1:{port}")
    assert "nowhere.invalid" in refused("--metastore", "thrift://nowhere.invalid:9083")


@pytest.mark.parametrize("says", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"SSH-2.0-x\r\n"])
def test_a_server_that_speaks_no_thrift(says):
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                peer.recv(10)
                peer.sendall(says)

    threading.Thread(target=serve, daemon=True).start()
    assert "Is the address right" in refused(
        "--metastore", f"thrift://127.0.0.1:{listener.getsockname()[1]}"
    )
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def test_a_url_of_another_kind_or_with_a_password_is_refused_without_the_password(monkeypatch):
    assert "thrift://" in refused("--metastore", "postgresql://ann:sesame@db/x")
    done, _ = checked("--metastore", "thrift://ann:sesame@h:1")
    assert "sesame" not in done.output
    monkeypatch.delenv("ACIDSQL_METASTORE_PASSWORD", raising=False)
    said = refused("--metastore", "thrift://127.0.0.1:1/?auth=plain&user=ann")
    assert "ACIDSQL_METASTORE_PASSWORD" in said
    monkeypatch.setenv("ACIDSQL_METASTORE_PASSWORD", "sesame")
    done, _ = checked("--metastore", "thrift://127.0.0.1:1/?auth=plain&user=ann")
    assert done.exit_code == 2 and "sesame" not in done.output


def test_without_a_metastore_the_words_are_wrong():
    done, _ = checked()
    assert done.exit_code == 2
    assert "thrift://" in done.stderr


def test_without_thrift_the_extra_is_named(monkeypatch):
    for name in [one for one in sys.modules if one.startswith("acidsql.metastore.hive.")]:
        if not name.endswith("address"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "thrift.transport.THttpClient", None)
    assert "pip install 'acidsql[hive]'" in refused("--metastore", "thrift://127.0.0.1:1")
