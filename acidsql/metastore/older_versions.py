"""Which write ids an older version shows, and whether all of its files are there.

Two things delete files that an older version needs, and note a write id first. The cleaner deletes
what a compaction has replaced, and notes the base. DROP PARTITION notes its own write id.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import SnapshotTooOldError, UnsupportedError, VersionNotFoundError
from acidsql.metastore.interface import Metastore
from acidsql.metastore.versions import Version


def require_versions(metastore: Metastore, subject: object) -> None:
    """Raise UnsupportedError if the metastore does not keep versions. ``subject``: the table, or
    words for several tables, for the message."""
    if not metastore.abilities.keeps_versions:
        raise UnsupportedError(
            f"An older version of {subject} could lack rows, because this metastore does not note "
            "which files were deleted. Time travel needs acidsql's own metastore.",
            condition="UNSUPPORTED_FEATURE.TIME_TRAVEL",
        )


def commit_number_at(metastore: Metastore, time_ms: int) -> int:
    """Return the number of the newest commit that is remembered until a time (milliseconds since
    the epoch); 0 if there is none.

    Raises:
        VersionNotFoundError: The time is after now, by the metastore's clock.
    """
    now_ms = metastore.now_ms()
    if time_ms > now_ms:
        raise VersionNotFoundError(
            f"{_time(time_ms)} is after now: the metastore's clock says {_time(now_ms)}.",
            timestamp=_time(time_ms),
        )
    return metastore.last_commit(until_ms=time_ms) or 0


def write_ids_at_version(
    metastore: Metastore, table: TableName, visible: ValidWriteIdList, version: int
) -> ValidWriteIdList:
    """Return the write ids that a version of a table shows: those of ``visible`` up to its number.

    A version with a write id that was rolled back is accepted if the metastore keeps a version of
    this number: the first one of a table that was made again. It has the last write id of the table
    before it, which may have been rolled back.

    Args:
        metastore: The metastore, which keeps versions.
        table: The table.
        visible: The write ids that the reader sees.
        version: The number of the version.

    Raises:
        VersionNotFoundError: The version is above the newest one, was rolled back, or is not
            committed.
    """
    if version > visible.high_water_mark:
        raise VersionNotFoundError(
            f"{table} has no version {version}: the newest one is {visible.high_water_mark}.",
            table=table,
            version=version,
        )
    is_kept_version = visible.is_aborted(version) and any(
        kept_version.write_id == version for kept_version in metastore.versions(table)
    )
    if not visible.is_valid(version) and not is_kept_version:
        reason = "was rolled back" if visible.is_aborted(version) else "is not committed"
        raise VersionNotFoundError(
            f"{table} has no version {version}: its transaction {reason}.",
            table=table,
            version=version,
        )
    return visible.up_to(version)


def write_ids_at_commit(
    table: TableName, committed: ValidWriteIdList, versions: Sequence[Version], commit: int
) -> ValidWriteIdList:
    """Return the write ids that a table showed after a commit: those of later commits are hidden as
    if they were still open (``without_ids``).

    Args:
        table: The table.
        committed: The write ids that it shows now, read before ``versions``.
        versions: All versions that are remembered, the newest first.
        commit: The number of the commit.

    Raises:
        VersionNotFoundError: The commit is older than all versions that are remembered, or none is.
    """
    if not versions or versions[-1].commit > commit:
        since = f" before {_time(versions[-1].committed_ms)}" if versions else ""
        raise VersionNotFoundError(
            f"Nothing is known of {table}{since}: it was made then, or what happened before was "
            "forgotten (acidsql.txn.history.retention). DESCRIBE HISTORY shows its versions.",
            table=table,
        )
    return committed.without_ids(
        {version.write_id for version in versions if version.commit > commit}
    )


def state_write_ids(
    committed: ValidWriteIdList,
    versions: Sequence[Version],
    target_write_ids: ValidWriteIdList,
    target_versions: Sequence[Version],
) -> ValidWriteIdList:
    """Return the write ids that a state table of AUTO CDC showed when its target had an older
    version.

    The state table shows the transactions that the target shows. A transaction that changed the
    state table alone is shown if it committed before the newest of those transactions.

    Args:
        committed: The write ids that the state table shows now.
        versions: All versions of the state table that are remembered.
        target_write_ids: The write ids that the older version of the target shows.
        target_versions: All versions of the target that are remembered.

    Raises:
        VersionNotFoundError: No version of the target that was shown then is remembered.
    """
    commits = [
        version.commit for version in target_versions if target_write_ids.is_valid(version.write_id)
    ]
    if not commits:
        raise VersionNotFoundError(
            f"Nothing is known of the state table beside {target_write_ids.table} at that version: "
            "its COMMIT was forgotten (acidsql.txn.history.retention).",
            table=target_write_ids.table,
        )
    newest = max(commits)
    in_target = {version.txn_id: version.write_id for version in target_versions}

    def is_shown(version: Version) -> bool:
        """Whether the older version of the target shows the version's transaction. If the
        transaction did not change the target: whether it committed before the newest transaction
        that the target shows."""
        write_id = in_target.get(version.txn_id)
        return version.commit <= newest if write_id is None else target_write_ids.is_valid(write_id)

    hidden = {version.write_id for version in versions if not is_shown(version)}
    return committed.without_ids(hidden - {0})


def oldest_version_after_loss(
    store: Metastore, table: TableName, shown: ValidWriteIdList
) -> int | None:
    """Return the oldest version that can be read, if files of a snapshot may have been deleted.

    The caller asks after it has listed the files.

    Args:
        store: The metastore, which keeps versions.
        table: The table.
        shown: The write ids of the snapshot.

    Returns:
        The oldest version that can be read; None if all files of the snapshot existed.

    Raises:
        CatalogError: There is no such table.
    """
    oldest = store.oldest_version(table)
    if shown.complete_up_to >= oldest:
        return None
    # After the oldest version: so what is noted by now was decided by now.
    now = store.valid_write_ids(store.valid_txns(), [table])[table]
    return None if is_kept(shown, oldest, now) else oldest


def require_files_kept(store: Metastore, table: TableName, shown: ValidWriteIdList) -> None:
    """Check that no file of a version was deleted before the files were listed. ``shown``: the
    write ids that the version shows.

    Call this after files were listed: the cleaner notes the loss of a version before it deletes
    files.

    Raises:
        SnapshotTooOldError: ACID_NOT_ENOUGH_HISTORY: the files are gone.
    """
    if (oldest := oldest_version_after_loss(store, table, shown)) is None:
        return
    needed = shown.complete_up_to
    raise SnapshotTooOldError(
        f"Version {needed} of {table} is gone: the cleaner has deleted files of it "
        f"after a compaction, a partition was dropped, or the table was replaced. The oldest "
        f"version that can be read is {oldest}. A greater acidsql.history.retention or "
        "acidsql.history.max.ratio, set before the cleaner runs, keeps versions that a "
        "compaction has replaced.",
        table=table, version=needed, oldest=oldest,
    )  # fmt: skip


def is_kept(shown: ValidWriteIdList, oldest: int, now: ValidWriteIdList) -> bool:
    """Whether all files of a snapshot were kept. False if this is not certain.

    A snapshot can read each base up to which it lacks nothing. So nothing is lost if no id up to
    ``oldest`` is open in it. Otherwise three things must hold. It is complete as far as ``now`` is
    (``complete_up_to``): a compaction takes no write id above an open one, so ``oldest`` is the
    write id of a dropped partition. Its high-water mark is not below ``oldest``. And no id up to
    ``oldest`` is open in it that is valid now.

    Args:
        shown: What the files were listed for.
        oldest: The oldest version that the store has noted.
        now: All write ids, as they were after the oldest version was noted.
    """
    if shown.complete_up_to >= oldest:
        return True
    if shown.complete_up_to < now.complete_up_to:
        return False
    lacks = any(number <= oldest and now.is_valid(number) for number in shown.open)
    return shown.high_water_mark >= oldest and not lacks


def _time(ms: int) -> str:
    """Return an ISO text, in UTC, of milliseconds since the epoch."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
