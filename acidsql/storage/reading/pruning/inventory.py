"""Each directory and file of a table, and its state in a snapshot: ``Session.files``.

Unlike a reader's listing, the inventory leaves nothing out, and does not fail where a reader must
fail: it shows a person what is wrong. Many threads list the directories. Spark tasks read the
footers, which have the number of rows of each file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.ages import ages
from acidsql.acid.layout import (
    ACID_VERSION_FILE,
    FLUSH_LENGTH_SUFFIX,
    METADATA_FILE,
    PAIRED_FILE,
    REBALANCED_FILE,
    AcidDirectory,
    bucket_id_of,
    is_hidden,
    is_original,
    parse_directory,
    replaced_bucket_id,
)
from acidsql.acid.state import AcidState, Child, acid_state
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.errors import FormatError
from acidsql.storage.files.entries import is_lone_half, read_child
from acidsql.storage.files.filesystem import Entry, FileSystem
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.files.partition_tree import discover_partitions, is_partition
from acidsql.storage.tables.file_info import LITTER, count_rows
from acidsql.storage.tables.listing import committed_length
from acidsql.storage.writing.publish import staged_write_id

FILES_DDL = (
    "partition string, directory string, kind string, min_write_id bigint, max_write_id bigint, "
    "statement_id int, visibility_txn_id bigint, file string, bucket int, rows bigint, "
    "bytes bigint, state string, path string, problem string"
)
_SIDE_FILES = (ACID_VERSION_FILE, METADATA_FILE, PAIRED_FILE, REBALANCED_FILE)
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """One file, or a directory without files.

    Attributes:
        partition: The partition's directory below the table's; "" if there is none.
        directory: The path of the file's directory below the partition's; "" for a file in the
            partition's directory itself.
        kind: base, delta, delete_delta, original, or litter (no reader takes it as data).
        state: visible, history, obsolete, aborted, open or unknown.
        path: The whole path.
        acid: The parsed name of the directory; None if it is not an ACID directory.
        file: The file's name; None for a directory without files.
        bytes: The file's size; None for a directory without files.
        length: The committed bytes of the file, if a side file has them.
        problem: What is wrong with the file, as far as the listing shows.
    """

    partition: str
    directory: str
    kind: str
    state: str
    path: str
    acid: AcidDirectory | None = None
    file: str | None = None
    bytes: int | None = None
    length: int | None = None
    problem: str | None = None

    @property
    def bucket(self) -> int | None:
        """The bucket id in the file's name."""
        name = self.file or ""
        return int(name.partition("_")[0]) if is_original(name) else bucket_id_of(name)

    @property
    def write_ids(self) -> tuple[int | None, int | None]:
        """The lowest and the highest write id of its events; 0 for originals; None for litter."""
        if self.acid is not None:
            return self.acid.min_write_id, self.acid.max_write_id
        return (0, 0) if self.kind == "original" else (None, None)


@dataclass(frozen=True, slots=True)
class _Place:
    """A table's or a partition's directory.

    Attributes:
        is_known: The catalog knows the place, so readers read its files.
    """

    path: str
    partition: str
    is_known: bool


def inventory(
    fs: FileSystem,
    location: str,
    partitions: Sequence[str] | None,
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    *,
    columns: Sequence[str] = (),
    oldest: float = float("inf"),
) -> list[FoundFile]:
    """List all files of a table and its directories without files, sorted by partition, directory
    and name, without the side files in bases and deltas. Partition directories that the catalog
    does not know, and files beside partition directories, are listed, too. No file is opened except
    side files. A directory that is gone or unreadable raises no error here.

    Args:
        fs: The table's file system.
        location: The table's directory.
        partitions: The partitions that the catalog knows; None if the table is not partitioned.
        write_ids: The valid write ids of the snapshot.
        txns: The valid transactions of the snapshot. They decide which ``_v`` directories count.
        columns: The partition columns. Their directories are listed even if the catalog does not
            know them.
        oldest: The oldest version that can be read. What older ones need is obsolete.
    """
    places = [_Place(location, "", True)]
    strays: list[FoundFile] = []
    if partitions is not None:
        on_disk = discover_partitions(fs.list_if_there, location, columns, run_in_threads)
        names = sorted({*on_disk, *partitions})
        places = [_Place(f"{location}/{name}", name, name in partitions) for name in names]
        directories_above = _directories_above(names, len(columns))
        strays_by_prefix = run_in_threads(
            lambda prefix: _files_beside_partitions(fs, location, prefix, columns, write_ids),
            directories_above,
        )
        strays = list(chain.from_iterable(strays_by_prefix))
    tops = run_in_threads(lambda place: _top_entries(fs, place, write_ids, txns, oldest), places)
    files_by_top = run_in_threads(lambda top: _files_below(fs, *top), chain.from_iterable(tops))
    return sorted(
        [*strays, *chain.from_iterable(files_by_top)],
        key=lambda file: (file.partition, file.directory, file.file or ""),
    )


def files_frame(spark: SparkSession, files: Sequence[FoundFile]) -> DataFrame:
    """Return the DataFrame of ``Session.files``, with the columns of FILES_DDL. Each evaluation
    reads the files' footers in tasks, for the column ``rows``.
    """
    rows = [
        (
            file.partition, file.directory, file.kind, *file.write_ids,
            file.acid and file.acid.statement_id,
            file.acid and (file.acid.visibility_txn_id or None),
            file.file, file.bucket, file.length, file.bytes, file.state, file.path,
            file.problem,
        )
        for file in files
    ]  # fmt: skip
    # The column rows first has the committed length of a file. A task replaces it by the file's
    # number of rows, when it has read the footer.
    return spark.createDataFrame(rows, FILES_DDL).mapInArrow(count_rows, FILES_DDL)


# ── listing ──────────────────────────────────────────────────────────────────────────────────


def _top_entries(
    fs: FileSystem,
    place: _Place,
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    oldest: float,
) -> list[tuple[Entry, FoundFile]]:
    """Return the entries of a table's or partition's directory itself, hidden ones too; each with a
    FoundFile that has its kind and state, for the files below it. Hidden entries are litter. In a
    place that the catalog does not know, ``visible`` becomes ``unknown``. Empty if the directory is
    missing.
    """
    entries = fs.list_if_there(place.path)
    visible_entries = [entry for entry in entries if not is_hidden(entry.name)]
    state_of = _state_by_name(fs, visible_entries, write_ids, txns, oldest)
    tops = []
    for entry in entries:
        acid = parse_directory(entry.name) if entry.is_dir else None
        kind, state = acid.kind.value if acid else "original", state_of(entry.name)
        if is_hidden(entry.name):
            kind, state = LITTER, _staged_state(entry.name, write_ids)
        elif not place.is_known and state == "visible":
            state = UNKNOWN  # the catalog does not know this place, so readers do not read it
        file = FoundFile(place.partition, "", kind, state, entry.path, acid)
        tops.append((entry, file))
    return tops


def _state_by_name(
    fs: FileSystem,
    entries: Sequence[Entry],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    oldest: float,
) -> Callable[[str], str]:
    """Return a function that gives the state of an entry by its name: visible, history, obsolete or
    aborted, and open for each other name. If the snapshot can no longer be read, all are unknown.
    """
    children = list(_whole_children(fs, entries))
    default = "open"
    try:
        state = acid_state(children, write_ids, txns)
    except FormatError:
        # The snapshot is older than the oldest base: a reader would fail.
        state, default = AcidState(), UNKNOWN
    states = dict.fromkeys(state.obsolete, "obsolete")
    for age in ages(children, state, write_ids, txns):
        states |= dict.fromkeys(age.names if age.until > oldest else (), "history")
    states |= dict.fromkeys(state.aborted, "aborted")
    states |= dict.fromkeys([directory.name for directory in state.directories], "visible")
    states |= dict.fromkeys(state.originals, "visible")
    return lambda name: states.get(name, default)


def _whole_children(fs: FileSystem, entries: Sequence[Entry]) -> Iterator[Child]:
    """Yield, for each entry that a reader can use, what the choice of directories needs
    (``read_child``); lone halves of pairs, and directories that are gone or unreadable, are left
    out.
    """
    names = {entry.name for entry in entries}
    for entry in entries:
        try:
            if not is_lone_half(fs, entry, names):
                yield read_child(fs, entry)
        except (OSError, FormatError):
            continue  # the directory is gone or unreadable: a reader will raise an error


def _staged_state(name: str, write_ids: ValidWriteIdList) -> str:
    """Return the state of a hidden directory: open if a running statement may own it, as its name
    has a write id that the snapshot has open or above its high-water mark; else unknown.
    """
    write_id = staged_write_id(name)
    undecided = write_id is not None and (
        write_id in write_ids.open or write_id > write_ids.high_water_mark
    )
    return "open" if undecided else UNKNOWN


def _files_below(fs: FileSystem, entry: Entry, template: FoundFile) -> list[FoundFile]:
    """Return the files, and the directories without files, below an entry; for a file, the file
    alone.

    Each takes the partition, kind, state and directory that it does not tell itself from
    ``template``. Side files are left out.
    """
    if not entry.is_dir:
        return [replace(template, file=entry.name, bytes=entry.size)]
    directory = replace(template, directory=f"{template.directory}/{entry.name}".lstrip("/"))
    files = list(_directory_files(fs, entry, directory))
    return files or [replace(directory, path=entry.path)]


def _directory_files(
    fs: FileSystem, entry: Entry, directory_template: FoundFile
) -> Iterator[FoundFile]:
    """Yield the files, and the directories without files, below a directory; they take what they do
    not tell themselves from ``directory_template``. Files that no reader would take as data are
    litter; side files are left out. A link is not followed: it counts as a file.
    """
    children = fs.list_if_there(entry.path)
    names = {child.name for child in children}
    for child in children:
        if directory_template.acid is not None and _is_side_file(child.name):
            continue
        template = directory_template
        if directory_template.acid is not None and not _is_data(child):
            template = replace(directory_template, kind=LITTER, state=UNKNOWN, acid=None)
        elif directory_template.kind == "original" and (
            is_hidden(child.name) or parse_directory(child.name)
        ):
            template = replace(directory_template, kind=LITTER, state=UNKNOWN)
        template = replace(template, path=child.path)
        if child.is_dir and not child.is_link:  # what a link leads to may lead back here
            yield from _files_below(fs, child, template)
        else:
            yield _file_with_length(fs, child, names, template)


def _file_with_length(
    fs: FileSystem, child: Entry, siblings: set[str], template: FoundFile
) -> FoundFile:
    """Return a file with its size, and with its committed length if a side file has one. An error
    about the side file becomes the file's problem.
    """
    length = problem = None
    if template.acid is not None:
        try:
            length = committed_length(fs, child, siblings)
        except FormatError as error:
            problem = error.message
        except OSError as error:
            problem = str(error)
    return replace(template, file=child.name, bytes=child.size, length=length, problem=problem)


def _is_side_file(name: str) -> bool:
    is_replaced = replaced_bucket_id(name) is not None
    return name in _SIDE_FILES or is_replaced or name.endswith(FLUSH_LENGTH_SUFFIX)


def _is_data(child: Entry) -> bool:
    """Whether an entry is a file that is named as a bucket file or an original."""
    if child.is_dir:
        return False
    return bucket_id_of(child.name) is not None or is_original(child.name)


def _directories_above(names: Iterable[str], depth: int) -> list[str]:
    """Return the directories above the partitions' directories, including the table's own (""),
    sorted. ``depth``: the number of partition columns.
    """
    directories = {"/".join(name.split("/")[:level]) for name in names for level in range(depth)}
    return sorted({"", *directories})


def _files_beside_partitions(
    fs: FileSystem,
    location: str,
    prefix: str,
    columns: Sequence[str],
    write_ids: ValidWriteIdList,
) -> list[FoundFile]:
    """Return the files where no reader looks for files, as litter of the partition "": those in
    ``prefix``, which is above the partitions' directories, and those below its directories that are
    not named as partitions (``name=value``) of the next partition column.
    """
    column = columns[prefix.count("/") + 1 if prefix else 0]
    strays: list[FoundFile] = []
    for entry in fs.list_if_there(f"{location}/{prefix}".rstrip("/")):
        if not (entry.is_dir and is_partition(entry.name, column)):
            state = _staged_state(entry.name, write_ids)
            strays += _files_below(fs, entry, FoundFile("", prefix, LITTER, state, entry.path))
    return strays
