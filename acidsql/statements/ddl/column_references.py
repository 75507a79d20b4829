"""All references to a table's columns that are kept outside of the schema.

RENAME COLUMN, CHANGE and REPLACE COLUMNS ask this module which references must get a column's new
name, and which ones keep the column from getting a new name. (A column cannot be dropped, nor can a
field of a struct be renamed.)

================================================  ==============================================
CLUSTERED BY, SORTED BY                           get the new name
properties that are lists of columns              get the new name
statistics of ANALYZE                             get the new name
the state table of AUTO CDC, with its properties  gets the new name
NOT NULL, DEFAULT                                 belong to their column; no DEFAULT names another
constraints, also FOREIGN KEYs of other tables    the column keeps its name
properties that are expressions                   the column keeps its name
views that read the table                         the column keeps its name
================================================  ==============================================

A new property that names columns must be added to ``_PLAIN_LISTS``, ``_SQL_LISTS`` or
``_EXPRESSIONS``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from acidsql.acid import cdc
from acidsql.acid.properties import CHANGE_KEY
from acidsql.acid.table import SortColumn, Table, TableName
from acidsql.errors import AcidSqlError, SettingError, SqlError, UnsupportedError
from acidsql.metastore.foreign import view_of
from acidsql.metastore.interface import Metastore
from acidsql.plan.cdc.rules import names_in
from acidsql.plan.standins.view_text import ViewQuery
from acidsql.plan.values.checks import constraints_that_mention
from acidsql.sql.queries.conditions import mentioned_columns
from acidsql.sql.queries.references import references
from acidsql.sql.queries.table_changes import parse_table_changes
from acidsql.sql.text.tokens import Span, Token, tokenize
from acidsql.storage.columns import quote
from acidsql.storage.orc.options import BLOOM_FILTER_COLUMNS, DIRECT_ENCODING_COLUMNS

# Lists of columns: plain names with commas between them (a field is ``s.f``), and lists in SQL.
_PLAIN_LISTS = (CHANGE_KEY, BLOOM_FILTER_COLUMNS, *DIRECT_ENCODING_COLUMNS)
_SQL_LISTS = (cdc.KEYS, cdc.ORDER)
_EXPRESSIONS = (cdc.SEQUENCE_BY, cdc.DELETE_WHEN, cdc.TRUNCATE_WHEN)
# Hive's: if a name in these properties were no column's, a column would be written unprotected.
_PROTECTIONS = ("orc.encrypt", "orc.mask")
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class NewName:
    """A column's old and new name, and the column's place in the statement."""

    old: str
    new: str
    place: Span


# ── references that get the new name ─────────────────────────────────────────────────────────


def renamed_sort_columns(table: Table, names: Mapping[str, str]) -> tuple[SortColumn, ...]:
    """Return a table's columns of SORTED BY with new names (old name → new name)."""
    return tuple(SortColumn(names.get(s.name, s.name), s.descending) for s in table.sort_columns)


def renamed_properties(table: Table, names: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a table that are lists of columns, with new names (old name → new
    name) in their values. Properties that do not change are left out."""
    renamed: dict[str, str] = {}
    for key in (*_PLAIN_LISTS, *_SQL_LISTS):
        text = table.properties.get(key)
        if text is not None and (new_text := _renamed_list(key, text, table, names)) != text:
            renamed[key] = new_text
    return renamed


def _renamed_list(key: str, text: str, table: Table, names: Mapping[str, str]) -> str:
    """Return a property's list of columns with new names (old name → new name). ``key`` tells
    whether it is a list in SQL or of plain names. If the list names none of the renamed columns, or
    is no list in SQL, the text is returned as it is; otherwise the list is written anew."""
    if key in _SQL_LISTS:
        columns = _sql_names(text)
        if not any(column in names for column in columns):
            return text
        return ", ".join(_sql_name(names.get(column, column), key) for column in columns)
    paths = text.split(",")
    new_paths = [_renamed_path(path.strip(), table, names) for path in paths]
    is_same = new_paths == [path.strip() for path in paths]
    separator = "," if key != CHANGE_KEY else ", "
    return text if is_same else separator.join(new_paths)


def _renamed_path(path: str, table: Table, names: Mapping[str, str]) -> str:
    """Return ``path``, which is a column or a field ``column.field``, with the column's new name;
    unchanged if the column is not renamed or not the table's. A column may have a dot in its
    name."""
    columns = {column.name for column in table.all_columns}
    ends = [len(path), *(match.start() for match in re.finditer(r"\.", path))]
    end = next((end for end in ends if path[:end].lower() in columns), len(path))
    column = path[:end].lower()
    return f"{names[column]}{path[end:]}" if names.get(column, column) != column else path


def _sql_names(text: str) -> tuple[str, ...]:
    """Return the names in a list of columns written as SQL, in lower case and without backticks; ()
    if the text is no such list."""
    try:
        return names_in(text)
    except SqlError:
        return ()  # AUTO CDC refuses such a property


def _sql_name(name: str, key: str) -> str:
    """Return a name as the list of columns in the property ``key`` has it: in backticks for
    ``cdc.ORDER``; otherwise in backticks unless it is a plain word."""
    return quote(name) if key == cdc.ORDER else quoted_if_needed(name)


def quoted_if_needed(name: str) -> str:
    """Return a name in backticks, or as it is if it is a plain word."""
    return name if _PLAIN_NAME.fullmatch(name) else quote(name)


# ── references that keep a column from a new name ────────────────────────────────────────────


def reason_to_keep_name(table: Table, old: str, new: str) -> str | None:
    """Return why a column must keep its name, for a message: a constraint, a property that is an
    expression, or a list that cannot hold the new name. None: the table itself allows it. Views and
    other tables are not asked."""
    if constraints := constraints_that_mention(table, old):
        return (
            f"the constraint {constraints[0]} names it. ALTER TABLE … DROP CONSTRAINT "
            f"{quote(constraints[0])}, and add it again afterwards."
        )
    for key in _naming_properties(table, old):
        return (
            f"the property '{key}' names it. ALTER TABLE … UNSET TBLPROPERTIES ('{key}'), and set "
            "it again afterwards, with the new name."
        )
    for key in _PLAIN_LISTS:
        is_listable = "," not in new and new == new.strip()
        is_listed = key in renamed_properties(table, {old: new})
        if is_listed and not is_listable:
            return f"the property '{key}' is a list of columns, and cannot have the new name in it."
    return None


def _naming_properties(table: Table, column: str) -> Iterator[str]:
    """Yield the keys of the properties that keep a column's name: expressions of AUTO CDC that have
    the name as any part of a dotted name, and Hive's encryption and masking if one of their words,
    in any case, is the name. An expression that cannot be parsed names nothing. The properties of
    ``_PLAIN_LISTS`` and ``_SQL_LISTS`` are not looked at. ``column``: in lower case."""
    for key in _EXPRESSIONS:
        text = table.properties.get(key, "")
        try:
            chains = mentioned_columns(text, Span(0, len(text))) if text.strip() else ()
        except SqlError:
            continue  # AUTO CDC refuses such a property
        if any(column in chain for chain in chains):
            yield key
    for key in _PROTECTIONS:
        words = re.split(r"[:;,.\s]+", table.properties.get(key, "").lower())
        if column in words:
            yield key


def refuse_referenced_names(
    metastore: Metastore, table: Table, new_names: Sequence[NewName], text: str
) -> None:
    """Refuse to rename a column that a view, or a FOREIGN KEY of another table, names.

    Raises:
        UnsupportedError: A view reads the table and has the old name in its text, perhaps for a
            column of another table; or a FOREIGN KEY refers to the column. The error points to the
            first such column.
    """
    if not new_names:
        return
    for child, key in metastore.foreign_keys_to(table.name):
        for name in new_names:
            if name.old in key.parent_columns:
                drop = f"ALTER TABLE {child} DROP CONSTRAINT {quote(key.name)}"
                raise rename_error(
                    name, f"the FOREIGN KEY {key.name} of {child} refers to it. {drop}, and add "
                    "it again afterwards.", text,
                )  # fmt: skip
    for view in _views(metastore):
        for name in new_names:
            if _is_named_in(view, table.name, name.old):
                raise rename_error(
                    name, f"the view {view.name} names it, and the view keeps its text. DROP VIEW "
                    f"{view.name}, and CREATE VIEW afterwards, with the new name.", text,
                )  # fmt: skip


def _views(metastore: Metastore) -> Iterator[Table]:
    """Yield each view in the metastore, of all databases."""
    for database in metastore.databases():
        for name in metastore.views(database.name):
            view = view_of(metastore.find(TableName(database.name, name)))
            if view is not None:
                yield view


def _is_named_in(view: Table, table: TableName, column: str) -> bool:
    """Whether a view reads a table, and the view's text has the name of a column.

    This is true also if the name in the text belongs to another table: only an analysis of the
    query could tell. A name behind AS is a new name, and does not count. False for a view whose
    text cannot be read. ``column``: in lower case.
    """
    query = ViewQuery(view)
    try:
        text = query.text
        query_references = references(text, double_quoted_identifiers=query.double_quoted)
        change_calls = [
            parse_table_changes(text, place).parts for place in query_references.changes
        ]
        tokens = tokenize(text, double_quoted_identifiers=query.double_quoted)
    except AcidSqlError:
        return False  # nobody can read such a view, which another program has made
    spans = [reference.span for reference in query_references.references]
    tables = [*(reference.parts for reference in query_references.references), *change_calls]
    table_parts = (table.database, table.name)
    if not any(tuple(part.lower() for part in parts[-2:]) == table_parts for parts in tables):
        return False
    return any(
        token.is_name
        and token.value.lower() == column
        and not any(place.start <= token.start < place.end for place in spans)
        and not _is_new_name(before)
        for before, token in zip([None, *tokens], tokens, strict=False)
    )


def _is_new_name(before: Token | None) -> bool:
    """Whether a name is a new one, because the token ``before`` it is AS."""
    return before is not None and before.upper == "AS"


def refuse_version_columns(state: Table | None, new_names: Sequence[NewName], text: str) -> None:
    """Raise UnsupportedError if a column is renamed that AUTO CDC itself sets (``__START_AT`` or
    ``__END_AT``) in a target of SCD type 2.

    ``state``: the table's state table; None: the table has none, and nothing is refused.
    """
    if state is None or state.properties.get(cdc.SCD_TYPE) != "2":
        return
    for name in new_names:
        if name.old in cdc.VERSION:
            raise rename_error(name, "AUTO CDC itself sets the column of this name.", text)


def rename_error(name: NewName, reason: str, text: str) -> UnsupportedError:
    """Return the error that a column cannot be renamed, with the reason; it points to the column in
    the statement."""
    return UnsupportedError(
        f"Column '{name.old}' cannot be renamed: {reason}",
        text, name.place.start, name.place.end, condition="NOT_SUPPORTED_CHANGE_COLUMN",
    )  # fmt: skip


# ── properties that name missing columns ─────────────────────────────────────────────────────


def check_lists(properties: Mapping[str, str], columns: Sequence[str]) -> None:
    """Check the lists of key columns in the properties ``acidsql.key`` and ``acidsql.cdc.keys``:
    each name is that of a column of the table, and is there once. A missing property is no error.

    Args:
        properties: The properties to check.
        columns: The names of all columns of the table.

    Raises:
        SettingError: A name is no column's or is there twice, or AUTO CDC's keys are no list in
            SQL. The error names the property.
    """
    for key in (CHANGE_KEY, cdc.KEYS):
        text = properties.get(key)
        if text is None:
            continue
        names = _listed_names(key, text)
        for name in names:
            if name not in columns:
                column_list = ", ".join(columns)
                raise _property_error(
                    key, f"'{name}' is none of the table's columns ({column_list})"
                )
            if names.count(name) > 1:
                raise _property_error(key, f"'{name}' is there twice")


def _listed_names(key: str, text: str) -> list[str]:
    """Return the names in ``acidsql.key``, separated by commas and lower-cased, or in AUTO CDC's
    keys, which are SQL. Raise SettingError if the latter are no list."""
    if key == CHANGE_KEY:
        return [name.strip().lower() for name in text.split(",") if name.strip()]
    try:
        return [*names_in(text)]
    except SqlError:
        raise _property_error(key, f"'{text}' is no list of columns") from None


def _property_error(key: str, problem: str) -> SettingError:
    return SettingError(
        f"{key}: {problem}.", condition="INVALID_PROPERTY_VALUE", sqlstate="22023", key=key
    )
