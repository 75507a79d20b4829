"""What older versions of a table are read from.

A base replaces everything below it. What it has replaced is one *age* of a table's or partition's
directory: the older base, and the deltas between the two. All versions from the older base up to
the newer one are read from the age's files, and need no others. A delta that a wider delta hides
belongs to no age: the wider one has the same events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from acidsql.acid.layout import DirectoryKind, parse_directory
from acidsql.acid.state import AcidState, Child, acid_state
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList


@dataclass(frozen=True, slots=True)
class Age:
    """What one base has replaced.

    Attributes:
        until: The write id of the base. Versions below it need the age.
        names: The age's directories and files.
    """

    until: int
    names: frozenset[str]


def ages(
    children: Iterable[Child],
    state: AcidState,
    decided_write_ids: ValidWriteIdList,
    txns: ValidTxnList,
) -> list[Age]:
    """Return the ages in one directory, the newest first. ``state.base`` ends the first age, the
    base below it ends the next one, and so on; without a base there are no ages, and a base of
    write id 0 or less ends none.

    An age has the names of what a reader of the version ``until`` would read if its base and newer
    ones were not there: the base below, the deltas up to ``until`` itself, and original files, as
    far as they are in ``state.obsolete``. A base without any of these left gives no age.

    Args:
        children: The visible children of the directory, in any order.
        state: What a reader of ``decided_write_ids`` reads.
        decided_write_ids: The write ids up to the last compaction.
        txns: The valid transactions.
    """
    ages_found: list[Age] = []
    children, base, obsolete = list(children), state.base, set(state.obsolete)
    while base is not None and base.min_write_id > 0:
        until = base.min_write_id
        # The base's own write id stays too: changes up to this version are told from its events.
        children = [child for child in children if not _is_base_from(child, until)]
        earlier_state = acid_state(
            children, decided_write_ids.up_to(until), txns, history_is_kept=True
        )
        names = {
            *earlier_state.originals,
            *(directory.name for directory in earlier_state.directories),
        } & obsolete
        if names:
            ages_found.append(Age(until, frozenset(names)))
        base = earlier_state.base
    return ages_found


def _is_base_from(child: Child, write_id: int) -> bool:
    """Whether a child is a base whose write id is at least ``write_id``."""
    directory = parse_directory(child.name) if child.is_directory else None
    return (
        directory is not None
        and directory.kind is DirectoryKind.BASE
        and directory.min_write_id >= write_id
    )
