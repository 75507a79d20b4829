"""What a Hive Metastore's own database says about each kind of statement (traps T1 and T2).

Hive's cleaner finds what an aborted transaction left by these records alone, and Hive's initiator
what needs a compaction. The directories on disk say what the records must be: each directory is one
of a table or partition, and of a write id.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from kit import rows
from kit_hive import asks, own_database
from pyarrow import orc

from acidsql.errors import TxnAbortedError
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.idl import hive

# A kind of statement → the statements, and the letters of the operations in each table and
# partition: i(nsert), u(pdate), d(elete). If a transaction changes a table in two ways, both are
# recorded for each partition that it publishes to afterwards.
STATEMENTS = {
    "INSERT": (["INSERT INTO t VALUES (9, 9)"], {"t": "i"}),
    "INSERT, partitions by value": (
        ["INSERT INTO p VALUES (9, 9), (8, 1)"], {"p/p=9": "i", "p/p=1": "i"},
    ),
    "INSERT, a partition by name": (["INSERT INTO p PARTITION (p = 1) VALUES (7)"], {"p/p=1": "i"}),
    "INSERT into two tables": (
        ["FROM (SELECT 5 a) s INSERT INTO t SELECT a, a INSERT INTO p PARTITION (p = 5) SELECT a"],
        {"t": "i", "p/p=5": "i"},
    ),
    "UPDATE": (["UPDATE t SET v = 0 WHERE a = 1"], {"t": "u"}),
    "UPDATE, its partition is known": (["UPDATE p SET a = a + 20 WHERE p = 2"], {"p/p=2": "u"}),
    "UPDATE, its partition is found": (["UPDATE p SET a = 30 WHERE a = 3"], {"p/p=3": "u"}),
    "UPDATE of no row": (["UPDATE p SET a = 30 WHERE a = 77"], {}),
    "DELETE": (["DELETE FROM t WHERE a = 2"], {"t": "d"}),
    "DELETE of a partition's rows": (["DELETE FROM p WHERE p = 9"], {"p/p=9": "d"}),
    "MERGE": (
        ["MERGE INTO p USING (VALUES (30, 3), (4, 4)) s(a, p) ON p.a = s.a WHEN MATCHED THEN "
         "UPDATE SET a = 31 WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.p)"],
        {"p/p=3": "iu", "p/p=4": "iu"},
    ),
    "INSERT OVERWRITE": (["INSERT OVERWRITE TABLE t VALUES (1, 1), (2, 2)"], {"t": "u"}),
    "INSERT OVERWRITE of a partition": (
        ["INSERT OVERWRITE TABLE p PARTITION (p = 3) VALUES (3)"], {"p/p=3": "u"},
    ),
    "TRUNCATE": (["TRUNCATE TABLE t"], {"t": "u"}),
    "TRUNCATE of a partition": (["TRUNCATE TABLE p PARTITION (p = 4)"], {"p/p=4": "u"}),
    "DROP PARTITION": (["ALTER TABLE p DROP PARTITION (p = 2)"], {"p/p=2": "u"}),
    "LOAD DATA": (["LOAD DATA INPATH '{file}' INTO TABLE t"], {"t": "i"}),
    "CREATE TABLE AS SELECT": (["CREATE TABLE c AS SELECT 1 a"], {"c": "i"}),
    "a transaction": (
        ["BEGIN", "INSERT INTO t VALUES (6, 6)", "UPDATE p SET a = 10 WHERE p = 1",
         "INSERT INTO p VALUES (6, 6)", "DELETE FROM t WHERE a = 6", "COMMIT"],
        {"t": "di", "p/p=1": "u", "p/p=6": "iu"},
    ),
}  # fmt: skip


@pytest.fixture
def connect(spark, hive_metastore):
    """Open sessions on the server, in a database of the test's own."""
    yield from own_database(spark, hive_metastore)


@pytest.fixture
def ask(hive_metastore, connect):
    return asks(hive_metastore, connect)


class AtCommit:
    """Looks at each transaction with a write id right before its COMMIT, and may abort it."""

    def __init__(self, monkeypatch, ask, root):
        self.ask, self.root = ask, root
        self.aborts, self.txn, self.recorded, self.written = False, 0, {}, set()
        real = Client.call

        def call(client, name, *values, **options):
            if name == "commit_txn" and self.write_ids(values[0].txnid):
                self.look(values[0].txnid)
                if self.aborts:
                    real(client, "abort_txn", hive.AbortTxnRequest(txnid=self.txn))
            return real(client, name, *values, **options)

        monkeypatch.setattr(Client, "call", call)

    def look(self, txn):
        self.txn, self.recorded, self.written = txn, self.components(txn), self.on_disk(txn)

    def write_ids(self, txn):
        """The write ids that the server has given, by table."""
        found = self.ask(
            f"SELECT T2W_TABLE, T2W_WRITEID FROM TXN_TO_WRITE_ID WHERE T2W_TXNID = {txn}"
        )
        return {table: int(number) for table, number in found}

    def components(self, txn):
        """What an open or aborted transaction changes: place and write id → letters."""
        return together(
            self.ask(
                "SELECT TC_TABLE, TC_PARTITION, TC_WRITEID, TC_OPERATION_TYPE FROM TXN_COMPONENTS "
                f"WHERE TC_TXNID = {txn}"
            )
        )

    def on_disk(self, txn):
        """The places and write ids of the directories that a transaction has published."""
        return {
            (str(path.parent.relative_to(self.root)), str(number))
            for table, number in self.write_ids(txn).items()
            for path in (self.root / table).rglob("*")
            if re.fullmatch(rf"(base|(delete_)?delta)_0*{number}(_.*)?", path.name)
        }

    def committed(self, txn):
        """The same of a committed transaction: Y(es) means that it has not only inserted."""
        return together(
            self.ask(
                "SELECT CTC_TABLE, CTC_PARTITION, CTC_WRITEID, CTC_UPDATE_DELETE "
                f"FROM COMPLETED_TXN_COMPONENTS WHERE CTC_TXNID = {txn}"
            )
        )

    def compared(self, txn):
        """The places that the server compares with those of other transactions."""
        return together(
            self.ask(
                "SELECT WS_TABLE, WS_PARTITION, CAST(NULL AS CHAR), WS_OPERATION_TYPE FROM "
                f"WRITE_SET WHERE WS_TXNID = {txn}"
            )
        )

    def check(self, letters, *, is_kept):
        """What the server knows of the last transaction, before its COMMIT and after it."""
        numbers = self.write_ids(self.txn)
        expected = {
            (place, str(numbers[place.partition("/")[0]])): of_place
            for place, of_place in letters.items()
        }
        assert self.recorded == expected and self.written == set(expected)
        assert self.ask(f"SELECT HL_TABLE FROM HIVE_LOCKS WHERE HL_TXNID = {self.txn}") == []
        if self.aborts:
            assert self.components(self.txn) == (expected if is_kept else {})
            assert self.on_disk(self.txn) == set()
            assert self.committed(self.txn) == self.compared(self.txn) == {}
            return
        assert self.components(self.txn) == {}
        assert self.committed(self.txn) == {
            one: "Y" if set("ud").intersection(of_one) else "N"
            for one, of_one in expected.items()
            if is_kept
        }
        assert self.compared(self.txn) == {
            (place, None): changed
            for place, of_place in letters.items()
            if (changed := of_place.replace("i", ""))
        }


def together(found):
    """Rows of table, partition, write id and letter → the letters by place and write id."""
    letters = {}
    for table, partition, number, letter in found:
        place = table if partition is None else f"{table}/{partition}"
        letters.setdefault((place, number), set()).add(letter)
    return {one: "".join(sorted(of_one)) for one, of_one in letters.items()}


@pytest.mark.slow
def test_t1_t2_each_kind_of_statement_is_recorded_as_what_it_wrote(
    connect, ask, hive_metastore, monkeypatch, tmp_path
):
    """Each is run twice: first it is aborted right before its COMMIT."""
    acid = connect()
    acid.sql("CREATE TABLE t (a INT, v INT)")
    acid.sql("CREATE TABLE p (a INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    acid.sql("INSERT INTO p VALUES (1, 1), (2, 2), (3, 3)")
    seen = AtCommit(monkeypatch, ask, hive_metastore.warehouse / f"{connect.database}.db")
    orc.write_table(pa.table([pa.array([5], "int32")] * 2, ["a", "v"]), tmp_path / "file")
    for kind, (statements, letters) in STATEMENTS.items():
        for seen.aborts in (True, False):
            texts = [one.format(file=tmp_path / "file") for one in statements]
            if seen.aborts:
                with pytest.raises(TxnAbortedError):
                    run_all(acid, texts)
            else:
                run_all(acid, texts)
            is_dropped = kind == "DROP PARTITION" and not seen.aborts
            is_unmade = kind == "CREATE TABLE AS SELECT" and seen.aborts
            seen.check(letters, is_kept=not is_dropped and not is_unmade)
    assert rows(acid, "SELECT * FROM t") == [(5, 5)]
    assert rows(acid, "SELECT * FROM p") == [(10, 1)] * 3 + [(3, 3), (5, 5), (6, 6)]


def run_all(acid, texts):
    try:
        for text in texts:
            acid.sql(text)
    finally:
        if acid.in_transaction:
            acid.sql("ROLLBACK")
