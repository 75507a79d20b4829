"""AUTO CDC as a statement: what it refuses, its declarations, its transaction, its state table."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from kit_cdc import Change, deleted, live, put
from over_hive import beside

import acidsql
from acidsql.acid.table import TableName
from acidsql.errors import AcidSqlError, ConstraintError, SqlError, TxnError, UnsupportedError
from acidsql.statements.cdc.evaluation import Evaluator
from acidsql.statements.directories.moving import refuse_cdc_tables
from acidsql.statements.dml.write import Writer

pytestmark = [pytest.mark.spark, pytest.mark.needs("keeps_state_tables")]

CDC = (
    "AUTO CDC INTO t FROM s KEYS (id) APPLY AS DELETE WHEN op = 'd' "
    "SEQUENCE BY struct(ts, batch) COLUMNS * EXCEPT (op, ts, batch)"
)


@pytest.fixture
def t(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, p STRING)")


@pytest.fixture(scope="module")
def target(spark, tmp_path_factory):
    """A session with a target for statements that fail: so it stays as it is."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    with acidsql.connect(spark, warehouse=str(warehouse), compactor="off") as acid:
        acid.sql("CREATE TABLE t (id INT, v STRING, p STRING)")
        acid.sql("CREATE TABLE twice (id INT, v STRING, p STRING)")
        acid.sql("INSERT INTO twice VALUES (1, 'a', 'x'), (1, 'b', 'x')")
        put(acid, "s", [Change(1, "stays", 5), Change(2, None, 5, op="d")])
        acid.sql(CDC)
        yield acid


def no_trace(acid, table="t") -> bool:
    """Whether a table's directory has no temporary files."""
    return not list(Path(acid.warehouse, table).glob("_tmp_*"))


# ── what it refuses ──────────────────────────────────────────────────────────────────────────

GOOD = [Change(1, "new", 9), Change(3, "new", 9)]
BAD = {
    "NULL_KEY": [Change(None, "a", 9)],
    "NULL_SEQUENCE": [Change(4, "a", 9, None)],
    "CONFLICTING_RECORDS": [Change(4, "a", 9), Change(4, "b", 9)],
}


@pytest.mark.parametrize("condition", BAD)
def test_one_bad_record_refuses_all_of_them_and_names_a_key(target, condition):
    put(target, "s", [*GOOD, *BAD[condition]])
    with pytest.raises(ConstraintError) as caught:
        target.sql(CDC)
    assert caught.value.condition == f"AUTOCDC_MICROBATCH_VALIDATION.{condition}"
    assert f"(id) = ({'NULL' if condition == 'NULL_KEY' else 4})" in caught.value.message
    assert live(target) == {1: ("stays", "x")} and deleted(target) == {2}
    assert no_trace(target)


def test_an_upsert_and_a_delete_at_one_order_are_a_conflict(target):
    put(target, "s", [Change(4, "a", 9), Change(4, "a", 9, op="d")])
    with pytest.raises(ConstraintError, match="CONFLICTING_RECORDS"):
        target.sql(CDC)


def test_a_target_that_has_a_key_twice_is_nobodys_replica(target):
    put(target, "s", [*GOOD])
    with pytest.raises(ConstraintError) as caught:
        target.sql(CDC.replace("INTO t", "INTO twice"))
    assert caught.value.condition == "AUTOCDC_TARGET_KEY_NOT_UNIQUE"
    assert "(id) = (1)" in caught.value.message
    assert no_trace(target, "twice")


@pytest.mark.parametrize(
    ("clauses", "condition", "place"),
    [
        ("KEYS (id) SEQUENCE BY map(ts, 1) COLUMNS (v)",
         "AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE", "map(ts, 1)"),
        ("KEYS (id) SEQUENCE BY nonsense COLUMNS (v)",
         "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nonsense"),
        ("KEYS (id) SEQUENCE BY ts", "UNRESOLVED_COLUMN", "s"),
        ("KEYS (id) SEQUENCE BY ts COLUMNS (v, gone)", "UNRESOLVED_COLUMN", "gone"),
        ("KEYS (id, id) SEQUENCE BY ts COLUMNS (v)", "COLUMN_ALREADY_EXISTS", "id"),
        ("KEYS (gone) SEQUENCE BY ts COLUMNS (v)", "UNRESOLVED_COLUMN", "gone"),
        ("KEYS (id) SEQUENCE BY ts COLUMNS * EXCEPT (id, op, ts, batch)",
         "UNRESOLVED_COLUMN", "id"),
        ("(SELECT v, ts FROM s) KEYS (id) SEQUENCE BY ts COLUMNS (v)", "UNRESOLVED_COLUMN",
         "(SELECT v, ts FROM s)"),
        ("KEYS (id) COLUMNS (v)", "AUTOCDC_CLAUSE_MISSING", "t"),
        ("SEQUENCE BY ts", "AUTOCDC_CLAUSE_MISSING", "t"),
        ("KEYS (id) APPLY AS DELETE WHEN op SEQUENCE BY ts COLUMNS (v)",
         "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "op"),
        ("KEYS (id) SEQUENCE BY (SELECT max(ts) FROM t) COLUMNS (v)", "UNSUPPORTED_FEATURE",
         "(SELECT max(ts) FROM t)"),
        ("KEYS (id, v) SEQUENCE BY struct(ts, batch) COLUMNS (v)",
         "AUTOCDC_INVALID_STATE.KEYS_DRIFT", "t"),
        ("KEYS (id) SEQUENCE BY ts COLUMNS (v)", "AUTOCDC_INVALID_STATE.SEQUENCE_DRIFT", "t"),
        ("KEYS (id) SEQUENCE BY v COLUMNS (v)", "AUTOCDC_INVALID_STATE.SEQUENCE_DRIFT", "t"),
    ],
)  # fmt: skip
def test_a_wrong_clause_fails_where_it_stands(target, clauses, condition, place):
    put(target, "s", GOOD)
    text = f"AUTO CDC INTO t FROM {'' if clauses.startswith('(') else 's '}{clauses}"
    with pytest.raises(SqlError) as caught:
        target.sql(text)
    assert caught.value.condition == condition
    assert text[caught.value.start : caught.value.end] == place


def test_a_target_whose_rows_cannot_change_is_refused(target):
    target.sql("CREATE TRANSACTIONAL TABLE IF NOT EXISTS only (id INT) TBLPROPERTIES "
               "('transactional_properties' = 'insert_only')")  # fmt: skip
    for name, what in (("only", "an insert-only table"), ("t__acidsql_cdc", "a state table")):
        with pytest.raises(UnsupportedError, match=f"AUTO CDC INTO {what}"):
            target.sql(f"AUTO CDC INTO {name} FROM s KEYS (id) SEQUENCE BY ts")


def test_a_metastore_without_state_tables_is_told_at_once(target, monkeypatch):
    less = replace(target.metastore.abilities, keeps_state_tables=False)
    monkeypatch.setattr(type(target.metastore), "abilities", property(lambda _: less))
    for text in (CDC, f"EXPLAIN CHANGES {CDC}"):
        with pytest.raises(UnsupportedError) as caught:
            target.sql(text)
        assert caught.value.condition == "UNSUPPORTED_FEATURE.AUTO_CDC"


# ── declarations ─────────────────────────────────────────────────────────────────────────────


def test_what_is_declared_with_the_table_needs_no_clause(acid):
    acid.sql(
        "CREATE TABLE t (id INT, v STRING, p STRING, ts INT, batch INT, op STRING) TBLPROPERTIES ("
        "'acidsql.cdc.keys' = '`id`', 'acidsql.cdc.sequence.by' = 'struct(ts, batch)', "
        '"acidsql.cdc.delete.when" = "op = \'d\'")'
    )
    put(acid, "s", [Change(1, "a", 1), Change(2, "b", 1), Change(2, None, 2, op="d")])
    acid.sql("AUTO CDC INTO t FROM s")
    assert live(acid) == {1: ("a", "x")}
    acid.sql("AUTO CDC INTO t FROM s KEYS (ID) SEQUENCE BY STRUCT(ts , batch)")  # the same again
    for clause, place in (("KEYS (v)", "v"), ("APPLY AS DELETE WHEN op = 'D'", "op = 'D'")):
        text = f"AUTO CDC INTO t FROM s {clause}"
        with pytest.raises(SqlError) as caught:
            acid.sql(text)
        assert caught.value.condition == "AUTOCDC_DECLARATION_DRIFT"
        assert text[caught.value.start : caught.value.end] == place


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("delete.when", "row_number() OVER (ORDER BY ts) = 1"),
        ("sequence.by", "(SELECT max(ts) FROM s)"),
        ("truncate.when", "op = 'd"),
    ],
)
def test_what_is_declared_is_about_one_record_as_the_clauses_are(acid, name, text):
    """Otherwise the rows would depend on how the records are split into batches."""
    acid.sql(
        "CREATE TABLE t (id INT, v STRING, p STRING, ts INT, batch INT, op STRING) "
        f'TBLPROPERTIES ("acidsql.cdc.{name}" = "{text}")'
    )
    put(acid, "s", [Change(1, "a", 1)])
    order = "" if name == "sequence.by" else "SEQUENCE BY ts"
    with pytest.raises(SqlError) as caught:
        acid.sql(f"AUTO CDC INTO t FROM s KEYS (id) {order}")
    assert caught.value.condition == "INVALID_PROPERTY_VALUE"


# ── columns and types ────────────────────────────────────────────────────────────────────────


def test_columns_that_no_record_sets_keep_their_values_or_get_their_defaults(acid):
    """The row that was there before has no order value: it loses to any record."""
    acid.sql("CREATE TABLE t (id INT, v STRING, kept STRING DEFAULT 'new')")
    acid.sql("INSERT INTO t VALUES (1, 'a', 'mine')")
    acid.sql("CREATE TABLE stg (id BIGINT, v STRING, ts INT)")  # an ACID table as the source
    acid.sql("INSERT INTO stg VALUES (1, 'b', 1), (2, 'c', 1), (3, 'd', 1)")
    cdc = "AUTO CDC INTO t FROM default.stg KEYS (id) SEQUENCE BY stg.ts COLUMNS (v)"
    acid.sql(cdc.replace("default.stg", "(SELECT * FROM default.stg WHERE id < 3) AS stg"))
    acid.sql("DELETE FROM stg WHERE id = 3")
    acid.sql(cdc)
    found = {tuple(row) for row in acid.sql("SELECT * FROM t").collect()}
    assert found == {(1, "b", "mine"), (2, "c", "new")}


def test_keys_and_values_compare_as_their_columns_store_them(acid):
    acid.sql(
        "CREATE TABLE t (k CHAR(3), day DATE, m MAP<STRING, INT>, sequence STRING) "
        "CLUSTERED BY (k) INTO 2 BUCKETS"
    )
    source = (
        "(SELECT k, CAST(day AS TIMESTAMP) AS day, m, q AS sequence, CAST(n AS TIMESTAMP) AS ts "
        "FROM VALUES ('a', DATE '2026-01-02', map('x', 1, 'y', 2), 'one', 1), "
        "('a  ', DATE '2026-01-02', map('y', 2, 'x', 1), 'one', 1), "
        "('b', NULL, NULL, 'two', 2) AS v (k, day, m, q, n))"
    )
    text = (
        f"AUTO CDC INTO t FROM {source} AS c KEYS (k, sequence) SEQUENCE BY c.ts COLUMNS (day, m)"
    )
    (counts,) = acid.sql(text).collect()
    assert (counts.num_inserted_rows, counts.num_duplicate_records) == (2, 1)
    (again,) = acid.sql(text).collect()
    assert (again.num_affected_rows, again.num_duplicate_records) == (0, 3)
    assert acid.sql("SELECT count(*), max(sequence_) FROM t__acidsql_cdc").collect() == [
        (2, 2_000_000)
    ]


def test_keys_with_the_partition_columns_name_rows_of_their_partitions(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, `odd name` INT) PARTITIONED BY (p STRING)")
    acid.sql("INSERT INTO t (id, v, p) VALUES (1, 'other', 'y'), (2, 'b', 'x')")
    put(acid, "s", [Change(1, "new", 1, p="x"), Change(2, None, 1, p="x", op="d")])
    acid.sql(
        "AUTO CDC INTO t FROM (SELECT id, v, p, op, ts AS `odd name` FROM s) KEYS (p, id) "
        "APPLY AS DELETE WHEN op = 'd' SEQUENCE BY `odd name` COLUMNS * EXCEPT (op)"
    )
    found = {tuple(row) for row in acid.sql("SELECT id, v, p FROM t").collect()}
    assert found == {(1, "other", "y"), (1, "new", "x")}
    state = acid.sql("SELECT p, id, sequence FROM t__acidsql_cdc").collect()
    assert [tuple(row) for row in state] == [("x", 2, 1)]


def test_a_source_with_upper_case_names_in_a_session_that_tells_cases_apart(acid, t):
    acid.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        acid.sql(
            "AUTO CDC INTO t FROM (SELECT 1 AS ID, 'a' AS V, 'x' AS P, TIMESTAMP_NTZ "
            "'2026-01-01 00:00:00' AS At) KEYS (id) SEQUENCE BY At COLUMNS (v, p)"
        )
    finally:
        acid.spark.conf.unset("spark.sql.caseSensitive")
    assert live(acid) == {1: ("a", "x")}


def test_texts_as_order_values_get_a_warning(acid, t):
    put(acid, "s", [Change(1, "a", 1)])
    acid.sql("AUTO CDC INTO t FROM s KEYS (id) SEQUENCE BY op COLUMNS (v)")
    assert "'10' is below '9'" in str(acid.last)


# ── one transaction ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("in_block", [False, True], ids=["alone", "between BEGIN and COMMIT"])
def test_if_the_second_table_cannot_be_written_both_stay_as_they_were(
    acid, t, monkeypatch, in_block
):
    put(acid, "s", [Change(1, "a", 1), Change(2, None, 1, op="d")])
    acid.sql(CDC)
    put(acid, "s", [Change(1, None, 2, op="d"), Change(3, "c", 2)])
    written = []
    write = Writer._write_events

    def fail_at_the_second(self, writing, query, *rest):
        written.append(str(query.table.name))
        write(self, writing, query, *rest)
        if len(written) == 2:
            raise OSError("no space left")

    if in_block:
        acid.sql("BEGIN")
    monkeypatch.setattr(Writer, "_write_events", fail_at_the_second)
    with pytest.raises(AcidSqlError, match="no space left"):
        acid.sql(CDC)
    assert written == ["default.t", "default.t__acidsql_cdc"]
    monkeypatch.undo()
    if in_block:
        acid.sql("COMMIT")
    assert live(acid) == {1: ("a", "x")} and deleted(acid) == {2}
    assert no_trace(acid)
    acid.sql(CDC)
    assert live(acid) == {3: ("c", "x")} and deleted(acid) == {1, 2}


def test_two_appliers_of_one_target_wait_for_each_other(acid, t):
    put(acid, "s", [])
    acid.sql(CDC)
    first = [Change(key, "first", key) for key in range(4)]
    second = [Change(key, "second", 2) for key in range(4)]
    with beside(acid, compactor="off") as other, ThreadPoolExecutor(2) as threads:
        for name, changes in (("s1", first), ("s2", second)):
            put(acid, name, changes)
        done = [
            threads.submit(session.sql, CDC.replace("FROM s", f"FROM {name}"))
            for session, name in ((acid, "s1"), (other, "s2"))
        ]
        for one in done:
            one.result()
    # At one order value, the first to come stays.
    assert {key: v for key, (v, _) in live(acid).items() if key != 2} == {
        0: "second", 1: "second", 3: "first",
    }  # fmt: skip


def test_a_rollback_takes_back_both_tables(acid, t):
    put(acid, "s", [Change(1, "a", 1), Change(2, None, 1, op="d")])
    acid.sql("BEGIN")
    acid.sql(CDC)
    assert live(acid) == {1: ("a", "x")} and deleted(acid) == {2}
    put(acid, "s", [Change(1, None, 2, op="d"), Change(2, "late", 0), Change(3, "c", 1)])
    acid.sql(CDC)  # it sees the rows and the order values of this transaction
    assert live(acid) == {3: ("c", "x")} and deleted(acid) == {1, 2}
    acid.sql("ROLLBACK")
    assert live(acid) == {} and deleted(acid) == set()
    acid.sql("DROP TABLE t__acidsql_cdc")
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (9, 'z', 'x')")
    with pytest.raises(TxnError, match="creates default.t__acidsql_cdc"):
        acid.sql(CDC)
    acid.sql("ROLLBACK")
    put(acid, "s", [])
    (counts,) = acid.sql(CDC).collect()
    assert (counts.num_affected_rows, counts.num_records, counts.write_id) == (0, 0, None)


# ── the state table ──────────────────────────────────────────────────────────────────────────


def test_the_state_table_follows_its_table_and_goes_with_it(acid, t):
    put(acid, "s", [Change(1, "a", 1), Change(2, None, 2, op="d")])
    acid.sql(CDC)
    with pytest.raises(SqlError, match="no longer than 128"):  # of the state table's name
        acid.sql(f"ALTER TABLE t RENAME TO {'u' * 120}")
    acid.sql("ALTER TABLE t RENAME TO u")
    put(acid, "s", [Change(2, "late", 1), Change(3, "c", 1)])
    acid.sql(CDC.replace("INTO t", "INTO u"))
    assert live(acid, "u") == {1: ("a", "x"), 3: ("c", "x")} and deleted(acid, "u") == {2}
    assert [row.tableName for row in acid.sql("SHOW TABLES 'u*'").collect()] == ["u"]
    with pytest.raises(UnsupportedError, match="DROP TABLE default.u__acidsql_cdc"):
        refuse_cdc_tables(acid.metastore, acid.metastore.find(TableName("default", "u")))
    acid.sql("DROP TABLE u")
    assert acid.metastore.tables("default") == [] and acid.metastore.pending_cleanups() == []
    acid.sql("CREATE TABLE u (id INT, v STRING, p STRING)")
    acid.sql(CDC.replace("INTO t", "INTO u"))  # a new table knows nothing of the old one's keys
    assert live(acid, "u") == {2: ("late", "x"), 3: ("c", "x")}


def test_if_the_first_statement_fails_its_state_table_goes(acid, t):
    put(acid, "s", [Change(None, "a", 1)])
    with pytest.raises(ConstraintError):
        acid.sql(CDC)
    assert acid.metastore.tables("default") == ["t"] and acid.metastore.pending_cleanups() == []
    acid.sql("BEGIN")
    with pytest.raises(ConstraintError):
        acid.sql(CDC)
    acid.sql("COMMIT")
    put(acid, "s", [Change(1, "a", 1)])
    with pytest.raises(SqlError, match="If the first AUTO CDC failed, there are none"):
        acid.sql(CDC.replace("KEYS (id)", "KEYS (id, v)"))
    acid.sql("DROP TABLE t__acidsql_cdc")
    acid.sql(CDC.replace("KEYS (id)", "KEYS (id, v)"))
    assert live(acid) == {1: ("a", "x")}


def test_a_state_table_that_has_rows_or_is_in_use_is_not_dropped(acid, t):
    put(acid, "s", [Change(1, "a", 1)])
    acid.sql(CDC)
    state = acid.metastore.find(TableName("default", "t__acidsql_cdc"))
    tables = acid._runner._wiring.tables
    tables.drop_unwritten(state, "a statement that failed")
    assert acid.metastore.find(state.name) == state
    acid.sql("DROP TABLE t__acidsql_cdc")
    assert tables.create(acid.metastore.find(TableName("default", "t")), state, "text")
    with beside(acid, compactor="off") as other:
        other.sql("BEGIN")
        other.sql("INSERT INTO t__acidsql_cdc (id) VALUES (1)")
        tables.drop_unwritten(state, "a statement that failed")
        assert acid.metastore.find(state.name) is not None
        other.sql("ROLLBACK")
    tables.drop_unwritten(state, "a statement that failed")
    assert acid.metastore.find(state.name) is None


def test_a_table_that_only_has_the_name_of_a_state_table(acid, t):
    put(acid, "s", [Change(1, "a", 1)])
    for columns in ("(x INT)", "(x INT) TBLPROPERTIES ('acidsql.cdc.order' = '')"):
        acid.sql(f"CREATE TABLE t__acidsql_cdc {columns}")
        with pytest.raises(SqlError) as caught:
            acid.sql(CDC)
        assert caught.value.condition == "AUTOCDC_INVALID_STATE.NAME_TAKEN"
        shown = {row.tableName for row in acid.sql("SHOW TABLES 't*'").collect()}
        assert shown == ({"t"} if "PROPERTIES" in columns else {"t", "t__acidsql_cdc"})
        acid.sql("DROP TABLE t__acidsql_cdc")


# ── the first load ───────────────────────────────────────────────────────────────────────────


def test_a_first_load_joins_nothing_and_changes_may_overlap_it(acid, monkeypatch):
    acid.sql("CREATE TABLE t (id INT, v STRING, n INT DEFAULT 7) PARTITIONED BY (p STRING)")
    kept = []
    evaluate = Evaluator.evaluate

    def count(self, *rest):
        kept.append(1)
        return evaluate(self, *rest)

    monkeypatch.setattr(Evaluator, "evaluate", count)
    load = [
        Change(1, "old", 1), Change(1, "new", 2), Change(2, None, 2, op="d"), Change(3, "c", 5),
        Change(4, "too old", 1, p="y"), Change(0, None, 1, 1, op="t"),
    ]  # fmt: skip
    text = CDC.replace("SEQUENCE", "APPLY AS TRUNCATE WHEN op = 't' SEQUENCE")
    put(acid, "s", load)
    (counts,) = acid.sql(text).collect()
    assert len(kept) == 1  # the fold, but no decision
    assert (counts.num_inserted_rows, counts.num_affected_rows) == (2, 2)
    assert (counts.num_records, counts.num_stale_records) == (6, 2)
    assert live(acid) == {1: ("new", "x"), 3: ("c", "x")} and deleted(acid) == {2}
    assert {row.n for row in acid.sql("SELECT n FROM t").collect()} == {7}
    assert not list(Path(acid.warehouse).glob("t*/**/delete_delta_*"))
    put(acid, "s", [*load, Change(2, "late", 1), Change(3, "newer", 6)])
    acid.sql(text)
    assert len(kept) == 3
    assert live(acid) == {1: ("new", "x"), 3: ("newer", "x")} and deleted(acid) == {2}


def test_a_table_with_rows_or_with_order_values_is_no_first_load(acid, t):
    acid.sql("INSERT INTO t VALUES (1, 'by hand', 'x')")
    put(acid, "s", [Change(1, "a", 1), Change(2, "b", 1)])
    acid.sql(CDC)
    assert live(acid) == {1: ("a", "x"), 2: ("b", "x")}
    acid.sql("TRUNCATE TABLE t")
    acid.sql(CDC)
    assert live(acid) == {}


def test_explain_says_the_rules_and_changes_nothing(acid, t):
    put(acid, "s", [Change(1, "a", 1)])
    for is_new in (True, False):
        text = acid.sql(f"EXPLAIN {CDC}").collect()[0].plan
        assert "target: default.t, keys id" in text
        assert "order: struct(ts, batch), kept by default.t__acidsql_cdc" in text
        assert ("(to be created)" in text) == is_new
        assert "deletes: op = 'd'" in text and "EXCL_WRITE on default.t__acidsql_cdc" in text
        if is_new:
            assert acid.metastore.tables("default") == ["t"]
            acid.sql(CDC)
    assert "default.t: 1 of 1 files" in text
