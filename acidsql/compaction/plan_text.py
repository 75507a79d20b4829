"""EXPLAIN ALTER TABLE … COMPACT: what a compaction would merge, drop and free, as text."""

from __future__ import annotations

from acidsql.acid.state import AcidState
from acidsql.acid.table import Table
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.metastore.compaction_queue import CompactionType
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.files.sizes import size_text
from acidsql.storage.folding.plan import CompactionPlan
from acidsql.storage.tables.file_info import read_file_info
from acidsql.storage.tables.listing import EventFile
from acidsql.txn.locks import lock_object_name

_SHOWN = 20  # directories


def plan_text(
    table: Table,
    partition: str | None,
    kind: CompactionType,
    plan: CompactionPlan | None,
    state: AcidState,
    write_ids: ValidWriteIdList,
) -> str:
    """Return the text that describes a compaction, in several lines: its type and place, the lowest
    open write id if there is one, what it reads, merges, drops, writes and frees (or that there is
    nothing to merge), and the directories that are obsolete or aborted already.

    Args:
        table: The table.
        partition: The partition's name; None for an unpartitioned table.
        kind: The type of the compaction.
        plan: The plan; None if there is too little to merge.
        state: The present state of the directories.
        write_ids: The present write ids.
    """
    where = lock_object_name(table.name.database, table.name.name, partition)
    lines = ["== Compaction ==", f"{kind.name.lower()} compaction of {where}"]
    if write_ids.open:
        lines.append(
            f"  up to write id {write_ids.min_open - 1}: {write_ids.min_open} is open "
            "(SHOW TRANSACTIONS)"
        )
    if plan is None:
        lines.append("  nothing to merge")
    else:
        lines += _merge_lines(plan)
    replaced = [*state.obsolete, *state.aborted]
    if replaced:
        lines.append(
            f"  already obsolete or aborted: {len(replaced)} directories: {_first_names(replaced)}"
        )
    return "\n".join([*lines, ""])


def nothing_text(
    table: Table,
    partition: str | None,
    kind: CompactionType,
    state: AcidState,
    write_ids: ValidWriteIdList,
) -> str:
    """Return sentences that say why there is nothing to compact: which directories there are, and
    which write id is open. The arguments are those of ``plan_text``."""
    where = lock_object_name(table.name.database, table.name.name, partition)
    names = [*state.originals, *(directory.name for directory in state.directories)]
    if not names:
        reason = f"{where} has no rows that are committed"
    elif len(names) == 1:
        reason = f"{where} is one directory, {names[0]}"
    else:
        reason = (
            f"a {kind.name.lower()} compaction merges deltas, and {where} has {_first_names(names)}"
        )
    if not write_ids.open:
        return f"There is nothing to compact: {reason}."
    return (
        f"There is nothing to compact: below write id {write_ids.min_open}, which is open (SHOW "
        f"TRANSACTIONS), {reason}."
    )


def _merge_lines(plan: CompactionPlan) -> list[str]:
    """Return the lines about what a compaction reads, merges, drops, writes and frees. To count the
    rows, the footers of all files are read."""
    data, deletes = plan.listing.data, plan.listing.deletes
    rows = f"{_rows(data):,} insert events"
    if plan.listing.originals:
        paths = sum(len(group.paths) for group in plan.listing.originals)
        rows += f" and {paths} files without event columns"
    dropped = f"{_rows(deletes):,} delete events"
    fate = "drops, with the rows that they name" if plan.major else "keeps"
    written = [plan.inserts, *([plan.deletes] if plan.deletes and deletes else [])]
    return [
        f"  reads {len(plan.directories)} directories, {len(plan.sizes)} files, "
        f"{size_text(sum(plan.sizes))}: {_first_names(plan.directories)}",
        *([f"  takes {plan.run}"] if plan.run else []),
        f"  merges {rows}, by {len(plan.folds)} tasks (one for each bucket id)",
        f"  {fate}: {dropped}",
        f"  writes {', '.join(written)}",
        f"  frees {size_text(sum(plan.sizes))} when no open transaction or lease can read them any "
        "more",
    ]


def _rows(files: tuple[EventFile, ...]) -> int:
    """Read the files' footers, and return the number of events in all files."""
    return sum(run_in_threads(lambda file: read_file_info(file.path, file.length).rows, files))


def _first_names(names: list[str]) -> str:
    """Return the first 20 names, with commas between them, and the number of the others."""
    more = f" … and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
