"""The columns of changes, beside those of their table; and the keys that make pairs of changes."""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.acid.properties import CHANGE_KEY
from acidsql.acid.table import Table
from acidsql.acid.virtual_columns import ROW__ID
from acidsql.errors import CatalogError, SettingError, UnsupportedError

CHANGE_TYPE, COMMIT_VERSION = "_change_type", "_commit_version"
COMMIT_TIMESTAMP, TXN_ID = "_commit_timestamp", "_txn_id"
ADDED = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP, TXN_ID, ROW__ID)
INSERT, DELETE = "insert", "delete"
PREIMAGE, POSTIMAGE = "update_preimage", "update_postimage"


def need_names(table: Table) -> None:
    """Raise UnsupportedError if a column of a table has the name of a column of its changes."""
    taken = [one.name for one in table.all_columns if one.name.lower() in ADDED]
    if taken:
        raise UnsupportedError(
            f"{table.name} has a column '{taken[0]}', as its changes have a column of their own.",
            condition="UNSUPPORTED_FEATURE.CHANGES",
        )


def change_keys(table: Table, given: Sequence[str] | None) -> list[str]:
    """The table's own names of the key columns."""
    if isinstance(given, str):
        raise SettingError(f"keys={given!r} is no list of columns.", name="keys")
    wanted = given
    if wanted is None:
        said = table.properties.get(CHANGE_KEY, "")
        wanted = [one.strip() for one in said.split(",") if one.strip()]
    own = {one.name.lower(): one.name for one in table.all_columns}
    for name in wanted:
        if name.lower() not in own:
            raise CatalogError(
                f"{table.name} has no column '{name}', which is to be a key of its changes.",
                condition="UNRESOLVED_COLUMN", sqlstate="42703", table=table.name,
            )  # fmt: skip
    return [own[name.lower()] for name in wanted]


def same_key(table: Table, keys: Sequence[str]) -> str:
    """What an error says if a key does not tell rows apart."""
    return (
        f"In the changes of {table.name}, two rows of one version have the same key "
        f"({', '.join(keys)}). Name columns that are a key."
    )
