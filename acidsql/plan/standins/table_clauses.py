"""The clauses that may follow a table's name in FROM: AS OF, WITH (…), and Hive's properties."""

from __future__ import annotations

from acidsql.acid.table import Table
from acidsql.errors import UnsupportedError
from acidsql.sql.commands.properties import parse_properties_and_places
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.parsed.time_travel import AsOf, parse_time_travel
from acidsql.sql.queries.references import Reference
from acidsql.sql.text.tokens import Span, tokenize

DELETED_ROWS = "acid.fetch.deleted.rows"


def parse_as_of(text: str, table: Table, reference: Reference) -> AsOf | None:
    """Parse the version that ``VERSION AS OF`` or ``TIMESTAMP AS OF`` behind a table's name gives;
    return None without such a clause.

    Raises:
        SqlSyntaxError: No version follows AS OF.
        UnsupportedError: The table has no versions, or ``WITH (…)`` follows its name.
    """
    if (span := reference.options) is not None:
        raise UnsupportedError(
            "WITH (…) is not supported for ACID tables.",
            text, span.start, span.end,
            condition="UNSUPPORTED_FEATURE.TABLE_OPTIONS",
        )  # fmt: skip
    if (span := reference.time_travel) is None:
        return None
    if not table.is_transactional:
        reason = (
            "is no ACID table, so it has no older versions"
            if table.view is None
            else "is a view. acid.snapshot(timestamp=…) shows the tables beneath at a time"
        )
        raise UnsupportedError(
            f"{table.name} {reason}.",
            text, span.start, span.end,
            condition="UNSUPPORTED_FEATURE.TIME_TRAVEL",
        )  # fmt: skip
    return parse_time_travel(text, span)


def asks_for_deleted_rows(text: str, table: Table, reference: Reference) -> bool:
    """Whether Hive's ``t('acid.fetch.deleted.rows'='true')`` asks for deleted rows, too. False
    for ``'false'``, and without properties.

    Raises:
        SqlSyntaxError: The properties do not parse.
        UnsupportedError: A property has another name or value, or the table is no full-ACID one.
    """
    if (span := reference.properties) is None:
        return False
    pairs, places = parse_properties_and_places(Cursor(text, tokenize(text, span)))
    for (key, value), place in zip(pairs, places, strict=True):
        if key != DELETED_ROWS or value.lower() not in ("true", "false"):
            raise _table_option_error(
                f"A query can give a table no property but '{DELETED_ROWS}', which is 'true' or "
                "'false'.", text, place,
            )  # fmt: skip
    if not table.has_row_ids:
        raise _table_option_error(
            f"{table.name} is no full-ACID table, so it has no deleted rows to show.", text, span
        )
    return dict(pairs)[DELETED_ROWS].lower() == "true"


def _table_option_error(message: str, text: str, place: Span) -> UnsupportedError:
    return UnsupportedError(
        message, text, place.start, place.end, condition="UNSUPPORTED_FEATURE.TABLE_OPTIONS"
    )
