"""Random transactions over two tables, compared with plain Python, while another session reads.

``ACIDSQL_ORACLE_TRANSACTIONS`` sets the number of sequences. With more than the default number they
differ from run to run.
"""

from __future__ import annotations

import copy
import itertools
import os
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit import counts, ordered, rows
from model import Model, values
from over_hive import beside
from test_oracle import LAYOUTS, some_rows, statements, step

import acidsql
from acidsql.acid.table import TableName
from acidsql.errors import ConstraintError, MergeCardinalityError, TxnError, UnsupportedError

EXAMPLES = int(os.environ.get("ACIDSQL_ORACLE_TRANSACTIONS", "6"))
PAIRS = (("plain", "partitioned"), ("bucketed", "both"))
COUNTS = ("num_affected_rows", "num_inserted_rows", "num_updated_rows", "num_deleted_rows")
_numbers = itertools.count()

tables = st.integers(0, 1)
names = st.sampled_from(["a", "b"])
steps = st.one_of(
    st.tuples(st.just("say"), tables, statements),
    st.tuples(st.just("say"), tables, statements),
    st.tuples(st.just("say"), tables, statements),
    st.tuples(st.just("fail"), tables, some_rows),
    st.tuples(st.just("savepoint"), names),
    st.tuples(st.just("back"), names),
    st.tuples(st.just("other"), tables, st.none() | some_rows),
)
transactions = st.tuples(
    st.lists(steps, min_size=3, max_size=8), st.sampled_from(["COMMIT", "COMMIT", "ROLLBACK"])
)


@dataclass
class State:
    """What a transaction sees: its tables, and the partitions that it has overwritten."""

    models: list[Model]
    closed: list[set[str | None]] = field(default_factory=lambda: [set(), set()])

    def copy(self) -> State:
        found = State([copy.copy(model) for model in self.models], list(map(set, self.closed)))
        for model in found.models:
            model.touched = set()
        return found

    def is_closed(self, table: int) -> bool:
        """Whether a partition that a statement touched was overwritten before."""
        model, closed = self.models[table], self.closed[table]
        return bool(model.touched & closed if model.partitioned else closed)


class Heard:
    """Replaces a session, to get the text of a statement."""

    text = ""

    def sql(self, text, _args=None):
        self.text = text
        nothing = SimpleNamespace(**dict.fromkeys(COUNTS, 0))
        return SimpleNamespace(collect=lambda: [nothing, nothing])


class Scene:
    """Two tables, a session with a transaction, and another session that reads."""

    def __init__(self, acid, outside, layouts):
        self.acid, self.outside = acid, outside
        number = next(_numbers)
        self.names = [f"t{number}", f"u{number}"]
        for name, layout in zip(self.names, layouts, strict=True):
            acid.sql(f"CREATE TABLE {name} ({LAYOUTS[layout]}\n)".replace("--\n)", ""))
        self.committed = [Model("PARTITIONED" in LAYOUTS[layout]) for layout in layouts]
        self.story = []

    def run(self, sequence, end):
        """Run one transaction."""
        self.acid.sql("BEGIN")
        self.inside, self.savepoints, self.news = None, {}, [[], []]
        # An INSERT that an overwrite would hide is a conflict, which ``test_conflicts`` tests.
        self.others_may_insert = all(s[0] != "say" or s[2][0] != "overwrite" for s in sequence)
        for kind, *what in sequence:
            self.story.append((kind, *what))
            getattr(self, kind)(*what)
            if kind in ("say", "fail", "back"):
                self.look()
        self.look_from_outside()
        self.acid.sql(end)
        self.story.append(end)
        if end == "COMMIT" and self.inside is not None:
            self.committed = self.inside.models
            for model, news in zip(self.committed, self.news, strict=True):
                model.insert(news)
        self.look_from_outside()

    def state(self):
        """The state that the transaction sees. Its snapshot is that of its first statement."""
        if self.inside is None:
            self.inside = State(self.committed).copy()
        return self.inside

    # ── steps ────────────────────────────────────────────────────────────────────────────────

    def say(self, table, statement):
        then, heard = self.state().copy(), Heard()
        expected, _ = step(heard, then.models[table], self.names[table], statement)
        if expected is None and then.models[table].partitioned:
            then.closed[table] = set()  # a violation is found before rows go to their partitions
        if then.is_closed(table):
            with pytest.raises(UnsupportedError, match="has overwritten"):
                self.acid.sql(heard.text)
            return
        assert self.counts(statement, heard.text) == expected, self.story
        if statement[0] == "overwrite":
            then.closed[table] |= then.models[table].touched
        if expected is not None:
            self.inside = then

    def counts(self, statement, text):
        if statement[0] == "multi":
            return [tuple(row[1:4]) for row in self.acid.sql(text).collect()]
        try:
            return counts(self.acid, text)
        except MergeCardinalityError:
            return None

    def fail(self, table, new):
        """The first branch is published when the second branch finds a null."""
        then = self.state().copy()
        then.models[table].insert(new)
        text = (
            f"FROM (SELECT * FROM VALUES {values(new)} AS s(id, v, n, p)) AS s "
            f"INSERT INTO {self.names[table]} SELECT * INSERT INTO strict SELECT nullif(1, 1)"
        )
        error = UnsupportedError if then.is_closed(table) else ConstraintError
        with pytest.raises(error):
            self.acid.sql(text)

    def savepoint(self, name):
        self.acid.sql(f"SAVEPOINT {name}")
        self.savepoints.pop(name, None)
        self.savepoints[name] = self.state().copy()
        self.look()  # takes the snapshot, if there is none yet

    def back(self, name):
        if name not in self.savepoints:
            with pytest.raises(TxnError, match="no savepoint"):
                self.acid.sql(f"ROLLBACK TO {name}")
            return
        self.acid.sql(f"ROLLBACK TO SAVEPOINT {name}")
        self.inside = self.savepoints[name].copy()
        for later in list(self.savepoints)[list(self.savepoints).index(name) + 1 :]:
            del self.savepoints[later]

    def other(self, table, new):
        """Another session compacts and cleans, or commits rows: here, or elsewhere if they would
        conflict here."""
        if new is None:
            if self.outside.metastore.abilities.compacts:
                kind = "major" if len(self.story) % 2 else "minor"
                self.outside.compact(self.names[table], kind=kind, wait=True)
                self.outside.clean()
            self.look_from_outside()
        elif not self.others_may_insert:
            self.outside.sql(f"INSERT INTO elsewhere VALUES {values(new)}")
        else:
            self.outside.sql(f"INSERT INTO {self.names[table]} VALUES {values(new)}")
            self.committed[table].insert(new)
            if self.inside is not None:
                self.news[table] += new

    # ── what is seen ─────────────────────────────────────────────────────────────────────────

    def look(self):
        assert self.seen(self.acid) == all_rows(self.state().models), self.story

    def look_from_outside(self):
        assert self.seen(self.outside) == all_rows(self.committed), self.story

    def seen(self, session):
        both = " UNION ALL ".join(f"SELECT {i}, * FROM {n}" for i, n in enumerate(self.names))
        return rows(session, both)

    def compare_with_a_reader_without_a_metastore(self):
        """``acidsql.read`` of the directories. No row id occurs twice in one partition."""
        store = self.outside.metastore
        for name, model in zip(self.names, self.committed, strict=True):
            table, txns = store.find(TableName("default", name)), store.valid_txns()
            valid = store.valid_write_ids(txns, [table.name])[table.name]
            columns, partitioned_by = "id int, v string, n int, p string", None
            if model.partitioned:
                columns, partitioned_by = "id int, v string, n int", "p string"
            found = acidsql.read(
                self.acid.spark, table.location, columns, partitioned_by,
                valid_write_ids=str(valid), valid_txns=str(txns),
            ).collect()  # fmt: skip
            assert ordered(row[1:] for row in found) == ordered(model.rows), self.story
            row_ids = Counter((row[0], row[4]) for row in found)
            assert max(row_ids.values(), default=1) == 1, self.story


def all_rows(models):
    return ordered((i, *row) for i, model in enumerate(models) for row in model.rows)


@pytest.mark.parametrize("layouts", PAIRS, ids="_and_".join)
def test_inside_each_read_sees_what_plain_python_says_and_outside_nobody_sees_a_part(
    spark, acid, layouts
):
    acid.sql("CREATE TABLE strict (id INT NOT NULL)")
    acid.sql("CREATE TABLE elsewhere (id INT, v STRING, n INT, p STRING)")

    @settings(
        max_examples=max(1, EXAMPLES // len(PAIRS)), deadline=None, database=None,
        derandomize=EXAMPLES <= 6, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(some_rows, st.lists(transactions, min_size=1, max_size=2))
    def run(start, sequences):
        with (
            # The driver writes few rows, jobs write more.
            beside(acid, settings={"acidsql.driver.max.rows": "3"}) as one,
            beside(acid) as other,
        ):
            scene = Scene(one, other, layouts)
            for name, model in zip(scene.names, scene.committed, strict=True):
                one.sql(f"INSERT INTO {name} VALUES {values(start)}")
                model.insert(start)
            for sequence, end in sequences:
                scene.run(sequence, end)
            scene.compare_with_a_reader_without_a_metastore()

    run()
    assert acid.sql("SHOW LOCKS").count() == 0
    assert rows(acid, "SELECT * FROM strict") == []
