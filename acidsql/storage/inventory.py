"""Each file of a table and what becomes of it in a snapshot: ``Session.files``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acidsql.acid.layout import AcidDirectory, is_hidden, parse_directory
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.storage.filesystem import FileSystem
from acidsql.storage.listing import list_directory

Row = tuple[str, str, str, int | None, int | None, int | None, str, int, str]


def inventory(
    fs: FileSystem,
    location: str,
    partitions: Sequence[str],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
) -> list[Row]:
    """One row for each file of events or of originals, by path.

    Returns:
        partition, directory, kind (base, delta, delete_delta, original), lowest and highest write
        id, statement id, file, bytes, state (visible, obsolete, aborted; ``open`` for a directory
        whose transaction is not decided).
    """
    rows: list[Row] = []
    for partition in partitions:
        path = f"{location}/{partition}" if partition else location
        rows += _directory(fs, path, partition, write_ids, txns)
    return rows


def _directory(
    fs: FileSystem, path: str, partition: str, write_ids: ValidWriteIdList, txns: ValidTxnList
) -> Iterator[Row]:
    state = list_directory(fs, path, partition, write_ids, txns).state
    states = dict.fromkeys(state.obsolete, "obsolete")
    states |= dict.fromkeys(state.aborted, "aborted")
    taken = [*([state.base] if state.base else []), *state.deltas]
    states |= dict.fromkeys([directory.name for directory in taken], "visible")
    states |= dict.fromkeys(state.originals, "visible")
    for entry in fs.list(path):
        if is_hidden(entry.name):
            continue
        what = states.get(entry.name, "open")
        directory = parse_directory(entry.name) if entry.is_dir else None
        if not entry.is_dir:
            yield (partition, "", "original", 0, 0, None, entry.name, entry.size, what)
        elif directory is not None or entry.name in states:
            for file in fs.list(entry.path):
                if not is_hidden(file.name) and not file.is_dir:
                    yield _row(partition, entry.name, directory, file.name, file.size, what)


def _row(
    partition: str,
    name: str,
    directory: AcidDirectory | None,
    file: str,
    size: int,
    state: str,
) -> Row:
    if directory is None:
        return (partition, name, "original", 0, 0, None, file, size, state)
    return (
        partition,
        name,
        directory.kind.value,
        directory.min_write_id,
        directory.max_write_id,
        directory.statement_id,
        file,
        size,
        state,
    )
