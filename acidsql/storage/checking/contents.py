"""The rules about one file: its footer and, if all rows are to be read, each of its rows.

An original, or plain file, is a file of rows without event columns. A version mark is the file
``_orc_acid_version`` in a directory. (I4) and the like are the numbers of the rules in
ARCHITECTURE.md. This module runs in workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acidsql.acid import event
from acidsql.acid.findings import Finding
from acidsql.acid.layout import ORIGINALS_BASE, AcidDirectory, DirectoryKind, bucket_id_of
from acidsql.errors import FormatError, UnsupportedError
from acidsql.storage.checking.statistics import Totals
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.folding.event_merge import Int64s, Key, compare_neighbours, key_at
from acidsql.storage.orc.batches import FileHead
from acidsql.storage.orc.damage import naming_damage, reason_of
from acidsql.storage.orc.encoding.footer import Footer, read_checked_footer
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.orc.soundness import check_stripes
from acidsql.storage.reading.events.event_reader import dump_file
from acidsql.storage.reading.events.originals import OriginalFile, read_originals
from acidsql.storage.tables.file_info import FileInfo, footer_facts
from acidsql.storage.writing.buckets.bucketing import bucket_ids as clustered_ids
from acidsql.storage.writing.event_writer import bucket_ids

_Flags = npt.NDArray[np.bool_]
_EVENT_TYPES = ("int", "bigint", "int", "bigint", "bigint")


@dataclass(frozen=True, slots=True)
class Clustering:
    """CLUSTERED BY.

    Attributes:
        places: The positions of its columns among the data columns.
        types: Their types.
        buckets: INTO n BUCKETS.
        version: The table's ``bucketing_version``.
    """

    places: tuple[int, ...]
    types: tuple[str, ...]
    buckets: int
    version: int


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """What all tasks of a check must know.

    Attributes:
        row: The table's data columns.
        is_parquet: The files are Parquet.
        clustering: CLUSTERED BY of a full-ACID table; None if there is none.
        all_rows: Read each row; otherwise only footers.
    """

    row: RowSchema
    is_parquet: bool
    clustering: Clustering | None
    all_rows: bool


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file to look at.

    Attributes:
        path: Its path.
        size: Its bytes.
        length: Its committed bytes; None for the whole file.
        directory: The base, delta or delete delta that it is in; None for an original.
        is_plain: It has no event columns.
        has_version_mark: ``_orc_acid_version`` is beside it.
    """

    path: str
    size: int
    length: int | None = None
    directory: AcidDirectory | None = None
    is_plain: bool = False
    has_version_mark: bool = True


def check_file(file: CheckedFile, spec: CheckSpec) -> list[Finding]:
    """Return what is wrong with a file's footer and, with ``all_rows``, with its rows. A file that
    is gone (FILE_GONE), damaged or of an unsupported kind (UNREADABLE_FILE) or unreachable
    (UNREACHABLE_FILE) gives such a finding after those that came before, instead of an error.
    """
    findings: list[Finding] = []
    try:
        with naming_damage(file.path):
            findings += (_check_plain_file if file.is_plain else _check_event_file)(file, spec)
    except FileNotFoundError:
        findings.append(Finding(file.path, "FILE_GONE", "The file is gone."))
    except FormatError as error:
        findings.append(Finding(file.path, "UNREADABLE_FILE", f"{reason_of(error)}."))
    except UnsupportedError as error:
        findings.append(Finding(file.path, "UNREADABLE_FILE", str(error)))
    except OSError as error:
        findings.append(Finding(file.path, "UNREACHABLE_FILE", str(error)))
    return findings


# ── files without events ─────────────────────────────────────────────────────────────────────


def _check_plain_file(file: CheckedFile, spec: CheckSpec) -> Iterator[Finding]:
    """Yield what is wrong with a file that should have no events. An ORC file of events gives that
    one finding, and is not checked further. With ``all_rows``, the number of rows is compared with
    the footer's, and in ORC also the values with the footer's statistics. Without ``all_rows``, a
    footer that can be read suffices. Raises FormatError if the file cannot be read.
    """
    if spec.is_parquet:
        # Imported here because few tasks read Parquet.
        from acidsql.storage.tables.parquet import read_parquet, rows_of_parquet

        promised = rows_of_parquet(file.path)
        if spec.all_rows:
            row_count = sum(batch.num_rows for batch in read_parquet(file.path, spec.row))
            yield from _row_count_findings(file, promised, row_count)
        return
    footer = _read_footer(file, spec)
    info = footer_facts(footer)
    if info.is_acid:
        yield Finding(
            file.path,
            "EVENTS_IN_A_PLAIN_FILE",
            "The file holds ACID events, and its name is that of a file without them.",
        )
        return
    if not spec.all_rows:
        return
    totals, rows = Totals(footer, _user_columns(footer, 0, spec)), 0
    for batch in read_originals(OriginalFile(file.path, 0, 0, 0, info.rows), spec.row):
        totals.add(batch.columns[-len(spec.row.names) :])
        rows += batch.num_rows
    yield from _row_count_findings(file, info.rows, rows)
    yield from _totals_findings(file, totals)


def _read_footer(file: CheckedFile, spec: CheckSpec) -> Footer:
    """Return the footer of an ORC file. With ``all_rows``, also check the stripes and their
    indexes; no reader of rows reads these indexes. Raises FormatError if one of them is damaged.
    """
    with filesystem_for(file.path).open_input(file.path) as opened:
        end = file.size if file.length is None else file.length
        footer, _, script = read_checked_footer(opened, end)
        if spec.all_rows:
            check_stripes(FileHead(opened, end).read_at, footer, script, indexes=True)
        return footer


def _user_columns(footer: Footer, parent: int, spec: CheckSpec) -> list[tuple[int, str, str]]:
    """Return, for each of the user's columns in a footer, its number there and the name and type
    that the table has for it, matched by position. ``parent``: the number of the struct that has
    them.
    """
    kinds = zip(spec.row.names, map(str, spec.row.types), strict=True)
    numbers = footer.types[parent].children
    return [(number, *name_and_type) for number, name_and_type in zip(numbers, kinds, strict=False)]


def _row_count_findings(file: CheckedFile, promised: int, rows: int) -> Iterator[Finding]:
    """Yield a finding if there are not as many rows as the footer promises."""
    if promised != rows:
        yield _contradiction(file, f"The footer says {promised} rows, and there are {rows}.")


def _totals_findings(file: CheckedFile, totals: Totals) -> Iterator[Finding]:
    """Yield a finding if columns have other values than the footer's statistics say."""
    if totals.wrong:
        names = ", ".join(f"'{name}'" for name in totals.wrong)
        yield _contradiction(
            file, f"Its statistics are not those of the values in the column(s) {names}."
        )


def _contradiction(file: CheckedFile, message: str) -> Finding:
    """Return the finding that a file's footer contradicts its contents."""
    return Finding(file.path, "FOOTER_CONTRADICTS_CONTENTS", message)


# ── files of events ──────────────────────────────────────────────────────────────────────────


def _check_event_file(file: CheckedFile, spec: CheckSpec) -> Iterator[Finding]:
    """Yield what is wrong with a file of events: that the footer's counts of events do not add up
    to its number of rows, that its key index has not one key for each stripe (then the index is not
    used), that a file with rows has no version mark beside it, and with ``all_rows`` the faults of
    events. A file without event columns gives one finding, and is not checked further. Raises
    FormatError if it cannot be read.
    """
    footer = _read_footer(file, spec)
    info = footer_facts(footer)
    if not info.is_acid:
        yield Finding(
            file.path,
            "NO_EVENTS",
            f"The file has the columns {', '.join(info.column_names)} instead of events.",
        )
        return
    stats, index = _event_counts(info), _last_stripe_keys(info)
    if stats is not None and sum(stats) != info.rows:
        yield _contradiction(
            file, f"{event.STATS_KEY} counts {sum(stats)} events, the footer {info.rows}."
        )
    if index is not None and len(index) != len(info.stripe_rows):
        yield _contradiction(
            file,
            f"{event.KEY_INDEX_KEY} has {len(index)} keys, and there are {len(info.stripe_rows)} "
            "stripes.",
        )
        index = None
    if not file.has_version_mark and info.rows:
        yield Finding(
            file.path, "VERSION_MARK_MISSING", "There is no _orc_acid_version in its directory."
        )
    if spec.all_rows:
        rows = _Rows(file, spec, info, index, Totals(footer, _event_columns(footer, spec)))
        for batch in dump_file(file.path, file.length, spec.row):
            rows.add(batch)
        yield from rows.findings(stats)


def _event_columns(footer: Footer, spec: CheckSpec) -> list[tuple[int, str, str]]:
    """Return number, name and type of each column in an event file's footer: first the five of the
    event itself (operation, the three of the row id, the event's write id), by Hive's names, then
    the user's, which are the fields of ``row``, by the table's names.
    """
    numbers = footer.types[0].children
    names = event.EVENT_COLUMNS[: len(_EVENT_TYPES)]
    ids = list(zip(numbers, names, _EVENT_TYPES, strict=False))
    return [*ids, *_user_columns(footer, numbers[-1], spec)]


def _event_counts(info: FileInfo) -> tuple[int, ...] | None:
    """Return the numbers of inserts, updates and deletes, as the footer counts them; None if it
    does not. Raises ValueError if the entry is not made of numbers.
    """
    text = info.user_metadata.get(event.STATS_KEY)
    return None if text is None else _parse_numbers(text)


def _last_stripe_keys(info: FileInfo) -> list[Key] | None:
    """Return the last row id of each stripe, as the footer's ACID key index lists them; None if
    there is no index. An entry that has not three numbers is left out; one with something else
    than numbers raises ValueError.
    """
    text = info.user_metadata.get(event.KEY_INDEX_KEY)
    if text is None:
        return None
    keys = [_parse_numbers(part) for part in text.split(b";") if part]
    return [(key[0], key[1], key[2]) for key in keys if len(key) == 3]


def _parse_numbers(text: bytes) -> tuple[int, ...]:
    """Return the integers of a text such as ``1,2,3``. Raises ValueError for another text."""
    return tuple(map(int, text.decode().split(",")))


@dataclass(slots=True)
class EventFaults:
    """The faults of events: how often each occurs, and where it occurs first."""

    _first_of_condition: dict[str, tuple[int, str]] = field(default_factory=dict)

    def note(self, condition: str, wrong: _Flags, keys: Sequence[Int64s], message: str) -> None:
        """Count the events whose flag in ``wrong`` is set under a condition; do nothing if none is.

        Args:
            condition: The condition of the finding.
            wrong: A flag for each event.
            keys: The columns of all these events' row ids.
            message: The message. ``{}`` in it becomes the first wrong event's row id. Only a
                condition's first message is kept.
        """
        if wrong.any():
            self.add(condition, [column[wrong] for column in keys], message)

    def add(self, condition: str, keys: Sequence[Int64s], message: str) -> None:
        """Count the events with these row ids, given as three columns, under a condition; do
        nothing if there are none. ``{}`` in the message becomes the first one's row id. Only a
        condition's first message is kept.
        """
        if len(keys[0]):
            count, first = self._first_of_condition.get(
                condition, (0, message.format(row_id_text(key_at(keys, 0))))
            )
            self._first_of_condition[condition] = (count + len(keys[0]), first)

    def findings(self, path: str) -> Iterator[Finding]:
        """Yield one finding for each condition: the message of the first event and, if there are
        several events, their number. All findings have this path.
        """
        for condition, (count, message) in self._first_of_condition.items():
            more = f" There are {count} of this kind." if count > 1 else ""
            yield Finding(path, condition, message + more)


@dataclass(slots=True)
class _Rows:
    """Checks the events of a file, batch by batch, and remembers what is wrong: how often, and
    where first.

    Attributes:
        file: The file.
        spec: What all tasks of the check know.
        info: The facts of the file's footer.
        index: The last row id of each stripe, as the footer has it; None: it has none.
        totals: The statistics of the columns.
    """

    file: CheckedFile
    spec: CheckSpec
    info: FileInfo
    index: list[Key] | None
    totals: Totals
    _noted: EventFaults = field(default_factory=EventFaults)
    _counts: list[int] = field(default_factory=lambda: [0, 0, 0])
    _rows: int = 0
    _last: Key | None = None
    _is_sorted: bool = True

    def add(self, batch: pa.RecordBatch) -> None:
        """Check a batch of events by all rules, and note what is wrong. Also count its events by
        operation, and add its values to ``totals``. Batches come in the file's order, and none is
        empty.
        """
        operations = batch.column(0).to_numpy()
        keys = [batch.column(i).to_numpy().astype(np.int64) for i in (1, 2, 3)]
        current = batch.column(4).to_numpy()
        for number in range(3):
            self._counts[number] += int((operations == number).sum())
        self._note_wrong_order(keys)
        self._note_wrong_bucket_ids(keys)
        self._note_wrong_operations(operations, keys)
        self._note_wrong_write_ids(operations, keys, current)
        self._note_wrong_buckets(batch.column(5), operations, keys)
        self._note_wrong_stripe_ends(keys)
        self.totals.add([*batch.columns[:5], *batch.column(5).flatten()])
        self._rows += batch.num_rows
        self._last = key_at(keys, -1)

    def findings(self, stats: tuple[int, ...] | None) -> Iterator[Finding]:
        """Yield what was wrong with the events, and where the footer contradicts them: its number
        of rows, its statistics, and ``stats``. Call it once all batches have been added. ``stats``:
        the footer's numbers of inserts, updates and deletes; None if it has none.
        """
        yield from self._noted.findings(self.file.path)
        yield from _row_count_findings(self.file, self.info.rows, self._rows)
        yield from _totals_findings(self.file, self.totals)
        if stats is not None and stats != tuple(self._counts):
            footer_counts = ", ".join(map(str, stats))
            yield _contradiction(
                self.file,
                f"{event.STATS_KEY} counts {footer_counts} inserts, updates and deletes, "
                f"and there are {', '.join(map(str, self._counts))}.",
            )

    def _note_wrong_order(self, keys: list[Int64s]) -> None:
        """Note events behind a higher row id (I4) as ROWS_OUT_OF_ORDER. Note events with the row id
        of the event before them as REPEATED_DELETE in a delete delta, and as DUPLICATE_ROW_ID
        elsewhere. The first event is compared with the last one of the batch before.
        """
        if self._last is not None:
            pairs = zip(self._last, keys, strict=True)
            keys = [np.concatenate([[last], column]) for last, column in pairs]
        rises, repeats = compare_neighbours(keys)
        self._is_sorted &= bool((rises | repeats).all())
        later_keys = [column[1:] for column in keys]
        self._noted.note(
            "ROWS_OUT_OF_ORDER", ~(rises | repeats), later_keys, "{} comes behind a higher row id."
        )
        if self._kind is DirectoryKind.DELETE_DELTA:
            self._noted.note(
                "REPEATED_DELETE", repeats, later_keys, "{} is deleted twice in this file."
            )
        else:
            self._noted.note(
                "DUPLICATE_ROW_ID", repeats, later_keys, "Two rows have the row id {}."
            )

    def _note_wrong_bucket_ids(self, keys: list[Int64s]) -> None:
        """Note events whose row id has another bucket id than the file's name (I5)."""
        bucket = bucket_id_of(self.file.path.rpartition("/")[2])
        wrong = bucket_ids(keys[1]) != bucket
        self._noted.note("WRONG_BUCKET_ID", wrong, keys, f"{{}} is not of bucket {bucket}.")

    def _note_wrong_operations(self, operations: npt.NDArray[np.int32], keys: list[Int64s]) -> None:
        """Note events that are no deletes in a delete delta, and events that are no inserts
        elsewhere.
        """
        is_delete = self._kind is DirectoryKind.DELETE_DELTA
        operation = event.DELETE if is_delete else event.INSERT
        operation_name = "delete" if is_delete else "insert"
        self._noted.note(
            "WRONG_OPERATION", operations != operation, keys, f"{{}} is no {operation_name} event."
        )

    def _note_wrong_write_ids(
        self, operations: npt.NDArray[np.int32], keys: list[Int64s], current: Int64s
    ) -> None:
        """Note events whose write id is outside of the range in the directory's name (I1; a base
        may have any up to its own, and one of originals only has 0) or below their row's, and
        inserts whose write id is not their row's. All are noted under one condition.
        """
        assert self.file.directory is not None
        first, last = self.file.directory.min_write_id, self.file.directory.max_write_id
        if last == ORIGINALS_BASE:
            first = last = 0
        if self._kind is DirectoryKind.BASE:
            first = 0
        wrong = (current < first) | (current > last) | (keys[0] > current)
        wrong |= (operations == event.INSERT) & (keys[0] != current)
        self._noted.note(
            "WRITE_ID_OUT_OF_RANGE", wrong, keys,
            f"The event of {{}} has a write id that is not its row's, or not in {first}..{last}.",
        )  # fmt: skip

    def _note_wrong_buckets(
        self, rows: pa.StructArray, operations: npt.NDArray[np.int32], keys: list[Int64s]
    ) -> None:
        """Note inserted rows that CLUSTERED BY puts into another bucket than the file's. Nothing is
        checked in a delete delta, or without a CLUSTERED BY.
        """
        clustering = self.spec.clustering
        if clustering is None or self._kind is DirectoryKind.DELETE_DELTA:
            return
        users = rows.flatten()
        columns = [users[place] for place in clustering.places]
        bucket = bucket_id_of(self.file.path.rpartition("/")[2])
        expected_buckets = clustered_ids(
            columns, clustering.types, clustering.buckets, clustering.version
        )
        wrong = (expected_buckets != bucket) & (operations == event.INSERT)
        self._noted.note(
            "ROW_IN_WRONG_BUCKET", wrong, keys, f"{{}} does not belong to bucket {bucket}."
        )

    def _note_wrong_stripe_ends(self, keys: list[Int64s]) -> None:
        """Note each stripe whose last row of this batch has another row id than the footer's key
        index says; nothing without an index. It is WRONG_KEY_INDEX if events were out of order
        (the index of such a file has the highest row ids), and in a delete delta (Trino notes other
        row ids there), else FOOTER_CONTRADICTS_CONTENTS.
        """
        if self.index is None:
            return
        end = 0
        for rows, promised in zip(self.info.stripe_rows, self.index, strict=True):
            end += rows
            at = end - 1 - self._rows
            if rows and 0 <= at < len(keys[0]) and key_at(keys, at) != promised:
                wrong = np.arange(len(keys[0])) == at
                promise = (
                    f"{event.KEY_INDEX_KEY} says that a stripe ends with {row_id_text(promised)}"
                )
                message = f"{promise}, and it ends with {{}}."
                is_other_writers = not self._is_sorted or self._kind is DirectoryKind.DELETE_DELTA
                condition = "WRONG_KEY_INDEX" if is_other_writers else "FOOTER_CONTRADICTS_CONTENTS"
                self._noted.note(condition, wrong, keys, message)

    @property
    def _kind(self) -> DirectoryKind:
        assert self.file.directory is not None
        return self.file.directory.kind


def row_id_text(key: Key) -> str:
    """Return the text of a row id for messages: ``row id (1, 2, 3)``."""
    return f"row id ({', '.join(map(str, key))})"
