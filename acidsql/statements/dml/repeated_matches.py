"""Explains why a MERGE has matched a row of its target twice: which rows, and how to find them all.

The tasks that write tell the row ids of the first such rows. Their values are read from the target.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import Table
from acidsql.acid.virtual_columns import ROW__ID
from acidsql.errors import MergeCardinalityError
from acidsql.plan.standins.query import StandIn, view_name
from acidsql.sql.parsed.statements import Merge
from acidsql.sql.text.tokens import Span, tokenize
from acidsql.statements.context.family import Context
from acidsql.statements.dml.hold import LockedStatement
from acidsql.statements.queries.table_rows import TableRows
from acidsql.storage.columns import quote
from acidsql.storage.event_records import RowKey

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_MOST_COLUMNS = 5  # of ON, in an example


class RepeatedMatches:
    """Explains the errors of one session's statements."""

    def __init__(self, context: Context) -> None:
        self._rows = TableRows(context)

    @contextmanager
    def explained(self, statement: object, held: LockedStatement, text: str) -> Iterator[None]:
        """Raise a MergeCardinalityError of the block with the values, by the columns of ON, of at
        most three rows of the target that were matched twice, and with a query that finds all. If
        these rows cannot be read, the error has the query alone.

        Args:
            statement: The statement; the errors of others than MERGE pass as they are.
            held: The statement as it was prepared, and its snapshot.
            text: The statement's text.
        """
        try:
            yield
        except MergeCardinalityError as error:
            if not isinstance(statement, Merge):
                raise
            table = held.prepared.table_before or held.prepared.queries[0].table
            columns = _columns_of_on(statement, table, text)
            example_texts: list[str] = []
            # The error is more important than its explanation.
            with suppress(Exception):
                example_texts = self._example_texts(error.examples, columns, table, held)
            raise _explained_error(error, statement, table, columns, example_texts, text) from None

    def _example_texts(
        self, keys: Sequence[RowKey], columns: Sequence[str], table: Table, held: LockedStatement
    ) -> list[str]:
        """Read the rows with these keys, and return a text such as ``id = 1, v = 'a'`` for each."""
        if not keys:
            return []
        rows = self._rows.rows(StandIn(view_name(), table, (ROW__ID,)), held.snapshot)
        is_example = reduce(Column.__or__, (_has_key(rows, key) for key in keys))
        examples = rows.where(is_example).select(*(F.col(quote(name)) for name in columns))
        example_rows = sorted(examples.limit(len(keys)).collect(), key=repr)
        return [
            ", ".join(f"{name} = {_value_text(value)}" for name, value in row.asDict().items())
            for row in example_rows
        ]


def _columns_of_on(statement: Merge, table: Table, text: str) -> list[str]:
    """Return the target's columns that ON names, each once, in the order of ON; the first data
    columns if ON names none. At most ``_MOST_COLUMNS``."""
    tokens = tokenize(text, statement.on)
    known = {column.name.lower(): column.name for column in table.all_columns}
    names: dict[str, None] = {}
    for index, token in enumerate(tokens):
        if not token.is_name or token.value.lower() not in known:
            continue
        is_qualified = index > 1 and tokens[index - 1].text == "."
        qualifier = tokens[index - 2].value.lower() if is_qualified else statement.qualifier.lower()
        if qualifier == statement.qualifier.lower():
            names[known[token.value.lower()]] = None
    return [*(names or known.values())][:_MOST_COLUMNS]


def _has_key(rows: DataFrame, key: RowKey) -> Column:
    """Return the condition that a row has this key. Partitions are compared by their values as
    text."""
    row_id = F.col(ROW__ID)
    parts = [
        row_id["writeid"] == key.write_id,
        row_id["bucketid"] == key.bucket_property,
        row_id["rowid"] == key.row_id,
        *(
            F.col(quote(name)).cast("string").eqNullSafe(F.lit(value))
            for name, value in (parse_partition_name(key.partition) if key.partition else ())
        ),
    ]
    return reduce(Column.__and__, parts)


def _explained_error(
    error: MergeCardinalityError,
    statement: Merge,
    table: Table,
    columns: Sequence[str],
    example_texts: Sequence[str],
    text: str,
) -> MergeCardinalityError:
    """Make the error with examples and with the query that finds all rows."""
    examples = f": {'; '.join(example_texts)}" if example_texts else ""
    explained = MergeCardinalityError(
        f"Several rows of the source match one row of {table.name}{examples}. Make the source's "
        "keys unique, or make the condition tell its rows apart. This query finds all such rows: "
        f"{_finding_query(statement, table, columns, text)}",
        **error.parameters,
    )
    explained.examples = error.examples
    return explained


def _finding_query(statement: Merge, table: Table, columns: Sequence[str], text: str) -> str:
    """Return a query that finds the rows of the target that several rows of the source match, by
    the user's source and condition. It is one line unless theirs are more."""
    qualifier = _name(statement.qualifier)
    keys = [f"{qualifier}.{_name(name)}" for name in columns]
    partitions = [f"{qualifier}.{_name(column.name)}" for column in table.partition_columns]
    groups = dict.fromkeys([f"{qualifier}.{ROW__ID}", *partitions, *keys])
    target = ".".join(map(_name, statement.target.parts))
    target += f" AS {qualifier}" if statement.alias else ""
    source = _slice(statement.source, text)
    if statement.source_alias is not None and statement.source_alias != source:
        source += f" AS {_name(statement.source_alias)}"
    if statement.source_columns is not None:
        source += f"({', '.join(map(_name, statement.source_columns))})"
    ctes = "" if statement.ctes is None else f"{_slice(statement.ctes, text)} "
    return (
        f"{ctes}SELECT {', '.join(keys)}, count(*) AS matches FROM {target} JOIN {source} "
        f"ON {_slice(statement.on, text)} GROUP BY {', '.join(groups)} HAVING count(*) > 1"
    )


def _slice(span: Span, text: str) -> str:
    """Return a slice of the user's text; a comment at its end ends with the line."""
    part = span.slice(text)
    return f"{part}\n" if "--" in part else part


def _name(name: str) -> str:
    """Return a name as an identifier, in quotes if it needs them."""
    return name if _PLAIN_NAME.fullmatch(name) else quote(name)


def _value_text(value: Any) -> str:
    """Return a value as it may stand in SQL, at least nearly."""
    if value is None:
        return "NULL"
    return repr(value) if isinstance(value, str) else str(value)
