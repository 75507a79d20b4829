"""Transactions of a source that batches cut in two: they are applied as a whole, and once."""

from __future__ import annotations

import json
import random
from collections import defaultdict

import pytest

import acidsql
from acidsql.acid.table import TableName
from acidsql.errors import AnalysisError, SettingError, UnsupportedError, WriteError
from acidsql.statements.directories.moving import refuse_cdc_tables
from acidsql.streams import commit_points

pytestmark = [pytest.mark.spark, pytest.mark.needs("keeps_state_tables")]

COLUMNS = "tbl STRING, id INT, v STRING, n INT, op STRING, txn STRING, last BOOLEAN, num INT"
NAMES = [part.split()[0] for part in COLUMNS.split(", ")]
CLAUSES = {"keys": "id", "sequence_by": "n", "apply_as_deletes": "op = 'd'"}
LAST = acidsql.CommitPoints("last", txn="txn")
COUNT = acidsql.CommitPoints("num", txn="txn", place="n")


def one(table, key, n, txn, *, value="v", op="u", last=False, num=None):
    return (table, key, f"{value}{n}", n, op, txn, last, num)


def end(txn, num):
    """A commit point without a record, as Debezium's END."""
    return (None, None, None, None, None, txn, None, num)


def frame(acid, *records):
    return acid.spark.createDataFrame(list(records), COLUMNS)


def rows(acid, name):
    return sorted(tuple(row) for row in acid.sql(f"SELECT id, v FROM {name}").collect())


def waiting(acid, *names):
    """What waits: the transaction, and the order value of a record, or else the count."""
    found = [
        (row.source_txn, "end", row.num_records)
        if row.record is None
        else (row.source_txn, "record", int(json.loads(row.record)["n"]))
        for name in names
        for row in acid.sql(f"SELECT * FROM {name}__acidsql_pending").collect()
    ]
    return sorted(found)


def shown(acid):
    """What SHOW STREAMS says of the records that wait."""
    found = acid.sql("SHOW STREAMS").collect()
    return [(one.txnAppId, one.numWaiting, one.oldestWaitingTxn) for one in found]


def appliers(acid):
    for name in ("a", "b"):
        acid.sql(f"CREATE TABLE {name} (id INT, v STRING)")
    return [acid.auto_cdc(name, column_list=["id", "v"], **CLAUSES) for name in ("a", "b")]


@pytest.fixture
def both(acid):
    return acid.auto_cdc(appliers(acid), by="tbl", commit_points=COUNT, txn_app_id="app")


def test_a_transaction_is_applied_when_its_last_record_is_there(acid):
    acid.sql("CREATE TABLE a (id INT, v STRING)")
    cdc = acid.auto_cdc("a", column_list=["id", "v"], commit_points=LAST, **CLAUSES)
    done = cdc.apply(
        frame(
            acid, one("a", 1, 1, "x", last=True), one("a", 2, 2, "y"), one("a", 3, 3, None),
            one("a", 4, 4, "y"),
        )
    )  # fmt: skip
    assert rows(acid, "a") == [(1, "v1"), (3, "v3")]  # a record without a transaction, too
    assert waiting(acid, "a") == [("y", "record", 2), ("y", "record", 4)]
    assert "default.a: 2 inserted" in str(done) and "2 records wait for" in str(done)
    done = cdc.apply(frame(acid, one("a", 2, 5, "y", last=True), one("a", 5, 6, "z")))
    assert rows(acid, "a") == [(1, "v1"), (2, "v5"), (3, "v3"), (4, "v4")]
    assert waiting(acid, "a") == [("z", "record", 6)] and "1 record waits" in str(done)
    assert repr(cdc) == "<acidsql auto_cdc into default.a> in transactions of txn"


@pytest.mark.needs("keeps_versions")
def test_all_tables_of_a_transaction_change_together_whatever_comes_first(acid, both):
    """Its end comes first, then its records in two batches."""
    both.apply(frame(acid, end("x", 3), end("empty", 0)), txn_app_id="app", txn_version=1)
    first = frame(acid, one("b", 1, 1, "x"), one("a", 1, 2, "x"), one("a", 1, 2, "x"))
    both.apply(first, txn_app_id="app", txn_version=2)
    assert rows(acid, "a") == rows(acid, "b") == []
    assert acid.streams().first().numRows == 0
    assert shown(acid) == [("app", 3, "x")]  # one of them came twice
    both.apply(frame(acid, one("a", 7, 7, "y")), txn_app_id="app", txn_version=3)
    last = frame(acid, one("b", 2, 3, "x"), one("b", 8, 8, "new"))
    done = both.apply(last, txn_app_id="app", txn_version=4)
    assert (rows(acid, "a"), rows(acid, "b")) == ([(1, "v2")], [(1, "v1"), (2, "v3")])
    assert waiting(acid, "a", "b") == [("new", "record", 8), ("y", "record", 7)]
    assert shown(acid) == [("app", 2, "y")]  # though the table of 'new' has lower write ids
    assert {acid.history(name, 1).first().txnId for name in "ab"} == {done.txn_id}
    again = both.apply(last, txn_app_id="app", txn_version=4)
    assert "skipped" in str(again) and shown(acid) == [("app", 2, "y")]


class Model:
    """Records of two tables, by transactions, in plain Python."""

    def __init__(self):
        self.waiting, self.told, self.newest = defaultdict(dict), {}, {}

    def apply(self, batch):
        for record in batch:
            table, _, _, n, _, txn, last, num = record
            if txn is None:
                self.fold([record])
                continue
            if table is not None:
                self.waiting[txn][n] = record
            if last or num is not None:
                self.told[txn] = num
        for txn in list(self.told):
            if self.told[txn] in (None, len(self.waiting[txn])):
                del self.told[txn]
                self.fold(self.waiting.pop(txn).values())

    def fold(self, records):
        for table, key, value, n, op, *_ in records:
            if n > self.newest.get((table, key), (0,))[0]:
                self.newest[table, key] = (n, None if op == "d" else value)

    def rows(self, table):
        return sorted((k, v) for (t, k), (_, v) in self.newest.items() if t == table and v)

    def left(self):
        records = {(txn, "record", n) for txn, held in self.waiting.items() for n in held}
        return records | {(txn, "end", n) for txn, n in self.told.items() if n is not None}


def history_of(chance, kind):
    """Records of some transactions, mixed up as their source may send them."""
    streams, n = [], 0
    for number in range(7):
        txn = None if number == 6 else f"t{number}"
        records = []
        for _ in range(chance.randint(1, 5)):
            n += 1
            op = chance.choice("uud")
            records.append(one(chance.choice("ab"), chance.randint(1, 4), n, txn, op=op))
        if txn and kind is LAST:
            records[-1] = (*records[-1][:6], True, None)
        elif txn:
            chance.shuffle(records)
            records.insert(chance.randint(0, len(records)), end(txn, len(records)))
        streams.append(records)
    mixed = []
    while streams:  # each transaction keeps its own order
        chosen = chance.choice(streams)
        mixed.append(chosen.pop(0))
        if kind is COUNT and chance.random() < 0.2:
            mixed.append(chance.choice(mixed))  # it was sent twice
        streams = [one for one in streams if one]
    return mixed


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seed"), [(LAST, 1), (COUNT, 2)], ids=str)
def test_any_cuts_of_any_transactions_give_what_whole_transactions_give(acid, kind, seed):
    chance, model = random.Random(seed), Model()
    cdc = acid.auto_cdc(appliers(acid), by="tbl", commit_points=kind)
    records = history_of(chance, kind)
    cuts = sorted(chance.sample(range(1, len(records)), 3))
    for start, stop in zip([0, *cuts], [*cuts, len(records)], strict=True):
        cdc.apply(frame(acid, *chance.sample(records[start:stop], stop - start)))
        model.apply(records[start:stop])
        for name in "ab":
            assert rows(acid, name) == model.rows(name)
        assert set(waiting(acid, "a", "b")) == model.left()


@pytest.mark.classic
def test_a_crash_anywhere_and_a_replay_lose_and_double_nothing(acid, tmp_path, monkeypatch):
    """The first try of each batch fails at another step; the last batch is run again after it."""
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    source.mkdir()
    targets = appliers(acid)

    def run():
        query = (
            acid.spark.readStream.schema(COLUMNS).json(str(source)).writeStream
            .foreachBatch(acid.auto_cdc(targets, by="tbl", commit_points=COUNT))
            .option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()

    batches = [
        [one("a", 1, 1, "x"), one("b", 1, 2, "y"), end("y", 2)],
        [one("b", 2, 3, "x"), one("a", 2, 4, "y"), one("a", 9, 9, "z")],
        [end("x", 2), one("b", 3, 5, None)],
    ]
    for number, (batch, step) in enumerate(
        zip(batches, ["insert_waiting", "delete_applied", "ready_records"], strict=True)
    ):
        lines = [json.dumps(dict(zip(NAMES, record, strict=True))) for record in batch]
        (source / f"{number}.json").write_text("\n".join(lines))
        before = [rows(acid, "a"), rows(acid, "b")]

        def dies(*_):
            raise RuntimeError("dies here")

        with monkeypatch.context() as patch:
            patch.setattr(commit_points._Batch, step, dies)
            with pytest.raises(Exception, match="dies here"):
                run()
        assert [rows(acid, "a"), rows(acid, "b")] == before
        run()
    for path in (checkpoint / "commits").glob("*2*"):
        path.unlink()
    run()
    assert rows(acid, "a") == [(1, "v1"), (2, "v4")]
    assert rows(acid, "b") == [(1, "v2"), (2, "v3"), (3, "v5")]
    assert waiting(acid, "a", "b") == [("z", "record", 9)]
    assert acid.streams().first().txnVersion == 2


def test_debezium_s_transactions_are_applied_as_a_whole(acid):
    """As docs/replication.md, "Transactions of the source", says. The second batch has a record
    again that the first one had."""
    acid.sql("CREATE TABLE a (id INT, v STRING)")
    acid.sql("CREATE TABLE b (id INT, v STRING)")
    clauses = {"keys": "id", "sequence_by": "_sequence", "apply_as_deletes": "_op = 'delete'"}

    def read(_, of):
        return acid.changes_from("debezium", of, "id INT, v STRING")

    targets = {
        f"s.{name}": acid.auto_cdc(name, column_list=["id", "v"], **clauses) for name in "ab"
    }
    cdc = acid.auto_cdc(
        targets,
        by="_table",
        transform=read,
        commit_points=acidsql.CommitPoints("_num_records", place="_place"),
    )

    def change(table, key, lsn, txn=None, place=None, sent=1):
        source = {"connector": "postgresql", "lsn": lsn, "txId": 5, "schema": "s", "table": table}
        block = txn and {"id": txn, "total_order": place, "data_collection_order": place}
        after = {"id": key, "v": f"v{lsn}"}
        return {"op": "c" if txn else "r", "before": None, "after": after, "source": source,
                "ts_ms": sent, "transaction": block}  # fmt: skip

    def apply(*records):
        texts = [(None if one is None else json.dumps(one),) for one in records]
        topics = acid.spark.createDataFrame(texts, "value STRING")
        cdc.apply(acid.transactions_from("debezium", topics))

    begin = {"status": "BEGIN", "id": "571:1", "event_count": None, "ts_ms": 1}
    end_event = {"status": "END", "id": "571:1", "event_count": 2, "ts_ms": 1}
    apply(begin, None, change("a", 1, 1), change("a", 2, 10, "571:1", 1))
    apply(change("a", 2, 10, "571:1", 1, sent=2), end_event)
    assert (rows(acid, "a"), rows(acid, "b")) == ([(1, "v1")], [])
    apply(change("b", 3, 11, "571:1", 2))
    assert (rows(acid, "a"), rows(acid, "b")) == ([(1, "v1"), (2, "v10")], [(3, "v11")])
    assert waiting(acid, "a", "b") == []


@pytest.mark.needs("keeps_versions")
def test_a_batch_locks_all_its_tables_before_it_looks_at_what_waits(acid, both, monkeypatch):
    """Otherwise each batch of another stream into these tables would be a conflict."""
    seen, read = [], commit_points._Batch._read_waiting

    def looks(batch):
        seen.append(batch.runner.transactions.require_transaction().txn.has_snapshot)
        seen.extend(sorted((one.table, one.lock_type.name) for one in acid.metastore.show_locks()))
        return read(batch)

    monkeypatch.setattr(commit_points._Batch, "_read_waiting", looks)
    both.apply(frame(acid, one("a", 1, 1, None)))
    assert seen == [False, ("a", "EXCL_WRITE"), ("b", "EXCL_WRITE")]
    assert rows(acid, "a") == [(1, "v1")] and acid.metastore.show_locks() == []
    assert [row.operation for row in acid.history("b").collect()] == ["CREATE TABLE"]


def test_commit_points_that_contradict_refuse_the_batch(acid, both):
    both.apply(frame(acid, one("a", 1, 1, "x"), one("a", 2, 2, "x"), end("x", 3)))
    for wrong in (
        [end("x", 4)],
        [one("a", 3, 3, "x"), one("a", 4, 4, "x")],
        [one("b", 1, 5, "y", num=1), one("b", 1, 6, "y", num=1)],
    ):
        with pytest.raises(WriteError, match="source transaction") as caught:
            both.apply(frame(acid, one("b", 9, 9, None), *wrong))
        assert caught.value.condition == "CDC_COMMIT_POINT_CONTRADICTION"
    assert (rows(acid, "a"), rows(acid, "b")) == ([], [])
    assert len(waiting(acid, "a", "b")) == 3


def test_a_record_of_no_target_is_refused_before_it_waits_or_put_aside_when_it_is_applied(acid):
    targets = appliers(acid)
    strict = acid.auto_cdc(targets, by="tbl", commit_points=COUNT)
    for lost in (one("c", 1, 1, "x"), one(None, 1, 1, "x"), end(None, 3)):
        with pytest.raises(WriteError, match="no target has this name"):
            strict.apply(frame(acid, lost))
    assert waiting(acid, "a", "b") == []
    lenient = acid.auto_cdc(targets, by="tbl", commit_points=COUNT, bad_records="bad")
    lenient.apply(frame(acid, one("c", 1, 1, "x"), one("b", None, 2, "x")))
    assert acid.table("bad").count() == 0
    lenient.apply(frame(acid, one("a", 1, 3, "x", num=3)))
    assert rows(acid, "a") == [(1, "v3")] and waiting(acid, "a", "b") == []
    assert {row.target for row in acid.table("bad").collect()} == {"c", "default.b"}


def test_records_that_wait_keep_their_columns_when_the_next_batches_have_others(acid):
    """A newer record of a waiting one's key leaves out a column: the older record has set it."""
    acid.sql("CREATE TABLE a (id INT, v STRING, w INT)")
    cdc = acid.auto_cdc("a", except_column_list=["n", "op", "txn", "last"], commit_points=LAST,
                        **CLAUSES)  # fmt: skip
    old = frame(acid, one("a", 1, 1, "x"), one("a", 2, 2, "x")).drop("tbl", "num")
    cdc.apply(old)
    new = frame(acid, one("a", 3, 3, "x"), one("a", 1, 4, "x", last=True)).drop("tbl", "num", "v")
    done = cdc.apply(new.selectExpr("*", "7 AS w"))
    found = acid.sql("SELECT * FROM a ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, "v1", 7), (2, "v2", None), (3, None, 7)]
    assert sum(one.inserted for one in done.counts) == 3 and waiting(acid, "a") == []


def test_applications_do_not_mix_their_transactions_and_the_table_takes_them_along(acid, both):
    """Two sources may use one id. What waits is renamed and dropped with the table."""
    first = frame(acid, one("a", 1, 1, "x"), end("x", 2))
    both.apply(first, txn_app_id="app", txn_version=1)
    other = frame(acid, one("a", 2, 2, "x", num=2))
    both.apply(other, txn_app_id="other", txn_version=1)
    assert rows(acid, "a") == [] and len(waiting(acid, "a")) == 3
    assert shown(acid) == [("app", 1, "x"), ("other", 1, "x")]
    whole = frame(acid, one("b", 7, 7, None), one("b", 8, 8, "x", num=1))
    both.apply(whole, txn_app_id="third", txn_version=1)
    assert shown(acid)[2] == ("third", 0, None)
    with acid.transaction():
        assert shown(acid)[0] == ("app", None, None)
        assert not acid._runner.transactions.require_transaction().txn.has_snapshot
    assert {row.tableName for row in acid.sql("SHOW TABLES").collect()} == {"a", "b"}
    with pytest.raises(UnsupportedError, match="a pending table"):
        acid.sql("AUTO CDC INTO a__acidsql_pending FROM a KEYS (record) SEQUENCE BY id")
    acid.sql("ALTER TABLE b RENAME TO c")
    acid.sql("ALTER TABLE a RENAME TO b")
    assert len(waiting(acid, "b")) == 3 and waiting(acid, "c") == []
    with pytest.raises(UnsupportedError, match="beside it"):
        refuse_cdc_tables(acid.metastore, acid.metastore.find(TableName("default", "b")))
    acid.sql("DROP TABLE b")
    acid.sql("DROP TABLE c")
    assert list(acid.metastore.tables("default")) == []


def test_wrong_commit_points_are_refused(acid, both):
    for wrong in ("", 7, "num COLUMNS (a)"):
        with pytest.raises((SettingError, TypeError), match="commit_points"):
            acid.auto_cdc("a", commit_points=wrong)
    with pytest.raises(TypeError):
        acid.auto_cdc({"a": both}, by="tbl")
    text = acid.auto_cdc(
        "a", commit_points=acidsql.CommitPoints("v", txn="txn"), column_list=["id", "v"], **CLAUSES
    )
    with pytest.raises(AnalysisError, match="is a STRING"):
        text.apply(frame(acid, one("a", 1, 1, "x")))
    acid.sql("DROP TABLE a__acidsql_pending")
    acid.sql("CREATE TABLE a__acidsql_pending (id INT)")
    with pytest.raises(AnalysisError, match="no pending table"):
        both.apply(frame(acid, one("a", 1, 1, "x")))


def test_no_column_is_renamed_while_records_wait_that_have_its_old_name(acid):
    acid.sql("CREATE TABLE a (id INT, v STRING)")
    cdc = acid.auto_cdc("a", column_list=["id", "v"], commit_points=LAST, **CLAUSES)
    cdc.apply(frame(acid, one("a", 1, 1, "x")))
    for change in ("RENAME COLUMN v TO w", "REPLACE COLUMNS (number INT, v STRING)"):
        with pytest.raises(UnsupportedError, match="records wait in default.a__acidsql_pending"):
            acid.sql(f"ALTER TABLE a {change}")
    acid.sql("ALTER TABLE a CHANGE COLUMN v v STRING COMMENT 'the same name'")
    cdc.apply(frame(acid, one("a", 2, 2, "x", last=True)))
    acid.sql("ALTER TABLE a RENAME COLUMN v TO w")
    assert sorted(map(tuple, acid.table("a").collect())) == [(1, "v1"), (2, "v2")]
