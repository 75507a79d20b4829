"""Binds AUTO CDC to its target and source: the keys, the order of records, the columns they set.

A rule comes from a clause, or from a property that was declared with the target. Both may be given
if they say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.acid import cdc
from acidsql.acid.table import Column, Table
from acidsql.acid.values.types import parse_type
from acidsql.errors import AnalysisError, SqlError, UnsupportedError
from acidsql.plan.cdc.order import keeps_order
from acidsql.plan.rows.event_query import Fields, RewriteContext, refuse_window, single_value
from acidsql.plan.standins.view_text import need_table
from acidsql.plan.values.sqltext import Text
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.parsed.cdc_statements import EVERY, Choice
from acidsql.sql.parsed.statements import AutoCdc, Name
from acidsql.sql.queries.conditions import has_subquery, window_function
from acidsql.sql.text.tokens import Span, SqlText, Token, TokenKind, tokenize
from acidsql.suggestions import names_sentence


@dataclass(frozen=True, slots=True)
class RuleExpression:
    """An expression of a clause or of a property.

    Attributes:
        text: The expression as the user wrote it.
        span: Its place in the statement; None if it is a property's.
    """

    text: str
    span: Span | None

    def value(self, context: RewriteContext) -> Text:
        """Return the expression for a query over the source, inside of a function call, so that
        Spark refuses a generator such as explode()."""
        if self.span is not None:
            return single_value(context.new().user(self.span))
        return single_value(context.new().raw(f"({self.text}\n)"))

    def tokens(self, context: RewriteContext) -> list[Token]:
        """Return the tokens of the expression."""
        return tokenize(self.text) if self.span is None else tokenize(context.text, self.span)


@dataclass(frozen=True, slots=True)
class CdcRules:
    """The rules of one AUTO CDC.

    Attributes:
        keys: The target's columns that name a row.
        columns: The target's other columns that a record sets.
        unset_columns: The target's columns that no record sets. A row keeps their values.
        sequence: The order of a key's records.
        order: The target's columns that hold the order value of a live row; none if the state table
            holds it.
        is_struct: The order is that of a struct of these columns.
        delete_when: Whether a record deletes its row; None: no record does.
        truncate_when: Whether a record deletes all rows; None: no record does.
        tracked_columns: With SCD type 2, the columns among ``columns`` whose new value begins a new
            version. None: SCD type 1.
        ignore_null_columns: The columns among ``columns`` that a record with a NULL leaves as they
            are.
        place: The place of the source, for errors.
    """

    keys: tuple[Column, ...]
    columns: tuple[Column, ...]
    unset_columns: tuple[Column, ...]
    sequence: RuleExpression
    order: tuple[Column, ...]
    is_struct: bool
    delete_when: RuleExpression | None
    truncate_when: RuleExpression | None
    tracked_columns: tuple[Column, ...] | None
    ignore_null_columns: tuple[Column, ...]
    place: Span


def bind_rules(statement: AutoCdc, context: RewriteContext, fields: Fields) -> CdcRules:
    """Return the rules that a statement's clauses give, and the properties of its target in the
    place of missing clauses, with all names resolved to columns.

    Args:
        statement: The statement.
        context: The context of the rewrite.
        fields: The source's columns.

    Raises:
        AnalysisError: A column is missing or is given twice, a rule is missing, a clause and a
            property contradict each other, or a partition column would get no value.
        UnsupportedError: An expression contains a subquery or a window function; a key is of a
            nested type; or a clause is not for SCD type 2.
    """
    table = context.table
    _check_source(statement, context, fields)
    kinds = {name.lower(): kind for name, kind in fields}
    keys = _bind_keys(statement, context)
    columns = _bind_columns(statement, context, keys, list(kinds))
    sequence = _bind_expression(
        statement, context, statement.sequence_by, cdc.SEQUENCE_BY, "SEQUENCE BY"
    )
    if sequence is None:
        raise _missing_clause_error(statement, context, "SEQUENCE BY …", cdc.SEQUENCE_BY)
    delete_when = _bind_expression(
        statement, context, statement.delete_when, cdc.DELETE_WHEN, "APPLY AS DELETE WHEN"
    )
    truncate_when = _bind_expression(
        statement, context, statement.truncate_when, cdc.TRUNCATE_WHEN, "APPLY AS TRUNCATE WHEN"
    )
    versions = cdc.VERSION if statement.scd_type == 2 else ()
    set_names = {*versions, *(column.name for column in (*keys, *columns))}
    unset_columns = tuple(column for column in table.all_columns if column.name not in set_names)
    for column in unset_columns:
        if column in table.partition_columns and column.default is None:
            raise _error(
                context, statement.source, "NEED_PARTITION", "42000",
                f"The source has no value for the partition column '{column.name}'.",
            )  # fmt: skip
    exact = [column for column in (*keys, *columns) if keeps_order(kinds[column.name], column)]
    order, is_struct = _order_columns(sequence, context, statement.source_alias, exact)
    ignore_null_columns = _chosen_columns(statement.ignore_nulls, context, columns)
    tracked_columns = None
    if versions:
        _refuse_with_history(statement, context, truncate_when)
        order, is_struct = (), False  # __START_AT and __END_AT hold it
        tracked_columns = _chosen_columns(statement.track_history or EVERY, context, columns)
    return CdcRules(
        keys, columns, unset_columns, sequence, order, is_struct, delete_when, truncate_when,
        tracked_columns, ignore_null_columns, statement.source,
    )  # fmt: skip


def _refuse_with_history(
    statement: AutoCdc, context: RewriteContext, truncate_when: RuleExpression | None
) -> None:
    """Raise UnsupportedError if a statement of SCD type 2, which the caller has checked, has IGNORE
    NULL UPDATES or a condition that truncates: both need records that cannot be derived from the
    versions. ``truncate_when``: the condition of the clause or of the property; None: neither."""
    unsupported: list[tuple[str, Span | None]] = []
    if statement.ignore_nulls is not None:
        unsupported.append(("IGNORE NULL UPDATES", None))
    if truncate_when is not None:
        unsupported.append(("APPLY AS TRUNCATE WHEN", truncate_when.span))
    for words, span in unsupported:
        place = span or statement.target.span
        raise UnsupportedError(
            f"{words} with STORED AS SCD TYPE 2 is not supported.",
            context.text, place.start, place.end,
        )  # fmt: skip


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a list of columns, ``a, `b c` ``, in lower case and without backticks.
    Raise SqlError for any other text, also for ""."""
    c = Cursor(text, tokenize(text))
    names = [c.take_name_part("the name of a column").value.lower()]
    while c.accept(","):
        names.append(c.take_name_part("the name of a column").value.lower())
    c.expect_end("',' or the end of the list")
    return tuple(names)


# ── keys and columns ─────────────────────────────────────────────────────────────────────────


def _check_source(statement: AutoCdc, context: RewriteContext, fields: Fields) -> None:
    """Raise AnalysisError if two columns of the source have the same name but for case."""
    source_names: set[str] = set()
    for name, _ in fields:
        if name.lower() in source_names:
            raise _error(
                context, statement.source, "COLUMN_ALREADY_EXISTS", "42711",
                f"The source has two columns '{name}'.",
            )  # fmt: skip
        source_names.add(name.lower())


def _bind_keys(statement: AutoCdc, context: RewriteContext) -> tuple[Column, ...]:
    """Return the target's columns that are the keys, in the order of the table's property, or else
    of the clause KEYS. Raise AnalysisError if both are given and name other columns (in any order),
    if none is given, or for an unknown or repeated key; raise UnsupportedError for a key of a
    nested type."""
    table, place = context.table, statement.target.span
    declared = table.properties.get(cdc.KEYS)
    names_and_places = [(name.parts[-1].lower(), name.span) for name in statement.keys or ()]
    if declared is not None:
        names = _declared_names(statement, context, declared)
        if names_and_places and {name for name, _ in names_and_places} != set(names):
            span = Span(names_and_places[0][1].start, names_and_places[-1][1].end)
            raise _contradiction_error(context, span, "KEYS", cdc.KEYS, declared)
        names_and_places = [(name, place) for name in names]
    if not names_and_places:
        raise _missing_clause_error(statement, context, "KEYS (…)", cdc.KEYS)
    columns_by_name = {column.name: column for column in table.all_columns}
    keys: list[Column] = []
    for name, span in names_and_places:
        column = columns_by_name.get(name)
        if column is None:
            raise _missing_column_error(
                context, span, name, f"{table.name} has no key column",
                names_sentence(name, list(columns_by_name)),
            )  # fmt: skip
        if column in keys:
            raise _error(
                context, span, "COLUMN_ALREADY_EXISTS", "42711", f"The key '{name}' is given twice."
            )
        if parse_type(column.type).children:
            raise UnsupportedError(
                f"The key column '{name}' is of type {column.type.upper()}. Keys are plain values.",
                context.text, span.start, span.end,
                condition="UNSUPPORTED_FEATURE.AUTO_CDC_KEY",
            )  # fmt: skip
        keys.append(column)
    return tuple(keys)


def _declared_names(statement: AutoCdc, context: RewriteContext, text: str) -> tuple[str, ...]:
    """Return the names in the table's property of keys, in lower case. Raise AnalysisError if it is
    no list of columns."""
    try:
        return names_in(text)
    except SqlError:
        raise _error(
            context, statement.target.span, "INVALID_PROPERTY_VALUE", "22023",
            f"The property '{cdc.KEYS}' of {context.table.name} is no list of columns: '{text}'.",
        ) from None  # fmt: skip


def _bind_columns(
    statement: AutoCdc, context: RewriteContext, keys: Sequence[Column], source: Sequence[str]
) -> tuple[Column, ...]:
    """Return the target's columns, except for keys, that are set from the source's column of the
    same name, in the order of the table: those that COLUMNS names; without it, or with ``*
    EXCEPT``, all of the source's that are not left out.

    Raise AnalysisError if the source lacks a named column or a key, or a key is left out, if the
    target lacks a column of the source that is not left out, or if __START_AT or __END_AT would be
    set (SCD type 2).
    """
    columns_by_name = {column.name: column for column in context.table.all_columns}
    requested_names = list(source)
    choice = statement.columns or EVERY
    named_columns = [(name.parts[-1].lower(), name.span) for name in choice.names]
    for name, span in named_columns:
        if name not in source:
            raise _missing_column_error(
                context, span, name, "The source has no column", names_sentence(name, source)
            )
    excluded_names = {name for name, _ in named_columns} if choice.all_but else set()
    if not choice.all_but:
        requested_names = list(dict.fromkeys(name for name, _ in named_columns))
    for key in keys:
        if key.name in excluded_names or key.name not in source:
            place = next(
                (span for name, span in named_columns if name == key.name), statement.source
            )
            is_excluded = key.name in excluded_names
            raise _missing_column_error(
                context, place, key.name, "The records have no key column",
                "" if is_excluded else names_sentence(key.name, source, owner="the source"),
            )  # fmt: skip
    for name in requested_names:
        if statement.scd_type == 2 and name in cdc.VERSION and name not in excluded_names:
            raise _error(
                context, dict(named_columns).get(name, statement.source), "AUTOCDC_RESERVED_COLUMN",
                "42000", f"AUTO CDC itself sets the column '{name}', not the records. Leave it "
                "out by COLUMNS * EXCEPT (…).",
            )  # fmt: skip
        if name not in columns_by_name and name not in excluded_names:
            raise _missing_column_error(
                context, dict(named_columns).get(name, statement.source), name,
                f"{context.table.name} does not have the source's column",
                "Leave the column out by COLUMNS * EXCEPT (…), or add it by ALTER TABLE.",
            )  # fmt: skip
    names = set(requested_names) - excluded_names - {key.name for key in keys}
    return tuple(column for column in context.table.all_columns if column.name in names)


def _chosen_columns(
    choice: Choice | None, context: RewriteContext, columns: Sequence[Column]
) -> tuple[Column, ...]:
    """Return the columns that a clause chooses, also by ``* EXCEPT``, among those that records set,
    in their order; () without the clause. Raise AnalysisError if it names another column."""
    if choice is None:
        return ()
    column_names = {column.name for column in columns}
    names_and_places = [(name.parts[-1].lower(), name.span) for name in choice.names]
    for name, span in names_and_places:
        if name not in column_names:
            raise _missing_column_error(
                context, span, name, "Except for the keys, the records set no column"
            )
    chosen_names = {name for name, _ in names_and_places}
    return tuple(column for column in columns if (column.name in chosen_names) != choice.all_but)


# ── expressions ──────────────────────────────────────────────────────────────────────────────


def _bind_expression(
    statement: AutoCdc,
    context: RewriteContext,
    clause: Span | None,
    property_name: str,
    clause_name: str,
) -> RuleExpression | None:
    """Return the expression of a clause, or else of the table's property ``property_name``; None if
    neither is there. Raise UnsupportedError if the clause has a subquery or a window function.
    Raise AnalysisError if both are given and their tokens differ, or if the property alone is given
    and is empty, cannot be cut into tokens, or has a ``;``, a subquery or a window function. Spark
    has not seen the expression yet."""
    declared = _declared_sql(context.table, property_name)
    if clause is not None:
        if declared is not None and _normal_tokens(context.text, clause) != _normal_tokens(
            declared
        ):
            raise _contradiction_error(context, clause, clause_name, property_name, declared)
        if has_subquery(context.text, clause):
            raise UnsupportedError(
                f"A subquery in {clause_name} is not supported: join the source with it.",
                context.text, clause.start, clause.end,
            )  # fmt: skip
        refuse_window(context, clause)
        return RuleExpression(clause.slice(context.text), clause)
    if declared is None:
        return None
    try:
        Cursor(declared, tokens := tokenize(declared))
        is_good = bool(tokens) and all(token.text != ";" for token in tokens)
    except SqlError:
        is_good = False
    whole_span = Span(0, len(declared))
    if not is_good or has_subquery(declared, whole_span) or window_function(declared, whole_span):
        raise _error(
            context, statement.target.span, "INVALID_PROPERTY_VALUE", "22023",
            f"The property '{property_name}' of {context.table.name} is no expression over one "
            f"record: '{declared}'.",
        )  # fmt: skip
    return RuleExpression(declared, None)


def _declared_sql(table: Table, property_name: str) -> SqlText | None:
    """Return the SQL that a property of a table has, as written; None if the table has no such
    property."""
    declared = table.properties.get(property_name)
    return None if declared is None else SqlText(declared)


def _normal_tokens(text: str, span: Span | None = None) -> list[tuple[bool, str]] | str:
    """Return an expression, which is a text or a slice of a text, in a form that compares: a list
    of (is a string, value) without blanks, comments and quotes, and in lower case except for
    strings; the whole text itself if it cannot be cut into tokens."""
    try:
        tokens = tokenize(text, span)
    except SqlError:
        return text
    return [
        (token.kind is TokenKind.STRING, token.value)
        if token.kind is TokenKind.STRING
        else (False, token.value.lower())
        for token in tokens
    ]


def _order_columns(
    sequence: RuleExpression, context: RewriteContext, alias: str | None, columns: Sequence[Column]
) -> tuple[tuple[Column, ...], bool]:
    """Return the target's columns that already hold the order value, if SEQUENCE BY names nothing
    but such columns: ``a`` or ``struct(a, b)``, each perhaps with the source's alias before it.

    Args:
        sequence: The expression.
        context: The context of the rewrite.
        alias: The qualifier of the source's columns, or None.
        columns: The target's columns that keep the order of the source's values.

    Returns:
        The columns, in the order of SEQUENCE BY, and whether they are in a struct; () and False for
        any other expression.
    """
    tokens = sequence.tokens(context)
    is_struct = [token.upper for token in tokens[:2]] == ["STRUCT", "("]
    if is_struct and tokens[-1].text == ")":
        tokens = tokens[2:-1]
    columns_by_name = {column.name: column for column in columns}
    order_columns: list[Column] = []
    while tokens:
        is_qualified = len(tokens) > 2 and tokens[1].text == "."
        if is_qualified and alias is not None and tokens[0].value.lower() == alias.lower():
            tokens = tokens[2:]
        column = columns_by_name.get(tokens[0].value.lower()) if tokens[0].is_name else None
        if column is None:
            return (), False
        order_columns.append(column)
        tokens = tokens[1:]
        if tokens and (not is_struct or tokens[0].text != "," or len(tokens) == 1):
            return (), False
        tokens = tokens[1:]
    return tuple(order_columns), is_struct


# ── errors ───────────────────────────────────────────────────────────────────────────────────


def _missing_clause_error(
    statement: AutoCdc, context: RewriteContext, clause: str, property_name: str
) -> AnalysisError:
    """Return the error that a clause is needed, or the table's property ``property_name``."""
    return _error(
        context, statement.target.span, "AUTOCDC_CLAUSE_MISSING", "42601",
        f"AUTO CDC needs {clause}, or the property '{property_name}' of {context.table.name}.",
    )  # fmt: skip


def _contradiction_error(
    context: RewriteContext, span: Span, clause_name: str, property_name: str, declared_value: str
) -> AnalysisError:
    """Return the error that a clause says something else than the table's property
    ``property_name``, which was declared."""
    return _error(
        context, span, "AUTOCDC_DECLARATION_DRIFT", "42000",
        f"{context.table.name} was declared with '{property_name}'='{declared_value}'. Leave "
        f"{clause_name} out, or change the property by ALTER TABLE … SET TBLPROPERTIES.",
    )  # fmt: skip


def _missing_column_error(
    context: RewriteContext, span: Span, name: str, problem: str, advice: str = ""
) -> AnalysisError:
    """Return the error for a column that is missing: ``problem``, the name, and ``advice``."""
    return _error(
        context, span, "UNRESOLVED_COLUMN", "42703", f"{problem} '{name}'. {advice}".rstrip()
    )


def _error(
    context: RewriteContext, span: Span, condition: str, sqlstate: str, message: str
) -> AnalysisError:
    """Return an AnalysisError whose caret is at ``span``."""
    return AnalysisError(
        message, context.text, span.start, span.end, condition=condition, sqlstate=sqlstate
    )


def refuse_target(table: Table, target: Name, text: str) -> None:
    """Raise UnsupportedError for a target that is insert-only or a table of AUTO CDC's own (a state
    or pending table), and AnalysisError for a view."""
    need_table(table, target, text)
    target_kind = "an insert-only table (Hive 10414)"
    if not table.is_insert_only:
        target_kind = "a state table" if cdc.is_state(table) else "a pending table"
    if table.is_insert_only or cdc.is_cdc_table(table):
        raise UnsupportedError(
            f"AUTO CDC INTO {target_kind} is not supported.",
            text,
            target.span.start,
            target.span.end,
        )
