"""Scopes: what the name of a relation means where a WITH clause declares names."""

from __future__ import annotations

import pytest

from acidsql.errors import SqlSyntaxError
from acidsql.sql.parsed.statements import Merge
from acidsql.sql.parser import parse
from acidsql.sql.queries.references import mentioned_tables, references
from acidsql.sql.text.tokens import Span

WITH = "WITH orders AS (SELECT id FROM orders WHERE id = 2)"


def source_of(text: str, *, double_quoted: bool = False) -> Merge:
    statement = parse(text, is_ours=lambda _: True, double_quoted_identifiers=double_quoted)
    assert isinstance(statement, Merge)
    return statement


@pytest.mark.parametrize(
    ("clause", "name", "is_table"),
    [
        (WITH, "orders", False),
        (WITH, "ORDERS", False),
        (WITH, "`orders`", False),
        ("WITH `Or``d rs` AS (SELECT 1 AS id)", "`or``D rs`", False),
        ('WITH "orders" AS (SELECT 1 AS id)', "orders", False),
        (WITH, "db.orders", True),
        (WITH, "`db.orders`", True),
        (WITH, "{orders}", True),
        ("WITH a AS (SELECT 1 AS id), orders (id) AS (SELECT 2)", "orders", False),
        ("WITH orders (SELECT 1 AS id)", "orders", False),
        ("WITH RECURSIVE orders (n) MAX RECURSION LEVEL 9 AS (SELECT 1)", "orders", False),
        ("WITH a AS (WITH orders AS (SELECT 1) SELECT * FROM orders)", "orders", True),
        ("WITH a AS (SELECT * FROM orders)", "orders", True),
    ],
)
def test_a_named_source_is_a_table_only_if_no_cte_has_the_name(
    clause: str, name: str, is_table: bool
) -> None:
    for change in (
        f"DELETE FROM r USING {name} o WHERE r.id = o.id",
        f"UPDATE r SET v = 1 FROM {name} o WHERE r.id = o.id RETURNING r.id",
        f"MERGE INTO r USING {name} o ON r.id = o.id WHEN MATCHED THEN DELETE",
    ):
        text = f"{clause} {change}"
        found = source_of(text, double_quoted='"' in clause)
        assert (found.source_name is not None) is is_table
        assert (found.source_alias, found.source.slice(text)) == ("o", name)


def test_a_source_without_an_alias_has_the_name_as_the_user_writes_it() -> None:
    found = source_of(f"{WITH} DELETE FROM r USING `ORDERS` WHERE r.id = orders.id")
    assert (found.source_name, found.source_alias) == (None, "ORDERS")


def test_a_deeply_nested_with_clause_is_an_error_of_syntax() -> None:
    deep = "(" * 3_000 + "1" + ")" * 3_000
    with pytest.raises(SqlSyntaxError, match="nested too deeply"):
        source_of(f"WITH a AS (SELECT {deep}) DELETE FROM r USING a WHERE r.id = a.id")


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("INSERT INTO z WITH b AS (TABLE a) SELECT * FROM b", []),
        ("INSERT INTO z (id) WITH a AS (TABLE c) SELECT * FROM a", ["c"]),
        ("INSERT INTO z TABLE c", ["c"]),
        ("INSERT INTO z PARTITION (p = 1) TABLE a", []),
        ("INSERT WITH SCHEMA EVOLUTION INTO z BY NAME WITH b AS (TABLE c) TABLE b", ["c"]),
        ("INSERT INTO z REPLACE WHERE id > 0 WITH c AS (SELECT 1) TABLE c", []),
        ("FROM c INSERT INTO z SELECT id INSERT INTO z SELECT id FROM a", ["c"]),
    ],
)
def test_a_query_behind_insert_sees_the_names_before_it_and_its_own(
    text: str, tables: list[str]
) -> None:
    found = references(f"WITH a AS (SELECT 1 AS id) {text}")
    assert [".".join(one.parts) for one in found.references] == tables


def test_a_cte_in_scope_has_no_older_version() -> None:
    """Spark refuses it, and does not look for a table of that name."""
    text = f"{WITH} SELECT * FROM orders VERSION AS OF 1"
    assert [one.span for one in references(text).references] == [Span(31, 37)]


def test_a_statement_of_sparks_is_not_refused_for_the_name_of_a_cte() -> None:
    merge = f"{WITH.replace('FROM orders', 'FROM s')} MERGE INTO ice.db.t USING orders ON true"
    assert [one.parts for one in mentioned_tables(merge)] == [("s",), ("ice", "db", "t")]
    for target in ("DELETE FROM orders", "INSERT INTO orders SELECT 1", "TRUNCATE TABLE orders"):
        found = mentioned_tables(f"WITH orders AS (SELECT 1) {target}")
        assert [one.parts for one in found] == [("orders",)]
