"""SHOW COMPACTIONS and ABORT COMPACTIONS on a metastore that is a list, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import acidsql.statements.show.shows
from acidsql.acid.table import TableName
from acidsql.errors import AnalysisError, TxnError, UnsupportedError
from acidsql.metastore.compaction_queue import CompactionInfo, CompactionState, CompactionType
from acidsql.sql.commands.compactions import ORDERED
from acidsql.sql.parsed.statements import ShowCompactions
from acidsql.sql.parser import parse
from acidsql.statements.context.family import Context
from acidsql.statements.context.spark_databases import SparkDatabases
from acidsql.statements.ddl.transactions import TransactionStatements
from acidsql.statements.maintenance.compaction_rows import (
    COMPACTIONS,
    ORDER_VALUES,
    aborted_rows,
    compaction_rows,
)
from acidsql.statements.show.shows import ShowStatements

NAMES = [column.split(" ")[0] for column in COMPACTIONS.split(", ")]
T, U = TableName("default", "t"), TableName("db", "u")

FULL = CompactionInfo(
    id=12,
    table=T,
    partition="p=1/q=x",
    type=CompactionType.MAJOR,
    state=CompactionState.READY_FOR_CLEANING,
    enqueued_ms=1000,
    started_ms=2000,
    ended_ms=5500,
    worker_id="node-7.example-41",
    initiator_id="node-7.example-manual",
    txn_id=31,
    next_txn_id=33,
    committed_ms=5400,
    highest_write_id=9,
    message="asked for by hand",
    pool="night",
    progress="merge 1/2, 1 run, 3.1 MB",
)
BARE = CompactionInfo(7, U, None, CompactionType.REBALANCE, CompactionState.INITIATED)


def statement_of(text: str) -> Any:
    return parse(text, is_ours=lambda parts: True)


def rows(text: str, *entries: CompactionInfo, **keywords: Any) -> list[dict[str, str]]:
    statement = statement_of(f"SHOW COMPACTIONS {text}")
    assert isinstance(statement, ShowCompactions)
    found = compaction_rows(entries, statement, **keywords)
    return [dict(zip(NAMES, row, strict=True)) for row in found]


def ids(text: str, *entries: CompactionInfo, **keywords: Any) -> list[int]:
    return [int(row["compactionid"]) for row in rows(text, *entries, **keywords)]


# ── columns ──────────────────────────────────────────────────────────────────────────────────


def test_an_entry_with_everything() -> None:
    assert rows("", FULL) == [
        {
            "compactionid": "12",
            "dbname": "default",
            "tabname": "t",
            "partname": "p=1/q=x",
            "type": "MAJOR",
            "state": "ready for cleaning",
            "workerhost": "node-7.example",
            "workerid": "41",
            "enqueuetime": "1000",
            "starttime": "2000",
            "duration": "3500",
            "hadoopjobid": "merge 1/2, 1 run, 3.1 MB",
            "errormessage": "asked for by hand",
            "initiatorhost": "node-7.example",
            "initiatorid": "manual",
            "poolname": "night",
            "txnid": "31",
            "nexttxnid": "33",
            "committime": "5400",
            "hightestwriteid": "9",
        }
    ]


def test_an_entry_with_nothing() -> None:
    (row,) = rows("", BARE)
    said = {name: value for name, value in row.items() if value != " --- "}
    assert said == {
        "compactionid": "7",
        "dbname": "db",
        "tabname": "u",
        "type": "REBALANCE",
        "state": "initiated",
        "poolname": "default",
        "txnid": "0",
        "nexttxnid": "0",
        "committime": "0",
    }


def test_hives_columns_in_hives_order() -> None:
    assert COMPACTIONS == (
        "compactionid string, dbname string, tabname string, partname string, type string, "
        "state string, workerhost string, workerid string, enqueuetime string, starttime string, "
        "duration string, hadoopjobid string, errormessage string, initiatorhost string, "
        "initiatorid string, poolname string, txnid string, nexttxnid string, committime string, "
        "hightestwriteid string"
    )


@pytest.mark.parametrize(
    ("text", "host", "number"),
    [("a-b-1", "a-b", "1"), ("a", "a", " --- "), ("a-", "a", ""), ("", " --- ", " --- ")],
)
def test_host_and_id_are_parted_at_the_last_dash(text: str, host: str, number: str) -> None:
    (row,) = rows("", replace(BARE, worker_id=text, initiator_id=text))
    assert (row["workerhost"], row["workerid"]) == (host, number)
    assert (row["initiatorhost"], row["initiatorid"]) == (host, number)


def test_what_was_aborted_before_it_began_has_no_duration() -> None:
    (row,) = rows("", replace(BARE, state=CompactionState.ABORTED, ended_ms=99))
    assert (row["starttime"], row["duration"]) == (" --- ", " --- ")


# ── filters, order, limit ────────────────────────────────────────────────────────────────────

A = replace(FULL, id=1, table=T, partition="p=1/q=x", type=CompactionType.MINOR, pool=None)
B = replace(FULL, id=2, table=T, partition="p=2/q=x", state=CompactionState.FAILED)
C = replace(FULL, id=3, table=TableName("db", "t"), partition=None, pool="Day")
D = replace(BARE, id=4)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [2, 1, 4, 3]),
        ("COMPACTIONID = 3", [3]),
        ("COMPACTIONID = 9", []),
        ("DATABASE DB", [4, 3]),
        ("TYPE 'major'", [2, 3]),
        ("TYPE 'rebalance'", [4]),
        ("STATUS 'ready_for_cleaning'", [1, 3]),
        ("POOL 'default'", [1, 4]),
        ("POOL 'DAY'", [3]),
        ("POOL 'night' TYPE 'major' STATUS 'failed'", [2]),
        ("LIMIT 2", [2, 1]),
        ("LIMIT 2 OFFSET 1", [1, 4]),
        ("LIMIT 3, 5", [3]),
        ("LIMIT 0", []),
        ("DATABASE db ORDER BY compactionid LIMIT 1", [3]),
    ],
)
def test_filters_and_limits_keep_the_stores_order(text: str, found: list[int]) -> None:
    assert ids(text, B, A, D, C) == found


def test_a_table_and_columns_of_its_partitions() -> None:
    assert ids("", B, A, D, C, table=T) == [2, 1]


def test_numbers_are_ordered_as_numbers() -> None:
    entries = [replace(BARE, id=number, highest_write_id=number) for number in (10, 9, 100)]
    assert ids("ORDER BY highestwriteid", *entries) == [9, 10, 100]
    assert ids("ORDER BY compactionid DESC", *entries) == [100, 10, 9]


def test_duration_is_ordered_and_not_its_end() -> None:
    long = replace(BARE, id=1, started_ms=0, ended_ms=50)
    short = replace(BARE, id=2, started_ms=90, ended_ms=99)
    assert ids("ORDER BY duration", long, short) == [2, 1]


def test_nulls_are_last_ascending_and_first_descending() -> None:
    entries = [replace(BARE, id=n, worker_id=w) for n, w in [(1, None), (2, "b-1"), (3, "a-2")]]
    assert ids("ORDER BY workerhost", *entries) == [3, 2, 1]
    assert ids("ORDER BY workerid DESC", *entries) == [1, 3, 2]


def test_equals_stay_as_the_next_column_or_the_store_has_them() -> None:
    entries = [
        replace(BARE, id=n, pool=pool, txn_id=txn)
        for n, pool, txn in [(1, "b", 2), (2, "a", 2), (3, "b", 1), (4, "b", 2)]
    ]
    assert ids("ORDER BY poolname DESC, txnid", *entries) == [3, 1, 4, 2]
    assert ids("ORDER BY txnid DESC, poolname", *entries) == [2, 1, 4, 3]
    assert ids("ORDER BY hadoopjobid DESC", *entries) == [1, 2, 3, 4]


def test_whatever_the_grammar_orders_by_has_a_value() -> None:
    assert list(ORDER_VALUES) == list(ORDERED)


# ── ABORT COMPACTIONS ────────────────────────────────────────────────────────────────────────


def test_what_became_of_each_number() -> None:
    found = {
        8: CompactionState.INITIATED,
        3: CompactionState.READY_FOR_CLEANING,
        5: None,
    }
    assert aborted_rows([8, 3, 5, 8], found) == [
        ("8", "Success", "Successfully aborted compaction"),
        (
            "3",
            "Error",
            "Only an initiated compaction can be aborted, and this one is: ready for cleaning",
        ),
        ("5", "Error", "No such compaction"),
    ]


# ── the session's side ───────────────────────────────────────────────────────────────────────


class Store:
    """The parts of a metastore that are used."""

    def __init__(self, *entries: CompactionInfo) -> None:
        self.entries, self.aborted = list(entries), list[int]()

    def compactions(self) -> list[CompactionInfo]:
        return self.entries

    def abort_compactions(self, numbers: Sequence[int]) -> dict[int, CompactionState | None]:
        self.aborted += numbers
        states = {one.id: one.state for one in self.entries}
        return {number: states.get(number) for number in numbers}


def require_table(name: Any, text: str) -> Any:
    """A catalog with the one table default.empty."""
    if name.parts == ("empty",):
        return SimpleNamespace(name=TableName("default", "empty"))
    raise AnalysisError("There is no such table.", text, name.span.start, name.span.end)


def qualify(parts: tuple[str, ...]) -> TableName:
    database, name = ("default", *parts)[-2:]
    return TableName(database.lower(), name.lower())


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a statement. Returns the rows of its DataFrame."""
    monkeypatch.setattr(
        acidsql.statements.show.shows, "rows_frame", lambda spark, schema, rows: list(rows)
    )
    names: Any = SimpleNamespace(require_table=require_table, qualify=qualify)
    nothing: Any = None

    def run(text: str, store: Any) -> Any:
        databases = SparkDatabases(nothing, store)
        context = Context(
            nothing, store, nothing, nothing, nothing, names, databases, nothing, nothing, "h"
        )
        statement = statement_of(text)
        return ShowStatements(context).handlers()[type(statement)](statement, text)

    return run


def test_a_table_is_looked_up_in_the_current_database(ask: Any) -> None:
    store = Store(B, A, D, C)
    assert [row[0] for row in ask("SHOW COMPACTIONS T", store)] == ["2", "1"]
    assert [row[0] for row in ask("SHOW COMPACTIONS db.t", store)] == ["3"]


def test_a_dropped_tables_compactions_are_shown_and_a_slip_is_an_error(ask: Any) -> None:
    store = Store(A)
    assert len(ask("SHOW COMPACTIONS t", store)) == 1  # the catalog does not know it
    assert ask("SHOW COMPACTIONS empty", store) == []
    with pytest.raises(AnalysisError) as caught:
        ask("SHOW COMPACTIONS tt", store)
    assert (caught.value.start, caught.value.end) == (17, 19)


def test_compactions_are_aborted(ask: Any) -> None:
    store = Store(A, D)
    found = ask("ABORT COMPACTIONS 4 1 9", store)
    assert store.aborted == [4, 1, 9]
    assert [row[:2] for row in found] == [("4", "Success"), ("1", "Error"), ("9", "Error")]


# ── inside of a transaction ──────────────────────────────────────────────────────────────────


def commands(*, pinned: bool) -> TransactionStatements:
    """The statements of a session with an open transaction, or in a ``snapshot()`` block."""

    def require_writable(what: str) -> None:
        if pinned:
            raise TxnError(f"{what} is not allowed", condition="READ_ONLY_TRANSACTION")

    transactions: Any = SimpleNamespace(
        is_autocommit=False,
        require_writable=require_writable,
        require_transaction=lambda: SimpleNamespace(id=5),
    )
    nothing: Any = None
    return TransactionStatements(
        Context(nothing, nothing, nothing, transactions, *[nothing] * 5, "h")
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ALTER TABLE t COMPACT 'major'", "COMPACT TABLE"),
        ("ABORT COMPACTIONS 1", "ABORT COMPACTIONS"),
    ],
)
def test_what_cannot_be_undone_is_no_part_of_a_transaction(text: str, name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{name} cannot be part of") as caught:
        commands(pinned=False).require_allowed(statement_of(text), text)
    assert caught.value.condition == "OP_NOT_ALLOWED_IN_TXN"
    with pytest.raises(TxnError, match=name):
        commands(pinned=True).require_allowed(statement_of(text), text)


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("text", ["SHOW COMPACTIONS", "EXPLAIN ALTER TABLE t COMPACT 'major'"])
def test_what_only_tells_is_allowed_everywhere(text: str, pinned: bool) -> None:
    commands(pinned=pinned).require_allowed(statement_of(text), text)
