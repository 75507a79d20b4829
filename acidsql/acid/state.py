"""Which directories of a table or partition a snapshot reads: Hive's ``AcidUtils.getAcidState``.

The algorithm in one paragraph: take the highest usable base; from the deltas whose write ids are
at least partly valid, sorted so that the widest comes first, take each one that reaches beyond
what is covered already, further statements of the same write id, and the twin (delta and
delete_delta) of a range just taken. A wider delta hides the narrower ones inside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from acidsql.acid.layout import (
    ORIGINALS_BASE,
    AcidDirectory,
    Kind,
    parse_directory,
)
from acidsql.acid.write_ids import Range, ValidTxnList, ValidWriteIdList
from acidsql.errors import FormatError


@dataclass(frozen=True, slots=True)
class Child:
    """A visible child of a table's or partition's directory.

    Attributes:
        name: Its name.
        is_directory: False for a plain file, which is then an original.
        is_compacted: A base whose ``_metadata_acid`` says ``compacted`` (Hive 3.1's marker).
    """

    name: str
    is_directory: bool = True
    is_compacted: bool = False


@dataclass(frozen=True, slots=True)
class AcidState:
    """What a snapshot sees of one directory.

    Attributes:
        base: The base to read, or None.
        deltas: Deltas and delete deltas to read, in Hive's order.
        originals: Names of original files and directories to read (only without a base).
        obsolete: Names that no reader of this or a later snapshot needs.
        aborted: Names of directories whose every write id was aborted.
        newer: Names of what compactions have made that holds more than the snapshot sees, or that
            came after it.
    """

    base: AcidDirectory | None = None
    deltas: tuple[AcidDirectory, ...] = ()
    originals: tuple[str, ...] = ()
    obsolete: tuple[str, ...] = ()
    aborted: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()


@dataclass(slots=True)
class _Sorted:
    """The children, told apart."""

    base: AcidDirectory | None = None
    unusable_bases: list[AcidDirectory] = field(default_factory=list)
    working: list[AcidDirectory] = field(default_factory=list)
    originals: list[str] = field(default_factory=list)
    obsolete: list[str] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)


def acid_state(
    children: Iterable[Child],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    *,
    history_is_kept: bool = False,
) -> AcidState:
    """Choose what a snapshot reads.

    Args:
        children: The visible children of the directory, in any order.
        write_ids: The table's valid write ids.
        txns: The valid transactions; they decide which ``_v`` directories exist for this reader.
        history_is_kept: If there are ``newer`` bases, the caller makes sure that nothing they have
            replaced is deleted yet.

    Raises:
        FormatError: NOT_ENOUGH_HISTORY: every base is newer than the snapshot (Hive 10327); the
            caller must read with a newer snapshot.
    """
    found = _sort(children, write_ids, txns)
    if found.base is None and found.unusable_bases and not history_is_kept:
        raise history_is_gone([base.name for base in found.unusable_bases], write_ids)
    taken, hidden = best_deltas(found.working, found.base, write_ids)
    originals = sorted(found.originals)
    return AcidState(
        base=found.base,
        deltas=tuple(taken),
        originals=() if found.base else tuple(originals),
        obsolete=(*found.obsolete, *hidden, *(originals if found.base else ())),
        aborted=tuple(found.aborted),
        newer=(*(base.name for base in found.unusable_bases), *found.unseen),
    )


def history_is_gone(newer: Sequence[str], write_ids: ValidWriteIdList) -> FormatError:
    """What a reader is told whose snapshot's files may have been deleted."""
    return FormatError(
        f"The files of this snapshot are gone: {min(newer)} has replaced them, and the snapshot's "
        f"highest write id is {write_ids.high_water_mark}. Read again with a newer snapshot.",
        condition="ACID_NOT_ENOUGH_HISTORY",
        snapshot=write_ids,
    )


def best_deltas(
    deltas: Sequence[AcidDirectory], base: AcidDirectory | None, write_ids: ValidWriteIdList
) -> tuple[list[AcidDirectory], list[str]]:
    """The deltas to read, in order, and the names of those that others hide."""
    current = base.min_write_id if base else 0
    last_statement = -1
    previous: AcidDirectory | None = None
    taken: list[AcidDirectory] = []
    hidden: list[str] = []
    for delta in sorted(deltas, key=_hives_order):
        if delta.max_write_id > current:
            if write_ids.is_range_valid(current + 1, delta.max_write_id) is Range.NONE:
                continue
            current, last_statement = delta.max_write_id, _statement(delta)
        elif not (
            (delta.max_write_id == current and last_statement >= 0)
            or (previous is not None and _range(delta) == _range(previous))
        ):
            hidden.append(delta.name)
            continue
        taken.append(delta)
        previous = delta
    return taken, hidden


def _sort(children: Iterable[Child], write_ids: ValidWriteIdList, txns: ValidTxnList) -> _Sorted:
    found = _Sorted()
    for child in sorted(children, key=lambda child: child.name):
        directory = parse_directory(child.name) if child.is_directory else None
        if directory is None:
            found.originals.append(child.name)
        elif txns.is_aborted(directory.visibility_txn_id):
            found.aborted.append(child.name)
        elif not txns.is_valid(directory.visibility_txn_id):
            found.unseen.append(child.name)
        elif directory.kind is Kind.BASE:
            _sort_base(found, directory, child.is_compacted, write_ids)
        elif write_ids.is_range_aborted(directory.min_write_id, directory.max_write_id):
            found.aborted.append(child.name)
        elif (
            write_ids.is_range_valid(directory.min_write_id, directory.max_write_id)
            is not Range.NONE
        ):
            found.working.append(directory)
    return found


def _sort_base(
    found: _Sorted, base: AcidDirectory, is_compacted: bool, write_ids: ValidWriteIdList
) -> None:
    compacted = is_compacted or base.visibility_txn_id > 0
    if not compacted and write_ids.is_aborted(base.min_write_id):
        found.aborted.append(base.name)
        return
    if base.min_write_id == ORIGINALS_BASE:
        usable = True
    elif compacted:
        usable = write_ids.is_base_valid(base.min_write_id)
    else:
        usable = write_ids.is_valid(base.min_write_id)
    if not usable:
        # Only a compacted base stands for history that is gone; an overwrite of the future
        # has left what it replaced where it was.
        if compacted:
            found.unusable_bases.append(base)
        return
    best = found.base
    if best is None or _base_rank(base) > _base_rank(best):
        found.base = base
        if best:
            found.obsolete.append(best.name)
    else:
        found.obsolete.append(base.name)


def _base_rank(base: AcidDirectory) -> tuple[int, int]:
    return base.min_write_id, base.visibility_txn_id


def _hives_order(delta: AcidDirectory) -> tuple[int, int, int, str]:
    return delta.min_write_id, -delta.max_write_id, _statement(delta), delta.name


def _range(delta: AcidDirectory) -> tuple[int, int, int]:
    return delta.min_write_id, delta.max_write_id, _statement(delta)


def _statement(delta: AcidDirectory) -> int:
    return -1 if delta.statement_id is None else delta.statement_id
