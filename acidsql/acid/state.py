"""Which directories of a table or partition a snapshot reads: Hive's ``AcidUtils.getAcidState``.

The algorithm takes the highest usable base. Then it goes through the deltas with at least one
valid write id, in ascending order of the first write id, the wider range first. It takes a delta

* if the delta reaches beyond the write ids that are covered already,
* if the delta belongs to another statement of the write id that was taken last, or
* if the delta is the twin (delta or delete_delta) of the range that was taken last.

A wider delta hides the narrower deltas inside its range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from acidsql.acid.layout import (
    ORIGINALS_BASE,
    AcidDirectory,
    DirectoryKind,
    parse_directory,
)
from acidsql.acid.write_ids import Range, ValidTxnList, ValidWriteIdList
from acidsql.errors import FormatError


@dataclass(frozen=True, slots=True)
class Child:
    """A visible child of a table's or partition's directory.

    Attributes:
        name: The child's name.
        is_directory: False for a plain file. A plain file is an original.
        is_compacted: True for a base whose ``_metadata_acid`` says ``compacted`` (Hive 3.1's
            marker).
    """

    name: str
    is_directory: bool = True
    is_compacted: bool = False


@dataclass(frozen=True, slots=True)
class AcidState:
    """The files and directories that a snapshot sees in one directory.

    Attributes:
        base: The base to read, or None.
        deltas: Deltas and delete deltas to read, in Hive's order.
        originals: Names of original files and directories to read (only without a base).
        obsolete: Names that no reader of this or a later snapshot needs.
        aborted: Names of directories in which every write id, or the transaction of the ``_v``
            suffix, was aborted.
        newer: Names of compacted bases that hold more than the snapshot sees, and of directories
            whose ``_v`` transaction the snapshot does not see.
        folded: Names of compacted bases that were left out because of ``since``.
    """

    base: AcidDirectory | None = None
    deltas: tuple[AcidDirectory, ...] = ()
    originals: tuple[str, ...] = ()
    obsolete: tuple[str, ...] = ()
    aborted: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()

    @property
    def directories(self) -> list[AcidDirectory]:
        """The base, if there is one, and the deltas: what a reader reads, in its order."""
        return [*([self.base] if self.base else []), *self.deltas]


@dataclass(slots=True)
class _SortedChildren:
    """The children of a directory, by kind."""

    base: AcidDirectory | None = None
    unusable_bases: list[AcidDirectory] = field(default_factory=list)
    folded: list[AcidDirectory] = field(default_factory=list)
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
    since: ValidWriteIdList | None = None,
) -> AcidState:
    """Choose the files and directories that a snapshot reads.

    Args:
        children: The visible children of the directory, in any order. All whose names are not those
            of ACID directories are originals.
        write_ids: The table's valid write ids.
        txns: The valid transactions. They decide which ``_v`` directories exist for this reader.
        history_is_kept: True if the caller makes sure that the files which ``newer`` bases have
            replaced are not deleted yet.
        since: An older snapshot whose reader wants all later events. Compacted bases that hold some
            of these are left out (``folded``), as they lack delete events and deleted rows. The
            caller makes sure that the directories which such a base has replaced are not deleted
            yet.

    Raises:
        FormatError: ACID_NOT_ENOUGH_HISTORY (Hive 10327): the snapshot can use no base, and there
            is a compacted base that is newer than the snapshot, which has replaced the files that
            it needs. Read with a newer snapshot. Never with ``history_is_kept``.
    """
    directories = _sort_children(children, write_ids, txns, since)
    if directories.base is None and directories.unusable_bases and not history_is_kept:
        raise history_gone_error([base.name for base in directories.unusable_bases], write_ids)
    deltas, hidden_names = best_deltas(directories.working, directories.base, write_ids)
    originals = sorted(directories.originals)
    return AcidState(
        base=directories.base,
        deltas=tuple(deltas),
        originals=() if directories.base else tuple(originals),
        obsolete=(*directories.obsolete, *hidden_names, *(originals if directories.base else ())),
        aborted=tuple(directories.aborted),
        newer=(*(base.name for base in directories.unusable_bases), *directories.unseen),
        folded=tuple(base.name for base in directories.folded),
    )


def history_gone_error(newer: Sequence[str], write_ids: ValidWriteIdList) -> FormatError:
    """Make the error for a reader whose snapshot's files may have been deleted.

    Args:
        newer: The names of the compacted bases that have replaced the files, at least one. The
            message shows the first in alphabetical order.
        write_ids: The write ids that the snapshot sees.
    """
    return FormatError(
        f"The files of this snapshot are gone: {min(newer)} has replaced them, and the snapshot's "
        f"highest write id is {write_ids.high_water_mark}. Read again with a newer snapshot.",
        condition="ACID_NOT_ENOUGH_HISTORY",
        snapshot=write_ids,
    )


def best_deltas(
    deltas: Sequence[AcidDirectory], base: AcidDirectory | None, write_ids: ValidWriteIdList
) -> tuple[list[AcidDirectory], list[str]]:
    """Return the deltas to read, in Hive's order, and the names of the deltas that are not needed,
    because these or the base cover their write ids. A delta is in neither if it reaches above the
    write ids covered so far, but the snapshot sees none of the ids above."""
    current = base.min_write_id if base else 0
    last_statement = -1
    previous: AcidDirectory | None = None
    visible_deltas: list[AcidDirectory] = []
    hidden_names: list[str] = []
    for delta in sorted(deltas, key=_hives_order):
        if delta.max_write_id > current:
            if write_ids.range_validity(current + 1, delta.max_write_id) is Range.NONE:
                continue
            current, last_statement = delta.max_write_id, _statement(delta)
        elif not (
            (delta.max_write_id == current and last_statement >= 0)
            or (previous is not None and _range(delta) == _range(previous))
        ):
            hidden_names.append(delta.name)
            continue
        visible_deltas.append(delta)
        previous = delta
    return visible_deltas, hidden_names


def _sort_children(
    children: Iterable[Child],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    since: ValidWriteIdList | None,
) -> _SortedChildren:
    """Sort the children of a directory by what the snapshot does with them.

    Originals are plain files, and directories that are not ACID's. Aborted is what an aborted
    ``_v`` transaction wrote, or write ids that all were aborted; unseen is what a ``_v``
    transaction wrote that the snapshot does not see. Bases are sorted by ``_sort_base``.
    ``working`` has the deltas with a valid write id. In no list are the other deltas, and bases of
    an INSERT OVERWRITE that the snapshot does not see.
    """
    sorted_children = _SortedChildren()
    for child in sorted(children, key=lambda child: child.name):
        directory = parse_directory(child.name) if child.is_directory else None
        if directory is None:
            sorted_children.originals.append(child.name)
        elif txns.is_aborted(directory.visibility_txn_id):
            sorted_children.aborted.append(child.name)
        elif not txns.is_valid(directory.visibility_txn_id):
            sorted_children.unseen.append(child.name)
        elif directory.kind is DirectoryKind.BASE:
            _sort_base(sorted_children, directory, child.is_compacted, write_ids, since)
        elif write_ids.is_range_aborted(directory.min_write_id, directory.max_write_id):
            sorted_children.aborted.append(child.name)
        elif (
            write_ids.range_validity(directory.min_write_id, directory.max_write_id)
            is not Range.NONE
        ):
            sorted_children.working.append(directory)
    return sorted_children


def _sort_base(
    sorted_children: _SortedChildren,
    base: AcidDirectory,
    is_compacted: bool,
    write_ids: ValidWriteIdList,
    since: ValidWriteIdList | None,
) -> None:
    """Put a base into the list to which it belongs. The newest usable one, by its write id and then
    its ``_v`` number, stays in ``sorted_children.base``; other usable ones are obsolete.

    A base of original files alone (``ORIGINALS_BASE``) is always usable. A compacted base that the
    snapshot cannot use is unusable, one with events newer than ``since`` is folded. The base of an
    INSERT OVERWRITE is aborted with its write id; if the snapshot does not see it, it goes into no
    list.
    """
    compacted = is_compacted or base.visibility_txn_id > 0
    if not compacted and write_ids.is_aborted(base.min_write_id):
        sorted_children.aborted.append(base.name)
        return
    if base.min_write_id == ORIGINALS_BASE:
        usable = True
    elif compacted:
        usable = write_ids.is_base_valid(base.min_write_id)
    else:
        usable = write_ids.is_valid(base.min_write_id)
    if not usable:
        # The files below a compacted base may be gone. An INSERT OVERWRITE that the snapshot
        # does not see deletes nothing: the files that it replaced are still there.
        if compacted:
            sorted_children.unusable_bases.append(base)
        return
    if since is not None and compacted and not since.is_base_valid(base.min_write_id):
        sorted_children.folded.append(base)
        return
    best = sorted_children.base
    if best is None or _base_rank(base) > _base_rank(best):
        sorted_children.base = base
        if best:
            sorted_children.obsolete.append(best.name)
    else:
        sorted_children.obsolete.append(base.name)


def _base_rank(base: AcidDirectory) -> tuple[int, int]:
    return base.min_write_id, base.visibility_txn_id


def _hives_order(delta: AcidDirectory) -> tuple[int, int, int, str]:
    return delta.min_write_id, -delta.max_write_id, _statement(delta), delta.name


def _range(delta: AcidDirectory) -> tuple[int, int, int]:
    return delta.min_write_id, delta.max_write_id, _statement(delta)


def _statement(delta: AcidDirectory) -> int:
    return -1 if delta.statement_id is None else delta.statement_id
