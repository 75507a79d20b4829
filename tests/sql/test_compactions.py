"""COMPACT, SHOW and ABORT COMPACTIONS: the parsed statements, and that no word is reserved."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from grammar_cases import sentences, spans
from hypothesis import given, settings

from acidsql.errors import SqlError
from acidsql.metastore.compaction_queue import (
    REQUESTABLE_TYPES,
    CompactionState,
    CompactionType,
)
from acidsql.sql.commands.compactions import ORDERED
from acidsql.sql.parsed.statements import (
    AbortCompactions,
    CompactTable,
    Explain,
    Name,
    ShowCompactions,
    SparkStatement,
    Statement,
)
from acidsql.sql.parser import parse
from acidsql.sql.text.tokens import Span, words

Read = Callable[..., Statement]

WORDS = words(
    "ABORT ALTER AND BUCKETS BY CLUSTERED COMPACT COMPACTIONID COMPACTIONS DATABASE INTO LIMIT "
    "OFFSET ORDER OVERWRITE PARTITION POOL SCHEMA SHOW STATUS TABLE TBLPROPERTIES TYPE WAIT WITH"
)


def compact(read: Read, text: str) -> CompactTable:
    statement = read(text)
    assert isinstance(statement, CompactTable)
    return statement


def shown(read: Read, text: str) -> ShowCompactions:
    statement = read(text)
    assert isinstance(statement, ShowCompactions)
    return statement


# ── COMPACT ──────────────────────────────────────────────────────────────────────────────────


def test_a_compaction_without_clauses(read: Read) -> None:
    text = "/* a */ ALTER TABLE db.t COMPACT 'Major' ;"
    assert read(text) == CompactTable(
        Name(("db", "t"), Span(20, 24)), (), CompactionType.MAJOR,
        None, False, None, (), None,
    )  # fmt: skip


def test_a_compaction_with_all_clauses(read: Read) -> None:
    order = "f(a, ',') DESC NULLS LAST /* b */ , `c d`"
    text = (
        "ALTER TABLE t PARTITION (p = 1, q = 'x') COMPACT 'REBALANCE' CLUSTERED INTO 4 BUCKETS "
        f"AND WAIT POOL 'Night' WITH OVERWRITE TBLPROPERTIES ('a' = 'b', c.d = 1) ORDER BY {order}"
    )
    found = compact(read, text)
    assert [(item.name, item.value and item.value.slice(text)) for item in found.partition] == [
        ("p", "1"),
        ("q", "'x'"),
    ]
    assert (found.type, found.buckets, found.and_wait) == (CompactionType.REBALANCE, 4, True)
    assert (found.pool, found.properties) == ("night", (("a", "b"), ("c.d", "1")))
    assert found.order_by is not None
    assert found.order_by.slice(text) == order


@pytest.mark.parametrize("kind", REQUESTABLE_TYPES)
def test_every_type_is_known_in_any_case(kind: CompactionType, read: Read) -> None:
    for said in (kind.name, kind.name.lower(), kind.name.title()):
        assert compact(read, f"ALTER TABLE t COMPACT '{said}'").type is kind


def test_a_dry_run_is_the_explained_statement(read: Read) -> None:
    text = "EXPLAIN FORMATTED ALTER TABLE t COMPACT 'minor' AND WAIT"
    explained = read(text)
    assert isinstance(explained, Explain)
    assert explained.mode == "FORMATTED"
    assert isinstance(explained.statement, CompactTable)
    assert explained.statement == read(text.replace("EXPLAIN FORMATTED", " " * 17))


def test_what_is_no_table_of_ours_is_sparks_to_refuse(read: Read) -> None:
    assert isinstance(read("ALTER TABLE u COMPACT 'any'"), SparkStatement)
    assert isinstance(read("EXPLAIN ALTER TABLE u COMPACT 'major'"), SparkStatement)


@pytest.mark.parametrize("tail", ["LIMIT 1", "OFFSET 1", "UNION SELECT 1", "|> LIMIT 1", "WHERE a"])
@pytest.mark.parametrize("column", ["a", "set", "a DESC", "a NULLS LAST", "f(a)", "a * b", "`x`"])
def test_nothing_behind_order_by_can_lose_rows(column: str, tail: str, read: Read) -> None:
    with pytest.raises(SqlError):
        read(f"ALTER TABLE t COMPACT 'rebalance' ORDER BY {column} {tail}")


# ── SHOW and ABORT ───────────────────────────────────────────────────────────────────────────


def test_what_is_shown_is_named_by_number_table_or_database(read: Read) -> None:
    assert read("SHOW COMPACTIONS") == ShowCompactions()
    assert read("show compactions compactionid = 7;") == ShowCompactions(id=7)
    assert read("SHOW COMPACTIONS d.u") == ShowCompactions(name=Name(("d", "u"), Span(17, 20)))
    assert read("SHOW COMPACTIONS SCHEMA d") == ShowCompactions(database=Name(("d",), Span(24, 25)))
    of_partition = shown(read, "SHOW COMPACTIONS t PARTITION (p = 1)")
    assert [item.name for item in of_partition.partition] == ["p"]


def test_filters(read: Read) -> None:
    found = shown(
        read,
        "SHOW COMPACTIONS POOL 'P' TYPE 'minor' STATUS 'failed' ORDER BY txnid DESC, dbname, "
        "`Duration` ASC LIMIT 3",
    )
    assert (found.name, found.database) == (None, None)
    assert (found.pool, found.type) == ("p", CompactionType.MINOR)
    assert found.state is CompactionState.FAILED
    assert [(order.column, order.descending) for order in found.order_by] == [
        ("TXNID", True),
        ("DBNAME", False),
        ("DURATION", False),
    ]
    assert (found.limit, found.offset) == (3, 0)


@pytest.mark.parametrize("state", CompactionState)
def test_every_state_is_known_with_blanks_or_underscores(
    state: CompactionState, read: Read
) -> None:
    for said in (state.shown, state.name, state.shown.title(), f" {state.shown} "):
        assert shown(read, f"SHOW COMPACTIONS STATUS '{said}'").state is state


@pytest.mark.parametrize(
    ("text", "limit", "offset"),
    [("LIMIT 5", 5, 0), ("LIMIT 5 OFFSET 2", 5, 2), ("LIMIT 2, 5", 5, 2), ("LIMIT 0", 0, 0)],
)
def test_limits(text: str, limit: int, offset: int, read: Read) -> None:
    found = shown(read, f"SHOW COMPACTIONS {text}")
    assert (found.limit, found.offset) == (limit, offset)


@pytest.mark.parametrize("column", ORDERED)
def test_every_column_that_hive_orders_by(column: str, read: Read) -> None:
    (order,) = shown(read, f"SHOW COMPACTIONS ORDER BY {column.lower()}").order_by
    assert order.column == column


def test_compactions_are_aborted_by_number(read: Read) -> None:
    assert read("ABORT COMPACTIONS 3 1 3") == AbortCompactions((3, 1, 3))


# ── words, and sentences of the EBNF ─────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "template",
    [
        "ALTER TABLE {} COMPACT 'major'",
        "ALTER TABLE {} PARTITION ({} = 1) COMPACT 'minor' AND WAIT",
        "ALTER TABLE db.{} COMPACT 'rebalance' ORDER BY x.{}",
        "SHOW COMPACTIONS {}",
        "SHOW COMPACTIONS {} PARTITION ({} = 1) TYPE 'major'",
        "SHOW COMPACTIONS db.{} ORDER BY dbname",
        "SHOW COMPACTIONS DATABASE {}",
        "SHOW COMPACTIONS DATABASE {} STATUS 'failed' LIMIT 1",
    ],
)
@pytest.mark.parametrize("word", sorted(WORDS))
def test_every_word_is_a_name(template: str, word: str, read: Read) -> None:
    text = template.replace("{}", word)
    statement = read(text, is_ours=lambda parts: True)
    assert isinstance(statement, CompactTable | ShowCompactions)
    name = statement.name
    if isinstance(statement, ShowCompactions) and "DATABASE {}" in template:
        name = statement.database
    assert name is not None
    assert name.parts[-1] == word


@settings(max_examples=200, deadline=None)
@given(sentences("compact"))
def test_a_compaction_of_the_ebnf_is_parsed(text: str) -> None:
    whole = f"ALTER TABLE t {text}"
    statement = parse(whole, is_ours=lambda parts: True)
    assert isinstance(statement, CompactTable)
    assert all(0 <= span.start < span.end <= len(whole) for span in spans(statement))
    assert (statement.order_by is None) == ("ORDER BY" not in text)


@settings(max_examples=200, deadline=None)
@given(sentences("filters"))
def test_filters_of_the_ebnf_are_parsed(text: str) -> None:
    found = parse(f"SHOW COMPACTIONS t {text}", is_ours=lambda parts: True)
    assert isinstance(found, ShowCompactions)
    assert found.name == Name(("t",), Span(17, 18))
    said = (found.pool, found.type, found.state, found.order_by or None, found.limit)
    assert [value is not None for value in said] == [
        word in text for word in ("POOL", "TYPE", "STATUS", "ORDER BY", "LIMIT")
    ]
