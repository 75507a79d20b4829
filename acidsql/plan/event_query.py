"""What every statement that changes rows is rewritten to: one query that yields events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acidsql.acid.table import Column, Table
from acidsql.acid.types import HiveType
from acidsql.errors import UnsupportedError
from acidsql.plan.assignment import assign
from acidsql.plan.sqltext import Text
from acidsql.sql.binder import default_sql
from acidsql.sql.conditions import has_subquery, terms_about, window_function
from acidsql.sql.tokens import Span
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote

# Spark's answer to "what columns would this query give": names and types, in order.
Fields = Sequence[tuple[str, HiveType]]
Analyse = Callable[[Text], Fields]

SOURCE = f"{ew.PREFIX}source"
# A view of a table's partitions: the directory's name, and the partition columns.
PARTITIONS = f"{ew.PREFIX}partitions"


@dataclass(frozen=True, slots=True)
class Derived:
    """A view over another query, which is analysed once for all that reads the view.

    Attributes:
        view: Its name.
        query: The query.
        fields: The columns that the statement was understood with; None: whoever reads the view
            looks.
    """

    view: str
    query: Text
    fields: Fields | None = None


@dataclass(frozen=True, slots=True)
class Reduced:
    """A MERGE whose target is reduced, before it is joined, to rows that have a partner.

    Attributes:
        query: As ``EventQuery.query``; it reads the source twice.
        joining: The source's columns by which ON joins the two, in lower case.
        partitions: Partition columns of the target, and the source's columns that ON wants to be
            equal to them.
        is_hashed: It is right only where ``own_functions.hashes_well``.
    """

    query: Text
    joining: frozenset[str]
    partitions: tuple[tuple[Column, str], ...] = ()
    is_hashed: bool = False


@dataclass(frozen=True, slots=True)
class EventQuery:
    """A query over stand-ins whose rows are events.

    Its columns, all but the user's with the reserved prefix, are those that
    ``storage.event_writer`` names: where the query only inserts, the table's columns and the
    partition values as text; else also ``action`` and the row id of the row that was read.

    Attributes:
        table: The target.
        query: Spark SQL, with a map to the user's text.
        deletes: Some events may be delete events.
        overwrite: INSERT OVERWRITE.
        static_partition: Values of all partition columns as text expressions, where the
            statement names them all; else None.
        merge: A row matched twice is a cardinality violation, not an error of ours.
        allow_duplicate_deletes: … but not here (an only, unconditional WHEN MATCHED DELETE).
        literal_rows: Rows of a VALUES list; None for any other source.
        plain_rows: The rows themselves, by column, if they are known without asking Spark: then
            there is no query.
        partitions: A query over ``PARTITIONS`` that gives the only partitions whose rows it can
            change, as far as the statement's text tells; None: any.
        maybe_few: Few events may come of it, and to see that is cheap.
        if_small: … but only where Spark estimates that they take few bytes.
        source: What MERGE reads as its source, if that is a view of its own.
        reduced: Another way to the same events, for a source that may be read twice; or None.
    """

    table: Table
    query: Text
    deletes: bool = False
    overwrite: bool = False
    static_partition: Text | None = None
    merge: bool = False
    allow_duplicate_deletes: bool = False
    literal_rows: int | None = None
    plain_rows: Mapping[str, Sequence[Any]] | None = None
    partitions: Text | None = None
    source: Derived | None = None
    reduced: Reduced | None = None
    maybe_few: bool = False
    if_small: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """What the rewrites need to know of the statement they rewrite.

    Attributes:
        text: The user's statement.
        table: The target.
        standin: The view that the target's live rows are read from.
        blank: A text over the statement, its references replaced.
        analyse: Asks Spark for a query's columns.
    """

    text: str
    table: Table
    standin: str
    blank: Text
    analyse: Analyse

    def new(self) -> Text:
        """An empty text over the statement."""
        return self.blank.new()


def assigned(planned: Planned, sql: str, kind: HiveType, column: Column, where: Span) -> str:
    """SQL of a value made fit for a column (see ``assignment.assign``)."""
    return assign(sql, kind, column.name, column.type, planned.text, where)


def default_fields(planned: Planned, columns: Sequence[Column]) -> dict[str, HiveType]:
    """The types of the columns' defaults, by column name."""
    given = [column for column in columns if column.default]
    if not given:
        return {}
    query = planned.new().raw("SELECT ").commas([default_sql(column) for column in given])
    fields = planned.analyse(query)
    return {column.name: kind for column, (_, kind) in zip(given, fields, strict=True)}


def omitted_value(planned: Planned, column: Column, types: dict[str, HiveType]) -> str:
    """SQL of what a column gets that the statement does not name: its DEFAULT, or NULL."""
    kind = types.get(column.name, HiveType("void"))
    return assigned(planned, default_sql(column), kind, column, Span(0, 0))


def key_columns(alias: str) -> list[str]:
    """The key columns of the row that was read from the target."""
    return [f"{quote(alias)}.{name}" for name in ew.KEYS]


def partition_text(sql: str, column: Column, ordinal: int) -> str:
    """A partition column's value as Hive writes it into the directory's name."""
    text = f"CAST({sql} AS STRING)"
    if column.type.startswith("char"):
        text = f"rtrim({text})"  # padding is no part of a CHAR
    return f"{text} AS {ew.VALUE}{ordinal}"


def value_name(number: int) -> str:
    """The name of a value of the user's between two steps of a query."""
    return f"{ew.PREFIX}v{number}"


def refuse_window(planned: Planned, expression: Span) -> None:
    """Spark would let a window function pass where it refuses other functions of many rows.

    Raises:
        UnsupportedError: There is one outside of a subquery.
    """
    place = window_function(planned.text, expression)
    if place is not None:
        raise UnsupportedError(
            "A window function cannot stand here: a row is changed by what is in that row. Put it "
            "into a subquery.",
            planned.text, place.start, place.end,
            condition="UNSUPPORTED_EXPR_FOR_OPERATOR", sqlstate="42K0E",
        )  # fmt: skip


def may_be_few(planned: Planned, where: Span | None) -> bool:
    """Whether an UPDATE or DELETE with this WHERE is worth being tried for few rows."""
    # What a subquery costs would be paid twice, if the rows are many after all.
    return where is not None and not has_subquery(planned.text, where)


def touched_partitions(planned: Planned, alias: str, where: Span | None) -> Text | None:
    """``EventQuery.partitions`` of an UPDATE or DELETE, from the terms of its WHERE."""
    columns = {column.name.lower() for column in planned.table.partition_columns}
    if where is None or not columns:
        return None
    terms = terms_about(planned.text, where, columns, {alias.lower()})
    if not terms:
        return None
    query = planned.new().raw(f"SELECT {ew.PARTITION} FROM {PARTITIONS} AS {quote(alias)} WHERE ")
    for number, term in enumerate(terms):
        query.raw(" AND " if number else "").user(term)
    return query


def single(value: Text) -> Text:
    """A value that may not yield several rows: Spark refuses a generator inside a call."""
    return value.new().raw("if(true, ").add(value).raw(", NULL)")
