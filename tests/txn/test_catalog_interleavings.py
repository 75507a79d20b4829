"""One session reads in a transaction, another changes the catalog: every order of their store
calls.

A statement in the transaction shows the rows of its snapshot, or it fails with a named error. It
never shows fewer rows or rows of another table, and it never changes another table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from two_sessions import Announced, Other, Rows, Session, Warehouse

from acidsql.acid.values.types import parse_type
from acidsql.errors import AcidSqlError
from acidsql.statements.context.partition_specs import Partitions
from acidsql.statements.ddl.partitions import PartitionStatements
from acidsql.statements.ddl.tables import TableStatements
from acidsql.storage.files.filesystem import LocalFileSystem
from acidsql.storage.reading import read as reading

# The rows of each name that matters; None: there is no such table.
State = dict[str, frozenset[str] | None]
TOO_OLD, CONFLICT = "ACID_NOT_ENOUGH_HISTORY", "WRITE_CONFLICT"
# The error if a name was looked up, and then changed before the snapshot was taken.
MEANWHILE = {"TABLE_OR_VIEW_NOT_FOUND", "TABLE_CHANGED_MEANWHILE"}
A, U = frozenset({"a1", "a2"}), frozenset({"u1"})
START: State = {"t": A, "u": U, "x": None}


def says(text: str) -> Callable[[Session], None]:
    return lambda session: session.run(text)


CREATE = "CREATE TABLE d.t (v STRING) PARTITIONED BY (p INT)"
INSERT_AGAIN = ("commit_txn", lambda session: session.insert("t", "1", "n1"))
DROP_PARTITION = ("commit_txn", says("ALTER TABLE d.t DROP PARTITION (p = 1)"))
DROP = ("drop_table", says("DROP TABLE d.t"))


def rename(name: str, new_name: str) -> tuple[str, Callable[[Session], None]]:
    return ("rename_table", says(f"ALTER TABLE d.{name} RENAME TO d.{new_name}"))


def after(*changes: State) -> list[State]:
    """The states after each of these statements, one after the other."""
    states = [START]
    for change in changes:
        states.append(states[-1] | change)
    return states


# Each statement with the store call that decides it, and the states before and after it.
CHANGES = {
    "drop partition": ([DROP_PARTITION], after({"t": {"a2"}})),
    "drop partition, insert again": (
        [DROP_PARTITION, INSERT_AGAIN],
        after({"t": {"a2"}}, {"t": {"a2", "n1"}}),
    ),
    "drop": ([DROP], after({"t": None})),
    "drop, create, insert": (
        [DROP, ("commit_txn", says(CREATE)), INSERT_AGAIN],
        after({"t": None}, {"t": frozenset()}, {"t": {"n1"}}),
    ),
    "replace, insert": (
        [("commit_txn", says(CREATE.replace("CREATE", "CREATE OR REPLACE"))), INSERT_AGAIN],
        after({"t": frozenset()}, {"t": {"n1"}}),
    ),
    "rename": ([rename("t", "x")], after({"t": None, "x": A})),
    "swap": (
        [rename("t", "x"), rename("u", "t"), rename("x", "u")],
        after({"t": None, "x": A}, {"t": U, "u": None}, {"u": A, "x": None}),
    ),
    "add columns": (
        [("alter_table", says("ALTER TABLE d.t ADD COLUMNS (w STRING)"))],
        after({}),
    ),
    "drop database": (
        [("drop_database", says("DROP DATABASE d CASCADE"))],
        after({"t": None, "u": None}),
    ),
    # These are none that a snapshot could mind.
    "add partition": (
        [("commit_txn", says("ALTER TABLE d.t ADD PARTITION (p = 9)"))],
        after({}),
    ),
    "truncate": ([("commit_txn", says("TRUNCATE TABLE d.t"))], after({"t": frozenset()})),
    "properties": (
        [("alter_table", says("ALTER TABLE d.t SET TBLPROPERTIES ('a' = 'b')"))],
        after({}),
    ),
    "insert": (
        [("commit_txn", lambda session: session.insert("t", "3", "n3"))],
        after({"t": A | {"n3"}}),
    ),
    "compact and clean": (
        [("commit_txn", lambda session: session.compact_and_clean("t", "p=1"))],
        after({}),
    ),
}
HARMLESS = {"add partition", "truncate", "properties", "insert", "compact and clean"}


# ── what the transaction does ────────────────────────────────────────────────────────────────


def look_twice(session: Session) -> Iterator[str]:
    session.transactions.begin("BEGIN")
    yield from ("t", "t")
    session.transactions.rollback()


def look_elsewhere_first(session: Session) -> Iterator[str]:
    with session.transactions.pin_snapshot():
        yield from ("t", "u")


SCRIPTS = {script.__name__: script for script in (look_twice, look_elsewhere_first)}


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    def matching(commands, table, specs, *_):
        known = commands._catalog.partition_names(table)
        return [name for name in known if name == "p=1" or not any(specs)]

    monkeypatch.setattr(reading, "scan", lambda _spark, scan, _few=0: Rows(scan))
    monkeypatch.setattr(PartitionStatements, "_matching_partitions", matching)
    monkeypatch.setattr(Partitions, "fully_named_partitions", lambda *_: ["p=9"])
    monkeypatch.setattr(
        TableStatements,
        "type_of",
        lambda _self, text: lambda span: parse_type(span.slice(text).lower()),
    )


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory, new_metastore):
    made = Warehouse(Path(tmp_path_factory.mktemp("two")), new_metastore)
    yield made
    made.close()


class Run:
    """One order of calls. At the reader's call ``at`` the other session makes ``first`` steps. Then
    it makes one more step at each call (``both``), or all other steps after the reader has
    ended."""

    def __init__(self, warehouse, monkeypatch, change, at, first, *, both=False):
        warehouse.reset()
        script, self.states = CHANGES[change]
        self.other = Other(warehouse.stores[0], script)
        for name in ("delete_directory", "delete_file"):
            self._stop_before(monkeypatch, name)
        self.calls, self._at, self._first, self._both = 0, at, first, both
        self.seen: State | None = None  # the state of the snapshot, once the snapshot is taken
        self.session = Session(
            Announced(warehouse.stores[1], self._before, lambda _: None),
            lambda _: self.other.go_on_until_it_waits(),
        )

    def _stop_before(self, monkeypatch, name):
        real, other = getattr(LocalFileSystem, name), self.other
        real = getattr(real, "really", real)

        def stopping(fs, path):
            other.stop_before_deleting()
            real(fs, path)

        stopping.really = real
        monkeypatch.setattr(LocalFileSystem, name, stopping)

    def _before(self, name):
        if self.calls == self._at:
            self.other.go_on(self._first)
        elif self.calls > self._at and self._both:
            self.other.go_on()
        self.calls += 1
        if name == "valid_txns" and self.seen is None:
            self.seen = self.states[self.other.decided]

    def end(self):
        self.session.txns.close()
        while not self.other.is_over:
            self.other.go_on_until_it_waits()
        assert self.other.fault is None

    def look(self, name):
        """The result of a statement, or the name of its error; and whether this result is right."""
        is_first, before = self.seen is None, self.other.decided
        try:
            shown = self.session.rows(name)
        except AcidSqlError as error:
            shown = error.condition
        now = self.states[before : self.other.decided + 1]
        right = [self.seen[name], TOO_OLD] if self.seen else []
        if is_first:
            right += [*MEANWHILE, *(None for state in now if state[name] is None)]
        return shown, shown in right


def orders(warehouse, monkeypatch, change, script):
    """Yield runs. From each of the reader's calls on, the other session does all its steps at once,
    or goes on step by step, or stops in the middle until the reader has ended."""
    alone = Run(warehouse, monkeypatch, change, -1, 0)
    for name in script(alone.session):
        alone.look(name)
    calls = alone.calls
    alone.end()
    steps = alone.other.steps
    for at in range(calls):
        yield Run(warehouse, monkeypatch, change, at, steps)
        if script is look_twice and at % 2:
            yield Run(warehouse, monkeypatch, change, at, 1, both=True)
        elif script is look_twice:
            yield Run(warehouse, monkeypatch, change, at, at % steps)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_snapshot_shows_what_it_has_or_fails_by_name(warehouse, monkeypatch, change, script):
    count, failed = 0, 0
    for run in orders(warehouse, monkeypatch, change, script):
        for name in script(run.session):
            shown, is_right = run.look(name)
            assert is_right, f"{name}: {shown}, not {run.seen}; at {run._at}, {run._first} steps"
            failed += shown == TOO_OLD
            if change in HARMLESS:
                assert shown == run.seen[name]
        run.end()
        count += 1
    assert count > 15
    assert (failed > 0) == (change not in HARMLESS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", ["swap", "drop, create, insert", "replace, insert", "drop partition, insert again"]
)
def test_no_table_is_emptied_but_the_one_that_was_looked_at(warehouse, monkeypatch, change):
    ends = set()
    for run in orders(warehouse, monkeypatch, change, look_twice):
        session = run.session
        session.transactions.begin("BEGIN")
        assert run.look("t")[1]
        try:
            session.run("TRUNCATE TABLE d.t")
            session.transactions.commit()
            ends.add("committed")
            gone = run.seen["t"]
        except AcidSqlError as error:
            assert error.condition in {TOO_OLD, CONFLICT, *MEANWHILE}
            ends.add(error.condition)
            if not session.transactions.is_autocommit:
                session.transactions.rollback()
            gone = frozenset()
        run.end()
        assert warehouse.rows("t", "u", "x") == rows_of(run.states[-1]) - gone
    assert "committed" in ends and ends & {TOO_OLD, CONFLICT}


def rows_of(state: State) -> set[str]:
    """The rows of all tables."""
    return {row for rows in state.values() for row in rows or ()}
