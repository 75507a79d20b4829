"""The form that every row-changing statement is rewritten to: one query that yields events.

The rewrites in ``insert``, ``update``, ``delete`` and ``merge`` share the functions below.

An event is the insertion or deletion of one row. A stand-in is a temporary view in the place of a
table. Store assignment is Spark's word for the conversion of a value to its column's type.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from acidsql.acid.table import Column, Table
from acidsql.acid.values.predicate import ANYTHING, Predicate
from acidsql.acid.values.types import HiveType
from acidsql.errors import UnsupportedError
from acidsql.plan.standins.standins import view_name
from acidsql.plan.standins.text_predicates import condition_predicate
from acidsql.plan.values.assignment import Policy, assignment_sql
from acidsql.plan.values.sqltext import Text
from acidsql.plan.values.struct_fields import FieldMatching, FieldRules
from acidsql.sql.binder import default_sql
from acidsql.sql.queries.conditions import has_subquery, terms_decided_by, window_function
from acidsql.sql.text.tokens import Span, TokenKind, tokenize, unwrap
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote

# The columns that a query would give, as Spark found by analysis: names and types, in order.
Fields = Sequence[tuple[str, HiveType]]
Analyse = Callable[[Text], Fields]

SOURCE = f"{ew.PREFIX}source"
_LITERAL_STARTS = frozenset("'\"rR(")  # the first characters of string literals, and a bracket


@dataclass(frozen=True, slots=True)
class DerivedView:
    """A view over another query. Spark analyses this query once for all readers of the view.

    Attributes:
        view: The view's name.
        query: The query.
        fields: The query's columns when the statement was prepared. They are compared with the
            columns under the locks. None means that nothing is compared.
        chars: The view has the columns of this table, and compares its CHARs as readers do.
        is_short: The query is a short text that reads no table, so it has few rows, as a rule.
    """

    view: str
    query: Text
    fields: Fields | None = None
    chars: Table | None = None
    is_short: bool = False


@dataclass(frozen=True, slots=True)
class ReducedQuery:
    """A MERGE whose target is reduced, before the join, to rows with a partner in the source.

    Attributes:
        query: Like ``EventQuery.query``, but reads the source twice.
        joining: The source's columns that ON compares with the target's, in lower case.
        partitions: Pairs of a partition column of the target and the source's column that ON
            equates with it.
    """

    query: Text
    joining: frozenset[str]
    partitions: tuple[tuple[Column, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StaticPartition:
    """The partition that a statement names: PARTITION (…) gives the values of all columns.

    Attributes:
        values: A query of one row with the values as text.
    """

    values: Text


@dataclass(frozen=True, slots=True)
class PartitionSearch:
    """A query for the partitions that an UPDATE or DELETE can change, as far as its WHERE tells.

    Attributes:
        view: The name of the view that the query is over. The view has one row for each partition:
            its directory's name, and the partition columns.
        query: The query.
    """

    view: str
    query: Text


class Collecting(Enum):
    """Whether the driver tries to collect a query's events, because there may be few."""

    NEVER = auto()
    IF_SMALL = auto()  # only if Spark estimates that the events take few bytes
    ALWAYS = auto()


@dataclass(frozen=True, slots=True)
class Hints:
    """Facts about the rows of an event query. They make the statement faster; without any of them
    it does the same.

    Attributes:
        literal_rows: The number of rows of a VALUES list; None for any other source.
        collecting: Whether the driver tries to collect the events.
        target_predicate: A predicate, from the terms of WHERE or of MERGE's ON, that holds for each
            row of the target that the query needs.
        reduced: For a MERGE: another query for the same events, which may be used if the source
            gives the same rows twice; or None.
    """

    literal_rows: int | None = None
    collecting: Collecting = Collecting.NEVER
    target_predicate: Predicate = ANYTHING
    reduced: ReducedQuery | None = None


@dataclass(frozen=True, slots=True)
class EventQuery:
    """A query over stand-ins. Each of its rows gives one or two events, or marks a match.

    Beside the table's data columns, the query has columns with a reserved prefix, which
    ``storage.event_records`` names. An INSERT has the data columns and the new row's partition
    values as text. An UPDATE or MERGE also has ``KEYS``, which identify the row that was read, and
    ``ACTION``. A DELETE, and a MERGE that only deletes, has ``KEYS`` and ``ACTION`` alone.

    Attributes:
        table: The target.
        query: Spark SQL, with a map to the user's text.
        mode: What the events do to the target's rows.
        partitions: What the statement's text tells about the partitions that it can change; None:
            nothing.
        plain_rows: The rows by column, if they are known without Spark. The query is empty then.
        source: The view over a MERGE's source, or over the new rows of REPLACE WHERE. None for
            other statements, and for a MERGE that must stay one query (see
            ``merge.derived_source``).
        hints: Facts that make the statement faster.
    """

    table: Table
    query: Text
    mode: ew.WriteMode = ew.WriteMode.INSERT
    partitions: StaticPartition | PartitionSearch | None = None
    plain_rows: Mapping[str, Sequence[Any]] | None = None
    source: DerivedView | None = None
    hints: Hints = Hints()

    @property
    def reduction(self) -> tuple[ReducedQuery, DerivedView] | None:
        """The query over a reduced target, and MERGE's source. None: there is only ``query``."""
        if self.hints.reduced is None or self.source is None:
            return None
        return self.hints.reduced, self.source


@dataclass(frozen=True, slots=True)
class RewriteContext:
    """What the rewrite of a statement needs to know about the statement and the session.

    Attributes:
        text: The user's statement.
        table: The target.
        standin: The view that gives the target's live rows.
        blank: An empty text over the statement, with the edits that replace ACID tables.
        analyse: Asks Spark for a query's columns.
        double_quoted: ``"…"`` is a name in this session, or may be one.
        policy: The session's rules of store assignment.
        table_before: The target without the columns that the statement adds; None: it adds none.
        blank_hiding: Makes a text like ``blank``, in which each ``*`` of the target or the source
            also leaves out the named columns of our own.
        is_case_sensitive: The session tells names apart by case.
        evolves: WITH SCHEMA EVOLUTION: a value may lack fields of a struct.
    """

    text: str
    table: Table
    standin: str
    blank: Text
    analyse: Analyse
    double_quoted: bool = True
    policy: Policy = Policy.ANSI
    table_before: Table | None = None
    is_case_sensitive: bool = False
    evolves: bool = False
    blank_hiding: Callable[[Sequence[str]], Text] | None = None

    def with_hidden_columns(self, names: Sequence[str]) -> RewriteContext:
        """Return this context, where target and source also have the named columns, which no ``*``
        shows; without ``blank_hiding`` it is the same context."""
        return self if self.blank_hiding is None else replace(self, blank=self.blank_hiding(names))

    def new(self, ctes: Span | None = None) -> Text:
        """Return a text over the statement: empty, or with a leading WITH clause."""
        return self.blank.new(ctes)


def assigned_sql(
    context: RewriteContext,
    sql: str,
    kind: HiveType,
    column: Column,
    where: Span,
    *,
    is_literal: bool | None = None,
    matching: FieldMatching = FieldMatching.BY_NAME,
    old: str | None = None,
) -> str:
    """Return SQL that converts a value to a column's type. The job fails at a value that does not
    fit; but with the policy LEGACY, a text that is no value of the type becomes NULL.

    Args:
        context: The context of the rewrite.
        sql: The value; a column, because the result may repeat it.
        kind: The value's type.
        column: The target column.
        where: The value's place in the statement, for errors.
        is_literal: The value is a string literal; default: whether there is one at ``where``.
        matching: How the statement matches columns, and so the fields of structs.
        old: SQL of the column's old value. Fields of structs that the value lacks keep it.

    Raises:
        AnalysisError: The column takes no values of this type.
    """
    is_literal = is_text(context, where) if is_literal is None else is_literal
    return assignment_sql(
        sql, kind, column.name, column.type, context.text, where,
        is_literal=is_literal, policy=context.policy, old_sql=old,
        field_rules=FieldRules(matching, context.is_case_sensitive, context.evolves),
    )  # fmt: skip


def is_text(context: RewriteContext, where: Span) -> bool:
    """Whether there is nothing but one string literal at a place of the statement, perhaps in
    brackets. ``"…"`` is none if it is a name in this session."""
    if context.text[where.start : where.start + 1] not in _LITERAL_STARTS:
        return False
    tokens = unwrap(tokenize(context.text, where, double_quoted_identifiers=context.double_quoted))
    return len(tokens) == 1 and tokens[0].kind is TokenKind.STRING


def default_fields(context: RewriteContext, columns: Sequence[Column]) -> dict[str, HiveType]:
    """Return the types of the columns' DEFAULTs, by column name, as Spark finds them by analysing
    one query. Columns without one are left out; if none has one, Spark is not asked."""
    with_default = [column for column in columns if column.default]
    if not with_default:
        return {}
    query = context.new().raw("SELECT ").commas([default_sql(column) for column in with_default])
    fields = context.analyse(query)
    return {column.name: kind for column, (_, kind) in zip(with_default, fields, strict=True)}


def omitted_value(context: RewriteContext, column: Column, types: dict[str, HiveType]) -> str:
    """Return SQL of the value of a column that the statement does not name: its DEFAULT, or NULL,
    converted to the column's type, whatever the session's policy. Fields of a struct go by
    position, and fields that the DEFAULT lacks are NULL.

    ``types``: the types of DEFAULTs, from `default_fields`; a column without one has the type VOID.
    """
    kind = types.get(column.name, HiveType("void"))
    # The default fits its column, whatever the session's policy says. As in Spark, its fields go by
    # position. The column may have got more fields since.
    fits = replace(context, policy=Policy.ANSI, evolves=True)
    by_position = FieldMatching.BY_POSITION
    return assigned_sql(fits, default_sql(column), kind, column, Span(0, 0), matching=by_position)


def default_value(context: RewriteContext, column: Column) -> str:
    """Return SQL of DEFAULT for a column, in the column's type."""
    return omitted_value(context, column, default_fields(context, [column]))


def key_columns(alias: str) -> list[str]:
    """Return SQL of the columns that identify the row that was read from the target, under its
    alias."""
    return [f"{quote(alias)}.{name}" for name in ew.KEYS]


def partition_text(sql: str, column: Column, ordinal: int) -> str:
    """Return SQL of a partition column's value as the text that Hive writes into a directory's
    name, before any escaping, without the padding of a CHAR; it is the column VALUE + ``ordinal``.
    NULL stays NULL."""
    text = f"CAST({sql} AS STRING)"
    if column.type.startswith("char"):
        text = f"rtrim({text})"  # the padding is not part of a CHAR's value
    return f"{text} AS {ew.VALUE}{ordinal}"


def update_action(table: Table, changed: Collection[str]) -> int:
    """Return the action (flags of ``event_records``) of an update that sets the columns
    ``changed``: INSERT and DELETE, and MOVED if one is a partition column."""
    moves = any(column.name in changed for column in table.partition_columns)
    return ew.INSERT | ew.DELETE | (ew.MOVED if moves else 0)


def value_name(number: int) -> str:
    """Return the column name under which an inner query passes a user's value to the outer
    query."""
    return f"{ew.PREFIX}v{number}"


def refuse_window(context: RewriteContext, expression: Span) -> None:
    """Refuse a window function. Spark refuses aggregate functions here, but not this one.

    Raises:
        UnsupportedError: The expression has a window function outside of subqueries.
    """
    place = window_function(context.text, expression)
    if place is not None:
        raise UnsupportedError(
            "A window function is not allowed here, because the statement evaluates each row by "
            "itself. Put the function into a subquery.",
            context.text, place.start, place.end,
            condition="UNSUPPORTED_EXPR_FOR_OPERATOR", sqlstate="42K0E",
        )  # fmt: skip


def may_be_few(text: str, where: Span | None) -> bool:
    """Whether the driver should try to collect the events of an UPDATE or DELETE: there is a WHERE,
    and it has no subquery."""
    # If there are many events after all, a subquery is evaluated twice.
    return where is not None and not has_subquery(text, where)


def condition_hints(context: RewriteContext, alias: str, where: Span | None) -> Hints:
    """Return what the WHERE of an UPDATE or DELETE tells about the rows: a predicate that the
    target's rows satisfy, and that the driver always tries to collect the events if there is a
    WHERE without a subquery, and otherwise never."""
    return Hints(
        collecting=Collecting.ALWAYS if may_be_few(context.text, where) else Collecting.NEVER,
        target_predicate=condition_predicate(context.text, context.table, alias, where),
    )


def partition_search(
    context: RewriteContext, alias: str, where: Span | None
) -> PartitionSearch | None:
    """Return the query that finds the partitions which an UPDATE or DELETE can change, from the
    terms of its WHERE on partition columns alone. Its rows are the partitions' directories; the
    view that it reads does not exist yet. Return None if there is no such term, no WHERE, or the
    table has no partition columns."""
    columns = {column.name.lower() for column in context.table.partition_columns}
    if where is None or not columns:
        return None
    terms = terms_decided_by(context.text, where, columns, {alias.lower()})
    if not terms:
        return None
    view = view_name()  # other sessions of this Spark session may ask at the same time
    query = context.new().raw(f"SELECT {ew.PARTITION} FROM {view} AS {quote(alias)} WHERE ")
    for number, term in enumerate(terms):
        query.raw(" AND " if number else "").user(term)
    return PartitionSearch(view, query)


def single_value(value: Text) -> Text:
    """Return a value inside of a function call, so that Spark refuses a generator such as explode()
    in it."""
    return value.new().raw("if(true, ").add(value).raw(", NULL)")
