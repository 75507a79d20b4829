"""A case: tables, statements, and the query that shows the result."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

LAYOUTS = ("plain", "both")


@dataclass(frozen=True)
class Table:
    """A table, with its rows as the text of VALUES.

    Attributes:
        name: The table's name.
        columns: Its columns, without those of PARTITIONED BY, as CREATE TABLE has them.
        rows: The first rows; "" for none.
        partitioned: The columns of PARTITIONED BY with their types.
        checks: The CHECK constraints, as name and condition.
        properties: The table properties for acidsql alone.
        insert_only: Whether acidsql makes an insert-only table.
    """

    name: str
    columns: str
    rows: str = ""
    partitioned: str = ""
    checks: tuple[tuple[str, str], ...] = ()
    properties: str = ""
    insert_only: bool = False

    def acid_ddl(self, layout: str) -> str:
        """The CREATE TABLE of acidsql. A layout takes the last column as the partition column, and
        the first one for the buckets."""
        columns, partitioned = self.columns, self.partitioned
        if layout in ("partitioned", "both") and not partitioned:
            columns, partitioned = _without_last(columns)
        checks = "".join(f", CONSTRAINT {name} CHECK ({test})" for name, test in self.checks)
        text = f"CREATE TABLE {self.name} ({columns}{checks})"
        if partitioned:
            text += f" PARTITIONED BY ({partitioned})"
        if layout in ("bucketed", "both"):
            text += f" CLUSTERED BY ({self.columns.split()[0]}) INTO 3 BUCKETS"
        properties = [self.properties] if self.properties else []
        if self.insert_only:
            properties.append("'transactional_properties'='insert_only'")
        return text + (f" TBLPROPERTIES ({', '.join(properties)})" if properties else "")

    def peer_columns(self) -> str:
        """All columns, as the peers' CREATE TABLE has them."""
        return f"{self.columns}, {self.partitioned}" if self.partitioned else self.columns

    def partition_names(self) -> str:
        """The names of the partition columns, separated by commas."""
        return ", ".join(column.split()[0] for column in _columns(self.partitioned))


def _columns(text: str) -> list[str]:
    """Definitions of columns, cut at the commas outside of brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "(<") - (sign in ")>")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def _without_last(text: str) -> tuple[str, str]:
    *front, last = _columns(text)
    return ", ".join(front), last


@dataclass(frozen=True)
class Case:
    """A question to acidsql and to an oracle.

    Attributes:
        name: What is asked, in words. It is the case's name in the recording.
        tables: The tables. The first one is the target.
        statement: The statement, or several of them.
        setup: Statements before it, which both sides run. ``{v1}`` in a later text is the target's
            version after the first of them.
        query: Shows the result. Default: all rows of the target.
        oracle: ``delta``, or ``iceberg`` for what Delta Lake refuses, as DELETE and UPDATE with
            subqueries.
        peer: The statements of the oracle, if they are worded otherwise.
        peer_query: The oracle's query, if its result is seen otherwise.
        conf: Spark's settings for the case.
        views: Temporary views, by name, as queries.
        method: Calls methods of acidsql's session, or of Spark's DataFrames, instead of
            ``statement``: it gets the session of acidsql.
        layouts: The layouts in which acidsql answers the case: ``plain``; ``bucketed``;
            ``partitioned`` by the last column; ``both``.
    """

    name: str
    tables: tuple[Table, ...]
    statement: str | tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    query: str = ""
    oracle: str = "delta"
    peer: str | tuple[str, ...] = ()
    peer_query: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    method: Callable[[Any], Any] | None = None
    layouts: tuple[str, ...] = ("plain",)

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements that acidsql runs, if there is no method."""
        return _tuple(self.statement)

    @property
    def peer_statements(self) -> tuple[str, ...]:
        """The statements that the oracle runs."""
        return _tuple(self.peer or self.statement)

    @property
    def shown(self) -> str:
        """The query that shows the result."""
        return self.query or f"SELECT * FROM {self.tables[0].name}"

    def digest(self) -> str:
        """A number for all that the oracle gets: it changes when a recorded answer is of another
        question."""
        tables = [(t.name, t.peer_columns(), t.rows, t.partitioned, t.checks) for t in self.tables]
        question = (
            tables, self.setup, self.peer_statements, self.peer_query or self.shown, self.oracle,
            sorted(self.conf.items()), sorted(self.views.items()),
        )  # fmt: skip
        return hashlib.sha256(repr(question).encode()).hexdigest()[:8]


def _tuple(text: str | tuple[str, ...]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text
