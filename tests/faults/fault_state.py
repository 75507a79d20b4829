"""The state of a warehouse as any session sees it, found without Spark and without acidsql's
reader."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import orc

from acidsql.acid import bucket_codec
from acidsql.acid.layout import (
    ACID_VERSION_FILE,
    METADATA_FILE,
    PAIRED_FILE,
    AcidDirectory,
    DirectoryKind,
    is_hidden,
    is_original,
    parse_directory,
)
from acidsql.acid.state import Child, acid_state
from acidsql.acid.table import Partition, Table, TableName
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.metastore.foreign import acid_table, view_of
from acidsql.metastore.interface import Metastore
from acidsql.txn import Snapshot

State = dict[str, Any]
Key = tuple[int, int, int]
_ABSENT = object()


def state_of(store: Metastore, only: frozenset[str] | None = None) -> State:
    """The databases, views and tables, with the columns, properties, partitions and rows of each
    table.

    Args:
        store: The metastore.
        only: The tables to include; None: all.
    """
    txns = store.valid_txns()
    return {
        database.name: {
            name: _table(store, TableName(database.name, name), txns)
            if only is None or name in only
            else "not looked into"
            for name in store.tables(database.name)
        }
        | {
            name: _view(store, TableName(database.name, name))
            for name in store.views(database.name)
        }
        for database in store.databases()
    }


def touched(*states: State) -> frozenset[str]:
    """The tables that differ between these states."""
    found = set()
    for database in {name for state in states for name in state}:
        seen = [state.get(database, {}) for state in states]
        for table in {name for tables in seen for name in tables}:
            if any(tables.get(table) != seen[0].get(table) for tables in seen):
                found.add(table)
    return frozenset(found)


def narrowed(state: State, only: frozenset[str] | None) -> State:
    """The state that ``state_of`` would have given with ``only``."""
    return {
        database: {
            name: found if only is None or name in only else "not looked into"
            for name, found in tables.items()
        }
        for database, tables in state.items()
    }


def differences(found: Any, expected: Any, name: str = "") -> dict[str, tuple[Any, Any]]:
    """What differs between two states: its name, what was found, and what was expected."""
    if not (isinstance(found, dict) and isinstance(expected, dict)):
        return {} if found == expected else {name: (found, expected)}
    return {
        path: pair
        for key in {**found, **expected}
        for path, pair in differences(
            found.get(key, _ABSENT), expected.get(key, _ABSENT), f"{name}.{key}".lstrip(".")
        ).items()
    }


def rows_of(state: State, name: str, database: str = "default") -> list[tuple[Any, ...]]:
    """All rows of one table in a state, without partition columns."""
    partitions = state[database][name]["partitions"].values()
    return sorted((row for rows in partitions for row in rows), key=repr)


def leftovers(root: str | Path) -> list[str]:
    """Hidden directories and files that are left below a table's directory. No reader reads
    them."""
    top = Path(root)
    return [
        str(path.relative_to(top))
        for path in sorted(top.rglob("_*"))
        if path.name not in (ACID_VERSION_FILE, METADATA_FILE, PAIRED_FILE)
        and ".acidsql" not in path.parts
    ]


def rows_by_partition(
    store: Metastore, table: Table, snapshot: Snapshot, added: Iterable[Partition] = ()
) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each partition; the rows of an unpartitioned table are under ``""``.

    Args:
        store: The metastore.
        table: The table.
        snapshot: A new one, for the committed rows; or that of an open transaction.
        added: Partitions that only the snapshot's own transaction knows.
    """
    places = {"": Path(table.location)}
    if table.partition_columns:
        places = {
            partition.location.removeprefix(f"{table.location}/"): Path(partition.location)
            for partition in (*store.partitions(table.name), *added)
        }
    width, write_ids = len(table.columns), snapshot.write_ids[table.name]
    for directory in (path for place in places.values() for path in place.glob("*")):
        parsed = parse_directory(directory.name)
        # What an object store does late leaves files of aborted transactions, which nobody reads.
        if parsed is not None and not write_ids.is_aborted(parsed.max_write_id):
            is_marked = (directory / ACID_VERSION_FILE).exists()
            has_events = any(directory.glob("bucket_*"))
            assert is_marked or not has_events, f"{directory} has no marker"
            assert not (table.is_insert_only and is_marked), f"{directory} has a marker"
    return {
        name: _rows(place, write_ids, snapshot.valid_txns, width) for name, place in places.items()
    }


def _view(store: Metastore, name: TableName) -> State | None:
    found = view_of(store.find(name))
    return None if found is None else {"query": found.view}


def _table(store: Metastore, name: TableName, txns: ValidTxnList) -> State | None:
    table = acid_table(store.find(name))
    if table is None:
        return None
    snapshot = Snapshot(txns, store.valid_write_ids(txns, [name]))
    return {
        "columns": [(column.name, column.type) for column in table.all_columns],
        "properties": dict(table.properties),
        "statistics": sorted(store.statistics(name)),
        "constraints": table.constraints,
        "partitions": rows_by_partition(store, table, snapshot),
    }


def _rows(
    place: Path, write_ids: ValidWriteIdList, txns: ValidTxnList, width: int
) -> list[tuple[Any, ...]]:
    names = {path.name for path in place.iterdir()} if place.exists() else set()
    there = [name for name in names if not is_hidden(name) and not _is_half(place, name, names)]
    children = (Child(name, True, (place / name / METADATA_FILE).exists()) for name in there)
    state = acid_state(children, write_ids, txns)
    chosen = [*([state.base] if state.base else []), *state.deltas]
    deleted: set[Key] = set()
    for directory in chosen:
        if directory.kind is DirectoryKind.DELETE_DELTA:
            for key, operation, _ in _events(place, directory, write_ids):
                assert operation == 2
                assert key not in deleted, f"{key} is deleted twice"
                deleted.add(key)
    live: dict[Key, tuple[Any, ...]] = {}
    if state.originals:
        assert all(map(is_original, state.originals)), f"{state.originals} have no bucket ids"
        live.update((key, row) for key, _, row in _plain(place, 0))
    for directory in chosen:
        if directory.kind is not DirectoryKind.DELETE_DELTA:
            for key, operation, row in _events(place, directory, write_ids):
                assert operation == 0
                assert key not in live, f"the row id {key} is there twice"
                live[key] = row
    rows = (row for key, row in live.items() if key not in deleted)
    return sorted(((*row, *[None] * (width - len(row))) for row in rows), key=repr)


def _is_half(place: Path, name: str, names: set[str]) -> bool:
    """Whether this is one of the two directories of a minor compaction, without the other."""
    twin = name.removeprefix("delete_") if name.startswith("delete_") else f"delete_{name}"
    return (place / name / PAIRED_FILE).exists() and twin not in names


def _events(
    place: Path, directory: AcidDirectory, write_ids: ValidWriteIdList
) -> list[tuple[Key, int, Any]]:
    path = place / directory.name
    return [
        (key, operation, row)
        for file in sorted(path.glob("bucket_*"))
        for write_id, key, operation, row in _parsed(file.read_bytes())
        if write_ids.is_valid(write_id)
    ] + _plain(path, directory.min_write_id, directory.statement_id or 0)


def _plain(path: Path, write_id: int, statement_id: int = 0) -> list[tuple[Key, int, Any]]:
    """The rows of a file without event columns, as insert events."""
    found = []
    for file in sorted(path.iterdir()):
        if is_original(file.name):
            bucket = bucket_codec.encode(int(file.name.partition("_")[0]), statement_id)
            found += [
                ((write_id, bucket, number), 0, row)
                for number, row in enumerate(_plain_rows(file.read_bytes()))
            ]
    return found


@functools.lru_cache(maxsize=10_000)
def _plain_rows(content: bytes) -> list[tuple[Any, ...]]:
    rows = orc.ORCFile(pa.BufferReader(content)).read().to_pylist()
    return [tuple(row.values()) for row in rows]


@functools.lru_cache(maxsize=10_000)
def _parsed(content: bytes) -> list[tuple[int, Key, int, Any]]:
    """The events of a file: write id, row id, operation, row. The same bytes are parsed once
    only."""
    return [
        (
            event["currentTransaction"],
            (event["originalTransaction"], event["bucket"], event["rowId"]),
            event["operation"],
            tuple(event["row"].values()) if event["row"] is not None else None,
        )
        for event in orc.ORCFile(pa.BufferReader(content)).read().to_pylist()
    ]
