"""INSERT of plain literals: without Spark's parser, with exactly the same result as with it.

``ACIDSQL_PLAIN_EXAMPLES`` sets the number of statements that run both ways. With more than the
default number they differ from run to run.
"""

from __future__ import annotations

import os
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kit import counts, ordered, rows
from over_hive import beside

from acidsql.costs import FastPath
from acidsql.errors import AcidSqlError
from acidsql.sql import parser
from acidsql.statements.dml import prepare
from acidsql.storage.spark import views
from acidsql.storage.writing import save

OTHERS = (
    "v (v VARCHAR(3))", "nn (i INT NOT NULL)", "p (i INT) PARTITIONED BY (p INT)",
    "df (i INT, j INT DEFAULT 7)", "m (i INT, m MAP<INT, INT>)",
    "so (i INT) CLUSTERED BY (i) SORTED BY (i) INTO 2 BUCKETS "
    "TBLPROPERTIES ('transactional_properties'='insert_only')",
)  # fmt: skip


@pytest.fixture
def t(acid):
    """A table with plain columns and others."""
    acid.sql("CREATE TABLE t (i INT, s STRING, n DECIMAL(10,2), d DOUBLE, ts TIMESTAMP)")
    for ddl in OTHERS:
        acid.sql(f"CREATE TABLE {ddl}")
    return acid


@pytest.fixture
def asked(spark, monkeypatch):
    """The texts that Spark is asked to parse, without the counts that a statement returns."""
    found = []

    def noting(ask):
        def note(session, text, *args, **keywords):
            if "num_affected_rows" not in text:
                found.append(text)
            return ask(session, text, *args, **keywords)

        return note

    monkeypatch.setattr(type(spark), "sql", noting(type(spark).sql))
    monkeypatch.setattr(views, "sql", noting(views.sql))  # in one message
    return found


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (1, 'abc', 12.34, 1.5, TIMESTAMP'2024-01-01 00:00:00')",
        "insert into table t values (-1, NULL, 3, 3, null), (2, '', 1.5, -0.5, NULL);",
        "INSERT INTO default.t (s, `I`) VALUES ('only', 1)",
        "INSERT INTO df (j, i) VALUES (1, 2)",
        "INSERT INTO t (d, n) VALUES (0.25D, CAST(1.50 AS DECIMAL(10,2))), (-1D, NULL)",
    ],
)
def test_spark_is_not_asked_about_plain_rows(t, asked, text):
    t.sql(text)
    assert asked == []


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t (i) VALUES (1L)", "INSERT INTO t (i) VALUES (1 + 1)",
        "INSERT INTO t (s) VALUES (1)", "INSERT INTO t (i) VALUES (1.0)",
        "INSERT INTO t (n) VALUES (1.005)", 'INSERT INTO t (s) VALUES ("a")',
        "INSERT INTO t (s) VALUES ('it''s')", "INSERT INTO t (s) VALUES ('a\\n')",
        "INSERT INTO t (i) VALUES (DEFAULT)", "INSERT INTO t (i) VALUES (1) -- said",
        "INSERT INTO t (d) VALUES (1e3)", "INSERT INTO t (d) VALUES (1.23456789012345678)",
        "INSERT INTO t (i) SELECT 1", "INSERT OVERWRITE t (i) VALUES (1)",
        "INSERT INTO v VALUES ('a')", "INSERT INTO nn VALUES (1)", "INSERT INTO p VALUES (1, 1)",
        "INSERT INTO df (i) VALUES (1)", "INSERT INTO m (i) VALUES (1)",
        "INSERT INTO so VALUES (1)",
    ],
)  # fmt: skip
@pytest.mark.classic
def test_spark_is_asked_about_all_others(t, asked, text):
    t.sql(text)
    assert asked != []


@pytest.mark.classic
def test_arguments_the_time_zone_and_the_limit_are_minded(t, asked, conf):
    t.sql("INSERT INTO t (i) VALUES (1)", {"unused": 1})
    assert asked != []
    asked.clear()
    t.sql("SET acidsql.values.max.rows = 1")
    t.sql("INSERT INTO t (i) VALUES (1), (2)")
    assert asked != []
    conf("spark.sql.session.timeZone", "America/New_York")
    for kind, by_spark in (("TIMESTAMP_NTZ", False), ("TIMESTAMP", True)):
        asked.clear()
        # A time that New York skipped.
        t.sql(f"INSERT INTO t (ts) VALUES ({kind}'2024-03-10 02:30:00')")
        assert bool(asked) is by_spark
    assert [row[0] for row in rows(t, "SELECT string(ts) FROM t WHERE ts IS NOT NULL")] == [
        "2024-03-10 02:30:00", "2024-03-10 03:30:00",
    ]  # fmt: skip


def test_what_is_written_and_what_is_said_of_it(t):
    assert counts(t, "INSERT INTO t VALUES (1, 'é𝄞\t', 3, 1.5, NULL)") == (1, 0, 0)
    assert counts(t, "INSERT INTO t (ts, n) VALUES (TIMESTAMP'2024-03-10 02:30:00', -0.0), "
                  "(NULL, 99999999.99)") == (2, 0, 0)  # fmt: skip
    assert t.last.write_ids == {"default.t": 2}
    shown = "row__id.writeid, row__id.rowid, i, s, n, d, string(ts)"
    assert rows(t, f"SELECT {shown} FROM t") == ordered([
        (1, 0, 1, "é𝄞\t", Decimal("3.00"), 1.5, None),
        (2, 0, None, None, Decimal("0.00"), None, "2024-03-10 02:30:00"),
        (2, 1, None, None, Decimal("99999999.99"), None, None),
    ])  # fmt: skip


def test_a_table_that_changes_while_the_lock_is_waited_for_is_looked_at_again(t, monkeypatch):
    plan = prepare.plan_dml
    with beside(t) as other:
        later = ["ALTER TABLE df ADD COLUMNS (k INT DEFAULT 9)"]

        def plan_and_change(*args, **keywords):
            prepared = plan(*args, **keywords)
            if later:
                other.sql(later.pop())
            return prepared

        monkeypatch.setattr(prepare, "plan_dml", plan_and_change)
        t.sql("INSERT INTO df (j, i) VALUES (1, 2)")
    assert rows(t, "SELECT * FROM df") == [(2, 1, 9)]


def test_a_transaction_rolls_plain_rows_back(t):
    t.sql("BEGIN")
    t.sql("INSERT INTO t (i) VALUES (1)")
    t.sql("SAVEPOINT s")
    t.sql("INSERT INTO t (i) VALUES (2)")
    assert rows(t, "SELECT i FROM t") == [(1,), (2,)]
    t.sql("ROLLBACK TO s")
    t.sql("COMMIT")
    assert rows(t, "SELECT i FROM t") == [(1,)]


# ── both ways ────────────────────────────────────────────────────────────────────────────────

EXAMPLES = int(os.environ.get("ACIDSQL_PLAIN_EXAMPLES", "100"))
TYPES = {
    "ti": "TINYINT", "si": "SMALLINT", "i": "INT", "bi": "BIGINT", "f": "FLOAT", "d": "DOUBLE",
    "n5": "DECIMAL(5,2)", "n2": "DECIMAL(2,2)", "n18": "DECIMAL(38,18)", "n20": "DECIMAL(38,20)",
    "n38": "DECIMAL(38,0)", "s": "STRING", "b": "BOOLEAN", "da": "DATE", "ts": "TIMESTAMP",
    "c": "CHAR(3)", "v": "VARCHAR(3)", "x": "BINARY",
}  # fmt: skip
SESSIONS = [
    {}, {"spark.sql.ansi.enabled": "false"}, {"spark.sql.storeAssignmentPolicy": "LEGACY"},
    {"spark.sql.parser.escapedStringLiterals": "true"},
    {"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"},
    {"spark.sql.session.timeZone": "America/New_York"},
    {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
    {"spark.sql.decimalOperations.allowPrecisionLoss": "false"},
    {"spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "true"},
    {"spark.sql.ansi.doubleQuotedIdentifiers": "true"},
]  # fmt: skip
_digits = st.text("0123456789", min_size=1, max_size=6)
_many_digits = st.text("0123456789", min_size=1, max_size=38)
_sign = st.sampled_from(["", "-"])
_edges = [s * (2**b) - d for b in (7, 15, 24, 31, 53, 63) for s in (1, -1) for d in (-1, 0, 1)]
LITERALS = {
    "whole": st.one_of(
        st.sampled_from(_edges).map(str), st.builds("{}{}".format, _sign, _digits),
        st.builds("{}{}".format, _sign, _many_digits),
    ),
    "decimal": st.one_of(
        st.builds("{}{}.{}".format, _sign, _digits, _digits),
        st.builds("{}{}.{}".format, _sign, _many_digits, _digits),
        st.builds("{}0.{}".format, _sign, _many_digits),
        st.sampled_from(["-0.0", "0.1", "16777217.0", "0.000001", "999.99", "999.995", "1.50"]),
    ),
    "text": st.one_of(
        st.text(max_size=8).map("'{}'".format),
        st.sampled_from(["''", "'a b '", "'é𝄞\t\n'", "'1'", "'true'", "'it''s'", "'-- ? :x'",
                         "'2024-01-01'", "'${x}'", "'ab\\\\'"]),
    ),
    "double": st.one_of(
        st.builds("{}{}.{}D".format, _sign, _digits, _digits),
        st.builds("{}{}.{}d".format, _sign, _many_digits, _many_digits),
        st.sampled_from(["-0D", "-0.0D", "0.1D", "9007199254740993D"]),
    ),
    "cast": st.builds(
        "CAST({}{}.{} AS DECIMAL({}))".format, _sign, _digits, _digits,
        st.sampled_from(["5,2", "5, 2", "10,2", "3,0", "38,0"]),
    ),
    "truth": st.sampled_from(["true", "FALSE", "True"]),
    "day": st.dates().map("DATE'{}'".format)
    | st.sampled_from(["date '0000-01-01'", "DATE'2023-02-29'", "DATE'1582-10-10'"]),
    "time": st.datetimes().map(lambda at: f"TIMESTAMP_NTZ'{at.isoformat(' ')}'")
    | st.datetimes().map(lambda at: f"TIMESTAMP'{at.isoformat(' ')}'")
    | st.sampled_from(["TIMESTAMP'2024-03-10 02:30:00'", "timestamp_ntz '2024-01-01 00:00:00.5'"]),
    "other": st.sampled_from(["1L", "1.5F", "1e2", "1 + 1", "\"a\"", "upper('a')", "DEFAULT",
                              "x'00'"]),
}  # fmt: skip
SUITED = {
    "ti": "whole", "si": "whole", "i": "whole", "bi": "whole", "f": "decimal", "d": "decimal",
    "n5": "decimal", "n2": "decimal", "n18": "decimal", "n20": "decimal", "n38": "whole",
    "s": "text", "b": "truth", "da": "day", "ts": "time", "c": "text", "v": "text", "x": "text",
}  # fmt: skip


@st.composite
def inserts(draw):
    """A column list and rows. Each column has literals of one or two kinds, which mostly fit."""
    names = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3, unique=True))
    height = draw(st.integers(1, 3))
    columns = []
    for name in names:
        suited = st.just(SUITED[name])
        kinds = [draw(suited | suited | suited | st.sampled_from(list(LITERALS)))]
        if SUITED[name] == "decimal":
            kinds = draw(st.sampled_from([kinds, [*kinds, "whole"], ["double"], ["cast"]]))
        value = st.one_of(st.just("NULL"), *(LITERALS[kind] for kind in kinds))
        columns.append(draw(st.lists(value, min_size=height, max_size=height)))
    rows = ", ".join(f"({', '.join(row)})" for row in zip(*columns, strict=True))
    return f"({', '.join(names)}) VALUES {rows}"


@pytest.fixture
def attempt(acid, monkeypatch):
    """Run an INSERT. Returns the written Arrow tables, or the error; and whether Spark was
    needed."""
    written: list[object] = []
    write = save.write_rows
    monkeypatch.setattr(
        save, "write_rows", lambda t, *rest: (written.append(t), write(t, *rest))[1]
    )

    def run(text: str, *, plain: bool) -> tuple[tuple[object, ...], bool]:
        written.clear()
        with monkeypatch.context() as patch:
            if not plain:
                patch.setattr(parser, "plain_insert", lambda *_: None)
            try:
                acid.sql(text)
            except AcidSqlError as error:
                return (type(error), error.condition, str(error)), False
        return tuple(written), FastPath.PLAIN_LITERALS not in acid.last.costs.fast_paths

    return run


def test_both_ways_write_the_same(spark, acid, attempt, conf):
    acid.sql(f"CREATE TABLE t ({', '.join(f'{n} {kind}' for n, kind in TYPES.items())})")
    usual = {name: spark.conf.get(name) for one in SESSIONS for name in one}
    ways: Counter[str] = Counter()
    pairs: list[tuple[int, int]] = []

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=EXAMPLES <= 100,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.sampled_from(SESSIONS), inserts())
    @example({}, "(n20) VALUES (1), (0.12345678901234567890)")
    @example({}, "(d, f) VALUES (-0.0, -0), (0.1, 0.1)")
    @example({}, "(n18, d) VALUES (12345678901234567890, 1), (0.123456789012345678, 1.5)")
    @example({}, "(si, s) VALUES (1, 'a', 1)")
    @example({}, "(d) VALUES (0.1D), (-0.0D), (NULL)")
    @example({}, "(d) VALUES (0.1D), (1)")
    @example({}, "(n5) VALUES (CAST(1.5 AS DECIMAL(5,2))), (CAST(-0.05 AS DECIMAL(5,2)))")
    @example({}, "(n5) VALUES (CAST(1.555 AS DECIMAL(5,2))), (CAST(1 AS DECIMAL(10,2)))")
    @example({}, "(nope) VALUES (1)")
    @example({"spark.sql.session.timeZone": "America/New_York"},
             "(ts) VALUES (TIMESTAMP'2024-03-10 02:30:00')")  # fmt: skip
    def run(session, values):
        for name, value in {**usual, **session}.items():
            conf(name, value)
        expected, _ = attempt(f"INSERT INTO t {values}", plain=False)
        reference = acid.last
        found, by_spark = attempt(f"INSERT INTO t {values}", plain=True)
        assert found == expected, values
        if isinstance(found[0], type):
            ways["error"] += 1
            return
        assert [table.schema for table in found] == [table.schema for table in expected]
        ways["by Spark" if by_spark else "plain"] += 1
        pairs.append((reference.write_ids["default.t"], acid.last.write_ids["default.t"]))

    run()
    assert ways["plain"] >= EXAMPLES / 5, ways
    assert ways["by Spark"] and ways["error"], ways
    _both_read_the_same(acid, pairs)


def _both_read_the_same(acid, pairs):
    """Compare the values and row ids that are read back."""
    shown = ", ".join(f"string({n})" if n in ("da", "ts") else n for n in TYPES)
    by_write_id: dict[int, list[object]] = {}
    for row in acid.sql(f"SELECT row__id, {shown} FROM t").collect():
        by_write_id.setdefault(row[0].writeid, []).append((row[0].bucketid, row[0].rowid, *row[1:]))
    for reference, plain in pairs:
        assert sorted(by_write_id[reference], key=repr) == sorted(by_write_id[plain], key=repr)
