"""The columns of changes, beside those of their table; and the keys that make pairs of changes."""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.acid.properties import CHANGE_KEY
from acidsql.acid.table import Table
from acidsql.acid.virtual_columns import ROW__ID
from acidsql.errors import CatalogError, SettingError, UnsupportedError
from acidsql.suggestions import names_sentence

CHANGE_TYPE, COMMIT_VERSION = "_change_type", "_commit_version"
COMMIT_TIMESTAMP, TXN_ID = "_commit_timestamp", "_txn_id"
ADDED = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP, TXN_ID, ROW__ID)
INSERT, DELETE = "insert", "delete"
PREIMAGE, POSTIMAGE = "update_preimage", "update_postimage"


def refuse_reserved_names(table: Table) -> None:
    """Raise UnsupportedError if a column of a table has the name of a column of its changes (case
    does not count).
    """
    colliding = [column.name for column in table.all_columns if column.name.lower() in ADDED]
    if colliding:
        raise UnsupportedError(
            f"{table.name} has a column '{colliding[0]}', as its changes have a column of their "
            "own.",
            condition="UNSUPPORTED_FEATURE.CHANGES",
        )


def change_keys(table: Table, keys: Sequence[str] | None) -> list[str]:
    """Return the table's own names of the key columns: ``keys``; if None, those that the table's
    property lists, separated by commas. Empty if neither names any.

    Raises:
        SettingError: ``keys`` is a text, not a list.
        CatalogError: The table has no such column.
    """
    if isinstance(keys, str):
        raise SettingError(f"keys={keys!r} is no list of columns.", name="keys")
    key_names = keys
    if key_names is None:
        property_text = table.properties.get(CHANGE_KEY, "")
        key_names = [
            name_text.strip() for name_text in property_text.split(",") if name_text.strip()
        ]
    names_by_lower_name = {column.name.lower(): column.name for column in table.all_columns}
    for name in key_names:
        if name.lower() not in names_by_lower_name:
            raise CatalogError(
                f"{table.name} has no column '{name}', which is to be a key of its changes. "
                f"{names_sentence(name, list(names_by_lower_name.values()))}",
                condition="UNRESOLVED_COLUMN", sqlstate="42703", table=table.name,
            )  # fmt: skip
    return [names_by_lower_name[name.lower()] for name in key_names]


def same_key_message(table: Table, keys: Sequence[str]) -> str:
    """Return the text of the error for two rows of one version that have the same key."""
    return (
        f"In the changes of {table.name}, two rows of one version have the same key "
        f"({', '.join(keys)}). Name columns that are a key."
    )
