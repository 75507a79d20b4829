"""What is kept beside a table's schema and names its columns: all of it is listed here.

RENAME COLUMN, CHANGE and REPLACE COLUMNS ask here what must get a column's new name, and what keeps
a column from getting one. (A column cannot be dropped, nor can a field of a struct be renamed.)

================================================  ==============================================
CLUSTERED BY, SORTED BY                           get the new name
properties that are lists of columns              get the new name
what ANALYZE has counted                          gets the new name
the state table of AUTO CDC, with its properties  gets the new name
NOT NULL, DEFAULT                                 belong to their column; no DEFAULT names another
constraints, also FOREIGN KEYs of other tables    the column keeps its name
properties that are expressions                   the column keeps its name
views that read the table                         the column keeps its name
================================================  ==============================================

A new property that names columns belongs into ``_LISTS`` or ``_EXPRESSIONS``.
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
from acidsql.plan.cdc_rules import names_in
from acidsql.plan.checks import naming
from acidsql.plan.view_text import ViewQuery
from acidsql.sql.conditions import mentioned_columns
from acidsql.sql.references import references
from acidsql.sql.table_changes import parse_table_changes
from acidsql.sql.tokens import Span, Token, tokenize
from acidsql.storage.columns import quote
from acidsql.storage.orc.options import BLOOM_FILTER_COLUMNS, DIRECT_ENCODING_COLUMNS

# Lists of columns: names with commas between them, a field as ``s.f``; and as SQL has them.
_PLAIN_LISTS = (CHANGE_KEY, BLOOM_FILTER_COLUMNS, *DIRECT_ENCODING_COLUMNS)
_SQL_LISTS = (cdc.KEYS, cdc.ORDER)
_EXPRESSIONS = (cdc.SEQUENCE_BY, cdc.DELETE_WHEN, cdc.TRUNCATE_WHEN)
# Hive's: if a name in them were not a column's, a column would be written without protection.
_PROTECTIONS = ("orc.encrypt", "orc.mask")
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class NewName:
    """A column's old and new name, and the column's place in the statement."""

    old: str
    new: str
    place: Span


# ── what gets the new name ───────────────────────────────────────────────────────────────────


def renamed_sorting(table: Table, names: Mapping[str, str]) -> tuple[SortColumn, ...]:
    """SORTED BY with new names (old name → new name)."""
    return tuple(SortColumn(names.get(s.name, s.name), s.descending) for s in table.sort_columns)


def renamed_properties(table: Table, names: Mapping[str, str]) -> dict[str, str]:
    """The properties that change if columns get new names (old name → new name)."""
    changed: dict[str, str] = {}
    for key in (*_PLAIN_LISTS, *_SQL_LISTS):
        text = table.properties.get(key)
        if text is not None and (now := _renamed_list(key, text, table, names)) != text:
            changed[key] = now
    return changed


def _renamed_list(key: str, text: str, table: Table, names: Mapping[str, str]) -> str:
    if key in _SQL_LISTS:
        columns = _sql_names(text)
        if not any(column in names for column in columns):
            return text
        return ", ".join(_in_sql(names.get(column, column), key) for column in columns)
    paths = text.split(",")
    now = [_renamed_path(path.strip(), table, names) for path in paths]
    is_same = now == [path.strip() for path in paths]
    separator = "," if key != CHANGE_KEY else ", "
    return text if is_same else separator.join(now)


def _renamed_path(path: str, table: Table, names: Mapping[str, str]) -> str:
    """A column or a field with the column's new name. A column may have a dot in its name."""
    columns = {column.name for column in table.all_columns}
    ends = [len(path), *(match.start() for match in re.finditer(r"\.", path))]
    end = next((end for end in ends if path[:end].lower() in columns), len(path))
    column = path[:end].lower()
    return f"{names[column]}{path[end:]}" if names.get(column, column) != column else path


def _sql_names(text: str) -> tuple[str, ...]:
    try:
        return names_in(text)
    except SqlError:
        return ()  # AUTO CDC refuses such a property


def _in_sql(name: str, key: str) -> str:
    return quote(name) if key == cdc.ORDER else quoted_if_needed(name)


def quoted_if_needed(name: str) -> str:
    """A name in backticks, unless it is a plain word."""
    return name if _PLAIN_NAME.fullmatch(name) else quote(name)


# ── what keeps a column from a new name ──────────────────────────────────────────────────────


def reason_to_keep_name(table: Table, old: str, new: str) -> str | None:
    """Why a column keeps its name for what the table itself has; None for no reason."""
    if constraints := naming(table, old):
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
    """The properties that name a column and are no lists."""
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


def refuse_outside(
    metastore: Metastore, table: Table, new_names: Sequence[NewName], text: str
) -> None:
    """Refuse new names of columns that views or FOREIGN KEYs of other tables name.

    Raises:
        UnsupportedError: There is such a view or key.
    """
    if not new_names:
        return
    for child, key in metastore.foreign_keys_to(table.name):
        for name in new_names:
            if name.old in key.parent_columns:
                drop = f"ALTER TABLE {child} DROP CONSTRAINT {quote(key.name)}"
                raise name_refused(
                    name, f"the FOREIGN KEY {key.name} of {child} refers to it. {drop}, and add it "
                    "again afterwards.", text,
                )  # fmt: skip
    for view in _views(metastore):
        for name in new_names:
            if _is_named_in(view, table.name, name.old):
                raise name_refused(
                    name, f"the view {view.name} names it, and the view keeps its text. DROP VIEW "
                    f"{view.name}, and CREATE VIEW afterwards, with the new name.", text,
                )  # fmt: skip


def _views(metastore: Metastore) -> Iterator[Table]:
    for database in metastore.databases():
        for name in metastore.views(database.name):
            view = view_of(metastore.find(TableName(database.name, name)))
            if view is not None:
                yield view


def _is_named_in(view: Table, table: TableName, column: str) -> bool:
    """Whether a view reads a table, and its text has a column's name.

    The column may be another table's: that takes an analysis of the query to tell. A name behind AS
    is a new one.
    """
    query = ViewQuery(view)
    try:
        text = query.text
        found = references(text, double_quoted_identifiers=query.double_quoted)
        changed = [parse_table_changes(text, place).parts for place in found.changes]
        tokens = tokenize(text, double_quoted_identifiers=query.double_quoted)
    except AcidSqlError:
        return False  # nobody can read such a view, which another program has made
    places = [one.span for one in found.references]
    tables = [*(one.parts for one in found.references), *changed]
    own = (table.database, table.name)
    if not any(tuple(part.lower() for part in parts[-2:]) == own for parts in tables):
        return False
    return any(
        token.is_name
        and token.value.lower() == column
        and not any(place.start <= token.start < place.end for place in places)
        and not _is_new_name(before)
        for before, token in zip([None, *tokens], tokens, strict=False)
    )


def _is_new_name(before: Token | None) -> bool:
    return before is not None and before.upper == "AS"


def refuse_versions(state: Table | None, new_names: Sequence[NewName], text: str) -> None:
    """Refuse new names of the columns that AUTO CDC itself sets, with SCD type 2.

    ``state``: the state table of the table; None: it has none.
    """
    if state is None or state.properties.get(cdc.SCD_TYPE) != "2":
        return
    for name in new_names:
        if name.old in cdc.VERSION:
            raise name_refused(name, "AUTO CDC itself sets the column of this name.", text)


def name_refused(name: NewName, reason: str, text: str) -> UnsupportedError:
    """The error for a column that keeps its name."""
    return UnsupportedError(
        f"Column '{name.old}' cannot be renamed: {reason}",
        text, name.place.start, name.place.end, condition="NOT_SUPPORTED_CHANGE_COLUMN",
    )  # fmt: skip


# ── properties that name columns which are not there ─────────────────────────────────────────


def check_lists(properties: Mapping[str, str], columns: Sequence[str]) -> None:
    """Refuse a key that names no column, or one twice.

    Args:
        properties: The table's properties.
        columns: The names of all columns of the table.

    Raises:
        SettingError: The error names the property.
    """
    for key in (CHANGE_KEY, cdc.KEYS):
        text = properties.get(key)
        if text is None:
            continue
        names = _listed(key, text)
        for name in names:
            if name not in columns:
                known = ", ".join(columns)
                raise _wrong(key, f"'{name}' is none of the table's columns ({known})")
            if names.count(name) > 1:
                raise _wrong(key, f"'{name}' is there twice")


def _listed(key: str, text: str) -> list[str]:
    if key == CHANGE_KEY:
        return [name.strip().lower() for name in text.split(",") if name.strip()]
    try:
        return [*names_in(text)]
    except SqlError:
        raise _wrong(key, f"'{text}' is no list of columns") from None


def _wrong(key: str, what: str) -> SettingError:
    return SettingError(
        f"{key}: {what}.", condition="INVALID_PROPERTY_VALUE", sqlstate="22023", key=key
    )
