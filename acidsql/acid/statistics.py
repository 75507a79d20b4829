"""The statistics that ANALYZE counts in one snapshot of a table, as entries in a metastore.

The size of the files, the number of rows, and the facts about each column are entries of their own.
So sessions that count different things do not lose each other's entries. Each entry has the version
of the table in which it was counted, and stays when rows change.

The key of a column's entry has the column's ordinal, because a column never moves. The entry also
has the column's name and type, and is valid only as long as the column has both. RENAME COLUMN
changes the name in the entry, too.
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
class AnalyzedStatistics:
    """The statistics that one ANALYZE has counted.

    Attributes:
        version: The highest write id that the snapshot saw.
        at: The time in UTC, as a text for users.
        bytes: The size of all files that a reader needs.
        files: The number of these files.
        rows: The number of live rows; None: not counted (NOSCAN).
        columns: The texts of ``COLUMN_FACTS`` for each column that was analyzed.
    """

    version: int
    at: str
    bytes: int
    files: int
    rows: int | None = None
    columns: Mapping[Column, Sequence[str | None]] = field(default_factory=dict)

    def entries(self, table: Table) -> dict[str, str]:
        """Return the entries for the metastore, key → JSON object: ``size`` with bytes and files,
        ``rows`` if they were counted, and ``column.0`` or ``partition_column.0`` for each analyzed
        column, with its name, its type and ``COLUMN_FACTS``. Each has the version and the time,
        too. ``table`` has the columns, whose ordinals are in the keys."""
        facts_by_key: dict[str, dict[str, Any]] = {
            _SIZE: {"bytes": self.bytes, "files": self.files}
        }
        if self.rows is not None:
            facts_by_key[_ROWS] = {"rows": self.rows}
        for column, facts in self.columns.items():
            fact_texts = dict(zip(COLUMN_FACTS, facts, strict=True))
            facts_by_key[_key(table, column)] = {
                "name": column.name,
                "type": column.type,
                **fact_texts,
            }
        origin = {"version": self.version, "at": self.at}
        return {
            key: json.dumps({**origin, **entry}, ensure_ascii=False)
            for key, entry in facts_by_key.items()
        }


def table_facts(entries: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the rows (name, text) of DESCRIBE EXTENDED about a whole table: ``Statistics`` with a
    text such as "120 bytes, 3 rows", and ``Statistics Of`` with "version 5, counted at …, 1 file".
    The rows are left out unless they are of the same version as the bytes. An empty list if ANALYZE
    has not counted the table."""
    size, rows = _entry(entries, _SIZE), _entry(entries, _ROWS)
    if not size:
        return []
    text = f"{size.get('bytes')} bytes"
    if rows and rows.get("version") == size.get("version"):
        text += f", {rows.get('rows')} rows"
    files = size.get("files")
    return [
        ("Statistics", text),
        ("Statistics Of", f"{_origin_text(size)}, {files} file{'s' * (files != 1)}"),
    ]


def column_facts(
    table: Table, column: Column, entries: Mapping[str, str]
) -> list[tuple[str, str | None]]:
    """Return the rows (name, text) of DESCRIBE EXTENDED about one column: one for each of
    ``COLUMN_FACTS``, in this order, then ``statistics_of``, with "version 5, counted at …". A text
    is None if the fact is not known, or if the column had another name or type when it was counted.
    """
    entry = _entry(entries, _key(table, column))
    if (entry.get("name"), entry.get("type")) != (column.name, column.type):
        entry = {}
    facts = [(name, entry.get(name)) for name in COLUMN_FACTS]
    return [*facts, ("statistics_of", _origin_text(entry) if entry else None)]


def entries_with_new_names(
    table: Table, new_names: Mapping[str, str], entries: Mapping[str, str]
) -> dict[str, str]:
    """Return the entries that change when columns are renamed, each under its old key, with the new
    name in its JSON. Entries of other columns and of partition columns are not in the result, nor
    entries that were counted when the column had another name.

    Args:
        table: The table before the change.
        new_names: Old name → new name.
        entries: All entries of the table's statistics.
    """
    changed: dict[str, str] = {}
    for column in table.columns:
        entry = _entry(entries, key := _key(table, column))
        if column.name in new_names and entry.get("name") == column.name:
            renamed_entry = {**entry, "name": new_names[column.name]}
            changed[key] = json.dumps(renamed_entry, ensure_ascii=False)
    return changed


def _key(table: Table, column: Column) -> str:
    """Return the key of a column's entry: ``column.0``, or ``partition_column.0``."""
    if column in table.partition_columns:
        return f"partition_column.{table.partition_columns.index(column)}"
    return f"column.{table.columns.index(column)}"


def _origin_text(entry: Mapping[str, Any]) -> str:
    """Return a text for users about an entry: "version 5, counted at …"."""
    return f"version {entry.get('version')}, counted at {entry.get('at')}"


def _entry(entries: Mapping[str, str], key: str) -> dict[str, Any]:
    """Parse the entry of a key; empty if there is none, or if it is no JSON object."""
    try:
        entry = json.loads(entries.get(key, "{}"))
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
