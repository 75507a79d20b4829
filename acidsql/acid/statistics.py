"""What ANALYZE has counted in one snapshot of a table, and the texts of it that a metastore keeps.

Each fact is an entry of its own, with the version of the table that it is of: the size of the
files, the number of rows, and one entry for each column. So sessions that count different things do
not lose each other's entries. An entry stays when rows change, and says what it is of.

A column's entry has the column's place in its key, because a column never moves. It is that
column's as long as it has its name and type. RENAME COLUMN changes the name here, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acidsql.acid.table import Column, Table

# Spark's words for the facts about a column (DESCRIBE EXTENDED t c).
COLUMN_FACTS = ("min", "max", "num_nulls", "distinct_count", "avg_col_len", "max_col_len")
_SIZE, _ROWS = "size", "rows"


@dataclass(frozen=True, slots=True)
class Counted:
    """What one ANALYZE has counted.

    Attributes:
        version: The highest write id that its snapshot saw.
        at: When, in UTC, for a person to read.
        bytes: The size of all files that a reader needs.
        files: Their number.
        rows: The number of live rows; None: not counted (NOSCAN).
        columns: For each column that it looked at, the texts of ``COLUMN_FACTS``.
    """

    version: int
    at: str
    bytes: int
    files: int
    rows: int | None = None
    columns: Mapping[Column, Sequence[str | None]] = field(default_factory=dict)

    def entries(self, table: Table) -> dict[str, str]:
        """The entries for the metastore."""
        found: dict[str, dict[str, Any]] = {_SIZE: {"bytes": self.bytes, "files": self.files}}
        if self.rows is not None:
            found[_ROWS] = {"rows": self.rows}
        for column, facts in self.columns.items():
            said = dict(zip(COLUMN_FACTS, facts, strict=True))
            found[_key(table, column)] = {"name": column.name, "type": column.type, **said}
        of = {"version": self.version, "at": self.at}
        return {key: json.dumps({**of, **one}, ensure_ascii=False) for key, one in found.items()}


def table_facts(entries: Mapping[str, str]) -> list[tuple[str, str]]:
    """The rows of DESCRIBE EXTENDED about a whole table, in Spark's words; none: not counted.

    The number of rows is shown only beside the size of the same version.
    """
    size, rows = _entry(entries, _SIZE), _entry(entries, _ROWS)
    if not size:
        return []
    text = f"{size.get('bytes')} bytes"
    if rows and rows.get("version") == size.get("version"):
        text += f", {rows.get('rows')} rows"
    files = size.get("files")
    return [
        ("Statistics", text),
        ("Statistics Of", f"{_of(size)}, {files} file{'s' * (files != 1)}"),
    ]


def column_facts(
    table: Table, column: Column, entries: Mapping[str, str]
) -> list[tuple[str, str | None]]:
    """The rows of DESCRIBE EXTENDED about one column; None: not known."""
    found = _entry(entries, _key(table, column))
    if (found.get("name"), found.get("type")) != (column.name, column.type):
        found = {}
    facts = [(name, found.get(name)) for name in COLUMN_FACTS]
    return [*facts, ("statistics_of", _of(found) if found else None)]


def renamed(table: Table, names: Mapping[str, str], entries: Mapping[str, str]) -> dict[str, str]:
    """The entries that change if columns get new names (old name → new name)."""
    changed: dict[str, str] = {}
    for column in table.columns:
        entry = _entry(entries, key := _key(table, column))
        if column.name in names and entry.get("name") == column.name:
            now = {**entry, "name": names[column.name]}
            changed[key] = json.dumps(now, ensure_ascii=False)
    return changed


def _key(table: Table, column: Column) -> str:
    if column in table.partition_columns:
        return f"partition_column.{table.partition_columns.index(column)}"
    return f"column.{table.columns.index(column)}"


def _of(entry: Mapping[str, Any]) -> str:
    return f"version {entry.get('version')}, counted at {entry.get('at')}"


def _entry(entries: Mapping[str, str], key: str) -> dict[str, Any]:
    """An entry; empty if there is none, or if others have written something else there."""
    try:
        found = json.loads(entries.get(key, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
