"""Which files the cleaner keeps because an older version of a table needs them.

An age (``acid.ages``) is the files that one base has replaced. It is kept, or goes, as a whole, and
the oldest age goes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from acidsql.acid.ages import Age
from acidsql.acid.properties import HISTORY_MAX_RATIO, HISTORY_RETENTION, property_value
from acidsql.acid.state import Child, acid_state
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.metastore.compaction_queue import CompactionInfo
from acidsql.settings import Settings
from acidsql.storage.files.filesystem import Entry, FileSystem


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """The limits of the history that a table keeps.

    Attributes:
        retention_ms: How long files stay after the compaction that has replaced them.
        max_ratio: The greatest size of all kept files, as a multiple of the live files' size.
        oldest: The oldest version of the table that can be read (a write id).
        now_ms: The metastore's present time. It does not count when limits are compared.
    """

    retention_ms: int
    max_ratio: float
    oldest: int
    now_ms: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class KeptHistory:
    """The old files that stay in one directory, and for how long.

    Attributes:
        names: The directories and files that stay.
        kept_compaction_ids: The numbers of the compactions whose entries stay in the queue as long.
        due_ms: When the first of the ages gets too old; None if nothing is kept.
        oldest: The oldest version that can be read once the other ages are deleted, as far as this
            directory is concerned; 0 if none is deleted.
    """

    names: frozenset[str]
    kept_compaction_ids: frozenset[int]
    due_ms: int | None
    oldest: int


@dataclass(frozen=True, slots=True)
class LastLook:
    """The result of the cleaner's last look, so that it need not list the directory again.

    Attributes:
        history: What stays.
        entries: The numbers of the compactions that waited.
        limits: The table's limits.
    """

    history: KeptHistory
    entries: tuple[int, ...]
    limits: HistoryLimits

    def still_holds(self, entries: Sequence[CompactionInfo], limits: HistoryLimits) -> bool:
        """Whether a new look would find the same: the limits are the same, no compaction among
        ``entries`` is new, and no kept age has become too old at ``limits.now_ms``. False if
        nothing was kept."""
        due_ms, known_ids = self.history.due_ms, set(self.entries)
        is_new = any(compaction.id not in known_ids for compaction in entries)
        return (
            limits == self.limits and not is_new and due_ms is not None and limits.now_ms < due_ms
        )


class FileSizes:
    """Measures the files of one table's or partition's directory.

    Args:
        fs: The file system.
        entries: The directory's children; only these can be measured.
        children: The same children, for Hive's rules.
        write_ids: The write ids of a reader who begins now.
        txns: The transactions of this reader.
    """

    def __init__(
        self,
        fs: FileSystem,
        entries: Iterable[Entry],
        children: Sequence[Child],
        write_ids: ValidWriteIdList,
        txns: ValidTxnList,
    ) -> None:
        self._fs, self._entries = fs, {entry.name: entry for entry in entries}
        self._children, self._write_ids, self._txns = children, write_ids, txns

    def bytes_of(self, names: Iterable[str]) -> int:
        """Return the size in bytes of the children with these names together, directories with all
        files below them."""
        chosen = (self._entries[name] for name in names)
        return sum(
            total_bytes(self._fs, entry.path) if entry.is_dir else entry.size for entry in chosen
        )

    def live_bytes(self) -> int:
        """Return the size in bytes of the files that a reader who begins now would read."""
        state = acid_state(self._children, self._write_ids, self._txns)
        return self.bytes_of(
            [*state.originals, *(directory.name for directory in state.directories)]
        )


def with_history_properties(properties: Mapping[str, str], settings: Settings) -> Settings:
    """Return the settings, with a table's properties about the retention and ratio of history in
    the place of the session's. Raise SettingError if one has a wrong value."""
    for name in (HISTORY_RETENTION, HISTORY_MAX_RATIO):
        if (value := property_value(properties, name)) is not None:
            settings = settings.with_(name, value)
    return settings


def keep(
    history: Sequence[Age],
    entries: Sequence[CompactionInfo],
    limits: HistoryLimits,
    sizes: FileSizes,
) -> KeptHistory:
    """Return which old files stay: those of the newest ages, until one is older than the retention
    time or the oldest readable version, or all together are larger than ``max_ratio`` times the
    live files. All older ages go. Nothing is deleted here.

    Args:
        history: The ages, the newest first.
        entries: The compactions that wait for the cleaner. One of them must have replaced each age.
        limits: The table's limits.
        sizes: Measures the files.
    """
    names: set[str] = set()
    kept_compaction_ids: set[int] = set()
    due: list[int] = []
    bytes_left: float | None = None
    for age in history:
        # An age is as old as the first compaction that has left it behind.
        leaving_compaction = min(
            (
                compaction
                for compaction in entries
                if (compaction.highest_write_id or 0) >= age.until
            ),
            key=lambda compaction: compaction.committed_ms or 0,
        )
        ends_ms = (leaving_compaction.committed_ms or 0) + limits.retention_ms
        if age.until <= limits.oldest or ends_ms <= limits.now_ms:
            return KeptHistory(
                frozenset(names), frozenset(kept_compaction_ids), _first(due), age.until
            )
        if bytes_left is None:
            bytes_left = limits.max_ratio * sizes.live_bytes()
        bytes_left -= sizes.bytes_of(age.names)
        if bytes_left < 0:
            return KeptHistory(
                frozenset(names), frozenset(kept_compaction_ids), _first(due), age.until
            )
        names |= age.names
        kept_compaction_ids.add(leaving_compaction.id)
        due.append(ends_ms)
    return KeptHistory(frozenset(names), frozenset(kept_compaction_ids), _first(due), 0)


def _first(times: Sequence[int]) -> int | None:
    return min(times, default=None)


def total_bytes(fs: FileSystem, path: str) -> int:
    """Return the size in bytes of all files below a directory, at any depth; 0 for a link or a
    missing directory."""
    if fs.is_link(path):
        return 0
    entries = fs.list_if_there(path)
    return sum(total_bytes(fs, entry.path) if entry.is_dir else entry.size for entry in entries)
