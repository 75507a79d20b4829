"""Random sequences of statements on all kinds of tables, compared with a table of plain Python.

``ACIDSQL_ORACLE_EXAMPLES`` sets the number of sequences. With more than the default number they
differ from run to run.
"""

from __future__ import annotations

import itertools
import os

import pytest
from by_methods import counts_by_method, frame
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit import counts as by_sql
from kit import ordered, row_ids_are_unique, rows, table
from model import CHECK, Clause, Condition, Model, text, values

from acidsql.errors import ConstraintError, MergeCardinalityError
from acidsql.storage.reading import read

EXAMPLES = int(os.environ.get("ACIDSQL_ORACLE_EXAMPLES", "12"))
LAYOUTS = {
    "plain": "id INT, v STRING, n INT, p STRING",
    "bucketed": "id INT, v STRING, n INT, p STRING) CLUSTERED BY (id) INTO 3 BUCKETS --",
    "partitioned": "id INT, v STRING, n INT) PARTITIONED BY (p STRING",
    "both": "id INT, v STRING, n INT) PARTITIONED BY (p STRING) "
    "CLUSTERED BY (id) INTO 2 BUCKETS --",
}
CHECKED = {"bucketed", "partitioned"}
# The statements that the methods of a session have, too.
METHODS = {"values", "select", "overwrite", "delete", "update", "move", "merge"}

ids = st.none() | st.integers(0, 5)
some_rows = st.lists(
    st.tuples(ids, st.sampled_from([None, "", "a", "b"]), st.none() | st.integers(0, 3),
              st.sampled_from([None, "", "x", "y/z", "ä %"])),
    min_size=1, max_size=6,
)  # fmt: skip
tests = st.builds(
    Condition, st.sampled_from(["id", "n"]), st.sampled_from(["=", "<", "<>", "IS NULL"]),
    st.none() | st.integers(0, 5),
)  # fmt: skip


@st.composite
def merge_clauses(draw):
    kinds = [
        ("MATCHED", ["update", "delete", "move"]),
        ("NOT MATCHED", ["insert"]),
        ("NOT MATCHED BY SOURCE", ["update", "delete"]),
    ]
    found = []
    for when, actions in kinds:
        for _ in range(draw(st.integers(0, 2))):
            # A clause without a condition must be the last of its kind.
            found.append(Clause(when, draw(st.sampled_from(actions)), draw(tests)))
        if draw(st.booleans()):
            found.append(Clause(when, draw(st.sampled_from(actions)), None))
    return found or [Clause("MATCHED", "delete", None)]


statements = st.one_of(
    st.tuples(st.sampled_from(["values", "select", "overwrite"]), some_rows),
    st.tuples(st.just("multi"), some_rows, tests, tests),
    st.tuples(st.just("replace_where"), some_rows, tests),
    st.tuples(st.just("replace_using"), some_rows, st.sampled_from(["id", "p", "v, n"])),
    st.tuples(st.just("delete"), tests),
    st.tuples(st.just("update"), tests, st.sampled_from([None, "c", ""]), st.integers(0, 2)),
    st.tuples(st.just("move"), tests, st.sampled_from([None, "", "x", "y/z", "new"])),
    st.tuples(st.just("merge"), some_rows, merge_clauses()),
    st.tuples(st.just("merge"), some_rows, merge_clauses()),
)
or_compactions = statements | st.tuples(st.just("compact"), st.sampled_from(["minor", "major"]))
_numbers = itertools.count()


@pytest.mark.parametrize("by_the_driver", [False, True], ids=["reference", "few_by_the_driver"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_table_is_what_plain_python_says(spark, acid, monkeypatch, layout, by_the_driver):
    if by_the_driver:  # the driver also searches for the rows
        monkeypatch.setattr(read, "MUCH_DATA", 0)
    else:
        acid.sql("SET acidsql.fast.paths = false")

    @settings(
        max_examples=max(1, EXAMPLES // len(LAYOUTS)), deadline=None, database=None,
        derandomize=EXAMPLES <= 12, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(some_rows, st.lists(or_compactions, min_size=4, max_size=7))
    def run(start, sequence):
        name = f"t{next(_numbers)}"
        check = f"CHECK ({CHECK}), " if layout in CHECKED else ""
        acid.sql(f"CREATE TABLE {name} ({check}{LAYOUTS[layout]}\n)".replace("--\n)", ""))
        acid.sql(f"CREATE VIEW seen_{name} AS SELECT p, id + n AS s FROM {name} WHERE id > 1")
        model = Model("PARTITIONED" in LAYOUTS[layout], layout in CHECKED)
        for number, statement in enumerate([("values", start), *sequence]):
            few = (3, 1000)[number % 2] if by_the_driver else 0
            acid.sql(f"SET acidsql.driver.max.rows = {few}")
            by_method = number % 2 == by_the_driver and statement[0] in METHODS
            expected, found = checked_step(acid, model, name, statement, by_method)
            assert found == expected, statement
            assert table(acid, name) == ordered(model.rows), statement
        the_view_is_right(acid, model, name)
        it_may_get_a_column(acid, model, name, start)
        row_ids_are_unique(acid, name, ("p",))
        assert acid.check(name, level="rows").collect() == []

    run()


def the_view_is_right(acid, model, name):
    def total(row):
        return None if row[2] is None else row[0] + row[2]

    seen = [(row[3], total(row)) for row in model.rows if row[0] is not None and row[0] > 1]
    assert rows(acid, f"SELECT * FROM seen_{name}") == ordered(seen)


def it_may_get_a_column(acid, model, name, new):
    """An INSERT brings a column with it; later statements change rows from before and after."""
    if not acid.metastore.abilities.alters_in_commit:
        return
    source = frame(acid, new).selectExpr("v", "id", "p", "n", "CAST(id * 2 AS BIGINT) AS more")
    acid.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {name} BY NAME SELECT * FROM {{s}}", s=source)
    before, found = len(model.rows), [(*row, None) for row in model.rows]
    model.insert(new)
    found += [(*row, None if row[0] is None else 2 * row[0]) for row in model.rows[before:]]
    acid.sql(f"UPDATE {name} SET more = coalesce(more, -1) WHERE id IN (0, 1)")
    acid.sql(f"DELETE FROM {name} WHERE more > 4")
    acid.sql(f"ALTER TABLE {name} COMPACT 'major' AND WAIT")
    changed = [
        (*row[:4], -1 if row[4] is None else row[4]) if row[0] in (0, 1) else row for row in found
    ]
    expected = [row for row in changed if row[4] is None or row[4] <= 4]
    assert rows(acid, f"SELECT id, v, n, p, more FROM {name}") == ordered(expected)
    model.rows = [row[:4] for row in expected]


def checked_step(acid, model, name, statement, by_method=False):
    """As ``step``. If a row breaks the CHECK, neither side changes."""
    before = model.rows, model.touched
    try:
        expected, found = step(acid, model, name, statement, by_method)
    except ConstraintError as error:
        assert error.condition == "CHECK_CONSTRAINT_VIOLATION"
        expected, found = model.is_broken(), True
    else:
        assert not model.is_broken()
    if found is True:
        model.rows, model.touched = before
    return expected, found


def step(acid, model, name, statement, by_method=False):
    """Run a statement on both sides. Returns the counts of each; None for a cardinality
    violation."""
    kind, *what = statement

    def counts(session, sql):
        return counts_by_method(session, name, kind, what) if by_method else by_sql(session, sql)

    if kind == "compact":
        before = ids_of(acid, name)
        if not acid.metastore.abilities.compacts:
            return before, before
        acid.compact(name, kind=what[0], wait=True)
        acid.clean()
        return before, ids_of(acid, name)
    if kind == "merge":
        source, clauses = what
        sql = f"MERGE INTO {name} AS t USING (VALUES {values(source)}) AS s(id, v, n, p) " \
              f"ON t.id = s.id {' '.join(clause.sql() for clause in clauses)}"  # fmt: skip
        expected = model.merge(source, clauses)
        try:
            found = counts(acid, sql)
        except MergeCardinalityError:
            found = None
        except ConstraintError:
            if expected is not None:
                raise
            found = None  # a row breaks the CHECK, too
        return expected, found
    if kind == "multi":
        return multi_insert(acid, model, name, *what)
    if kind == "delete":
        return model.delete(what[0]), counts(acid, f"DELETE FROM {name} WHERE {what[0].sql()}")
    if kind == "update":
        test, v, plus = what
        value = "NULL" if v is None else f"'{v}'"
        sql = f"UPDATE {name} SET v = {value}, n = n + {plus} WHERE {test.sql()}"
        return model.update(test, v, plus), counts(acid, sql)
    if kind == "move":
        test, p = what
        sql = f"UPDATE {name} SET p = {text(p)}, id = id + 1 WHERE {test.sql()}"
        return model.move(test, p), counts(acid, sql)
    rows = what[0]
    source = f"VALUES {values(rows)}"
    if kind == "values":
        return model.insert(rows), counts(acid, f"INSERT INTO {name} {source}")
    if kind == "replace_where":
        sql = f"INSERT INTO {name} REPLACE WHERE {what[1].sql()} "
        sql += f"SELECT * FROM {source} AS s(id, v, n, p) WHERE {what[1].sql()}"
        return model.replace_where(rows, what[1]), counts(acid, sql)
    if kind == "replace_using":
        sql = f"INSERT INTO {name} REPLACE USING ({what[1]}) {source}"
        return model.replace_using(rows, what[1].split(", ")), counts(acid, sql)
    source = f"SELECT * FROM {source} AS s(a, b, c, d)"
    if kind == "select":
        return model.insert(rows), counts(acid, f"INSERT INTO {name} {source}")
    return model.overwrite(rows), counts(acid, f"INSERT OVERWRITE {name} {source}")


def ids_of(acid, name):
    return ordered(acid.table(name, row_id=True).collect())


def multi_insert(acid, model, name, rows, one, two):
    """A multi-insert with two branches into one table, with one row of counts each."""
    first = [row for row in rows if one.of(row) is True]
    second = [(row[0], "second", row[2], row[3]) for row in rows if two.of(row) is True]
    expected = [model.insert(first), model.insert(second)]
    done = acid.sql(
        f"FROM (SELECT * FROM VALUES {values(rows)} AS s(id, v, n, p)) AS s "
        f"INSERT INTO {name} SELECT * WHERE {one.sql()} "
        f"INSERT INTO {name} SELECT id, 'second', n, p WHERE {two.sql()}"
    ).collect()
    return expected, [(r.num_inserted_rows, r.num_updated_rows, r.num_deleted_rows) for r in done]
