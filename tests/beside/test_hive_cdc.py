"""AUTO CDC into tables that Hive reads, renames, drops and makes again."""

from __future__ import annotations

import pytest

from acidsql.acid import cdc
from acidsql.acid.table import TableName
from acidsql.errors import AnalysisError
from acidsql.statements.ddl.state_tables import StateTables

TARGET = "(id INT, v STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')"


def auto_cdc(*records, into="t", more=""):
    """The statement over these records, which are ids, values, order values and codes."""
    rows = ", ".join(map(str, records or [(0, "", 0, "")]))
    return (
        f"AUTO CDC INTO {into} FROM (SELECT * FROM VALUES {rows} AS s(id, v, ts, op) "
        f"LIMIT {len(records)}) KEYS (id) APPLY AS DELETE WHEN op = 'd' SEQUENCE BY ts "
        f"COLUMNS (id, v){more}"
    )


def refused(both, **what):
    with pytest.raises(AnalysisError) as caught:
        both.acid.sql(auto_cdc(**what))
    return caught.value.condition.removeprefix("AUTOCDC_INVALID_STATE.")


def found(both, name):
    return both.acid.metastore.find(TableName(both.database, name))


def test_hive_reads_what_is_applied_and_late_records_change_nothing(both):
    both.hive.sql(f"CREATE TABLE t {TARGET}")
    both.hive.sql("INSERT INTO t VALUES (9, 'was there')")
    first = auto_cdc((1, "a", 1, "u"), (2, "b", 1, "u"), (3, None, 5, "d")).replace("None", "NULL")
    for _ in range(2):  # again, as a source that sends twice does
        both.run("acidsql", first)
        assert both.rows("t") == [(1, "a"), (2, "b"), (9, "was there")]
    both.run("hive", "UPDATE t SET v = 'by hive' WHERE id = 1")
    both.run("hive", "ALTER TABLE t COMPACT 'major'")
    both.run("hive", "!worker")
    late = auto_cdc((1, "late", 0, "u"), (2, "b", 2, "d"), (3, "late", 4, "u"), (9, "c", 1, "u"))
    both.run("acidsql", late)
    assert both.rows("t") == [(1, "by hive"), (9, "c")]
    state = both.hive.sql("SELECT id, `sequence`, deleted FROM t__acidsql_cdc")
    assert sorted(state) == [[1, 1, False], [2, 2, True], [3, 5, True], [9, 1, False]]


def test_versions_of_rows_are_kept_as_hive_reads_them(both):
    both.hive.sql(
        "CREATE TABLE t (id INT, v STRING, `__start_at` INT, `__end_at` INT) STORED AS ORC "
        "TBLPROPERTIES ('transactional'='true')"
    )
    for records in ([(1, "a", 1, "u"), (1, "c", 5, "u"), (2, "x", 1, "u")], [(1, "b", 3, "u")]):
        both.run("acidsql", auto_cdc(*records, more=" STORED AS SCD TYPE 2"))
    versions = [(1, "a", 1, 3), (1, "b", 3, 5), (1, "c", 5, None), (2, "x", 1, None)]
    assert both.rows("t") == versions


def test_what_hive_renames_drops_or_makes_again_is_told_and_no_order_value_gets_lost(both):
    both.hive.sql(f"CREATE TABLE t {TARGET}")
    both.acid.sql(auto_cdc((1, "a", 1, "u"), (2, "b", 5, "d")))
    both.hive.sql("ALTER TABLE t RENAME TO u")
    assert refused(both, into="u") == "MISSING"
    both.hive.sql(f"CREATE TABLE t {TARGET}")
    assert refused(both) == "OF_ANOTHER_TABLE"
    both.acid.sql("DROP TABLE t")
    assert found(both, "t__acidsql_cdc") is not None  # it is not the one of this t
    both.acid.sql("ALTER TABLE t__acidsql_cdc RENAME TO u__acidsql_cdc")
    both.acid.sql(auto_cdc((2, "late", 4, "u"), (3, "c", 1, "u"), into="u"))
    assert both.rows("u") == [(1, "a"), (3, "c")]
    both.acid.sql("ALTER TABLE u RENAME TO w")
    assert found(both, "u__acidsql_cdc") is None and found(both, "w__acidsql_cdc") is not None

    both.hive.sql("DROP TABLE w")
    both.hive.sql(f"CREATE TABLE w {TARGET}")
    assert refused(both, into="w") == "OF_ANOTHER_TABLE"
    both.acid.sql("DROP TABLE w__acidsql_cdc")
    both.acid.sql(auto_cdc((2, "anew", 4, "u"), into="w"))
    assert both.rows("w") == [(2, "anew")]
    both.hive.sql("DROP TABLE w__acidsql_cdc")
    assert refused(both, into="w") == "MISSING"
    shown = both.acid.sql("SHOW CREATE TABLE w").collect()[0][0]
    assert "bond" not in shown
    both.acid.sql("CREATE TABLE like_w LIKE w")
    assert found(both, "like_w").bonds == {}
    both.hive.sql("ALTER TABLE w UNSET TBLPROPERTIES ('acidsql.cdc.bond.cdc')")
    both.acid.sql(auto_cdc((2, "b", 3, "u"), into="w"))
    both.acid.sql("DROP TABLE w")
    assert found(both, "w__acidsql_cdc") is None


def test_a_process_that_died_while_it_made_the_state_table_is_followed_by_the_next(
    both, monkeypatch
):
    both.hive.sql(f"CREATE TABLE t {TARGET}")

    def dies(*_):
        raise SystemExit

    with monkeypatch.context() as killed:
        killed.setattr(StateTables, "note_bond", dies)
        killed.setattr(StateTables, "drop_unwritten", lambda *_: None)
        with pytest.raises(SystemExit):
            both.acid.sql(auto_cdc())
    state = found(both, "t__acidsql_cdc")
    assert state is not None and found(both, "t").bonds == {}
    with pytest.raises(Exception, match="NULL_KEY"):  # a failed statement leaves what was there
        both.acid.sql(auto_cdc((None, "a", 1, "u")).replace("None", "CAST(NULL AS INT)"))
    assert found(both, "t__acidsql_cdc") == state
    assert cdc.bond_of(found(both, "t"), state.name) == cdc.own_bond(state)


def test_a_stream_of_changes_goes_on_after_a_crash_and_a_rename_by_hive(both, tmp_path):
    both.hive.sql(f"CREATE TABLE t {TARGET}")
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    source.mkdir()
    spark = both.acid.spark

    def run(into, *lines):
        if lines:
            (source / f"{len(list(source.iterdir()))}.csv").write_text("\n".join(lines))
        sink = both.acid.auto_cdc(
            f"{both.database}.{into}", keys="id", sequence_by="ts",
            apply_as_deletes="op = 'd'", column_list=["id", "v"],
        )  # fmt: skip
        rows = spark.readStream.schema("id INT, v STRING, ts INT, op STRING").csv(str(source))
        query = rows.writeStream.foreachBatch(sink).trigger(availableNow=True)
        query = query.option("checkpointLocation", str(checkpoint)).start()
        query.awaitTermination()
        return sink

    run("t", "1,a,1,u", "2,b,5,d")
    both.hive.sql("ALTER TABLE t RENAME TO u")
    with pytest.raises(Exception, match=r"u__acidsql_cdc.* is not there"):
        run("u", "2,late,4,u", "3,c,1,u")
    both.hive.sql("ALTER TABLE t__acidsql_cdc RENAME TO u__acidsql_cdc")
    run("u")
    assert both.rows("u") == [(1, "a"), (3, "c")]
    for note in (checkpoint / "commits").glob("*1*"):  # as if Spark had died before it noted this
        note.unlink()
    both.hive.sql("UPDATE u SET v = 'by hive'")
    assert "skipped: batch 1" in str(run("u").last)
    assert both.rows("u") == [(1, "by hive"), (3, "by hive")]
    entries = both.acid.streams().collect()
    assert [(one.sink, one.txnVersion) for one in entries] == [(f"{both.database}.u", 1)]
    both.acid.forget_stream(entries[0].txnAppId)
