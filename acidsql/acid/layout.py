"""Names on disk: how base directories, delta directories and bucket files are named and parsed.

::

    <table>/[<p1>=<v1>/<p2>=<v2>/]
        base_0000005[_v0000017]                    a whole table as of write id 5
        delta_0000006_0000006_0000                 insert events of statement 0 of write id 6
        delete_delta_0000006_0000006_0001          delete events of statement 1
        delta_0000001_0000005[_v0000017]           a compacted range (no statement id)
            _orc_acid_version                      "2"
            bucket_00000[_<attempt>]               one file for each bucket id
            bucket_00000_flush_length              streaming: how much of the file is committed

Names that begin with ``_`` or ``.`` are hidden. acidsql writes no attempt suffixes, and ``_v`` only
if ``acidsql.compactor.visibility.id`` is set, because Hive 3.1 can read neither. acidsql pads
numbers exactly as Hive does, because Hive finds delete deltas by formatting their numbers again.

Source: Hive ``AcidUtils``, ``AcidConstants``, ``FileUtils.escapePathName``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from acidsql.errors import FormatError

ACID_VERSION_FILE = "_orc_acid_version"
ACID_VERSION = b"2"
METADATA_FILE = "_metadata_acid"
# By this content Hive 3.1 tells a compacted base from an overwrite (``AcidUtils.MetaDataFile``).
COMPACTED_METADATA = b'{"thisFileVersion":"0","dataFormat":"compacted"}'
# acidsql's own: a minor compaction's delta and delete_delta count only together (``listing``).
PAIRED_FILE = "_acidsql_paired"
# acidsql's own: in a base whose rows have new row ids.
REBALANCED_FILE = "_acidsql_rebalanced"
# acidsql's own: ``_acidsql_replaced_00003`` says which rows those of bucket_00003 replace.
REPLACED_FILE = "_acidsql_replaced"
# acidsql's own: in the directory of a table that has moved away; it names the other metastore.
MOVED_FILE = "_acidsql_moved"
FLUSH_LENGTH_SUFFIX = "_flush_length"
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
STATEMENT_ID_MAX = 4095  # 12 bits of the bucket property
BUCKET_ID_MAX = 4095
# The base of a first major compaction of originals without deltas: Long.MIN_VALUE.
ORIGINALS_BASE = -9223372036854775808

_BASE = re.compile(r"base_(-?\d+)(?:_v(\d+))?")
_DELTA = re.compile(r"(delete_)?delta_(\d+)_(\d+)(?:_(\d+))?(?:_v(\d+))?")
_BUCKET = re.compile(r"bucket_(\d+)(?:_(\d+))?")
_REPLACED = re.compile(rf"{REPLACED_FILE}_(\d+)")
_ORIGINAL = re.compile(r"(\d+)_\d+(?:_copy_\d+)?")
# Hive's list (FileUtils): control characters, DEL and these. A blank is not escaped.
_ESCAPED = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")


class DirectoryKind(Enum):
    """What a directory holds."""

    BASE = "base"
    DELTA = "delta"
    DELETE_DELTA = "delete_delta"


@dataclass(frozen=True, slots=True)
class AcidDirectory:
    """A parsed directory name.

    Attributes:
        name: The name.
        kind: Base, delta or delete delta.
        min_write_id: The lowest write id. A base has only one write id.
        max_write_id: The highest write id.
        statement_id: The statement id. None for a compacted or streamed range, and for a base.
        visibility_txn_id: The ``_v`` number of Hive 4's compactor; 0 if there is none.
    """

    name: str
    kind: DirectoryKind
    min_write_id: int
    max_write_id: int
    statement_id: int | None = None
    visibility_txn_id: int = 0


def delta_name(write_id: int, statement_id: int) -> str:
    """Return the name of the directory of one statement's insert events:
    ``delta_0000006_0000006_0000``. Raises FormatError if the statement id is above 4095."""
    return f"delta_{write_id:07d}_{write_id:07d}_{_valid_statement_id(statement_id):04d}"


def delete_delta_name(write_id: int, statement_id: int) -> str:
    """Return the name of the directory of one statement's delete events:
    ``delete_delta_0000006_0000006_0000``. Raises FormatError if the statement id is above 4095."""
    return f"delete_{delta_name(write_id, statement_id)}"


def base_name(write_id: int, visibility_txn_id: int = 0) -> str:
    """Return ``base_0000005`` or ``base_0000005_v0000017``: the name of the base that an INSERT
    OVERWRITE or TRUNCATE with this write id makes, or a major compaction up to this write id."""
    return f"base_{write_id:07d}{_visibility_suffix(visibility_txn_id)}"


def compacted_delta_name(first: int, last: int, visibility_txn_id: int = 0) -> str:
    """Return ``delta_0000001_0000005`` or ``delta_0000001_0000005_v0000017``: the name of the
    directory of the insert events of a range of write ids (both ends included)."""
    return f"delta_{first:07d}_{last:07d}{_visibility_suffix(visibility_txn_id)}"


def _visibility_suffix(txn_id: int) -> str:
    """Return ``_v0000017``; empty for 0."""
    return f"_v{txn_id:07d}" if txn_id else ""


def bucket_name(bucket_id: int) -> str:
    """Return ``bucket_00003``: the name of the file with the events of one bucket id."""
    return f"bucket_{bucket_id:05d}"


def plain_name(bucket_id: int) -> str:
    """Return ``000003_0``: the name of one bucket id's file without event columns, in an
    insert-only table or after LOAD DATA."""
    return f"{bucket_id:06d}_0"


def replaced_name(bucket_id: int) -> str:
    """Return ``_acidsql_replaced_00003``: the name of the file that tells, for the rows of a bucket
    file, which rows they replace."""
    return f"{REPLACED_FILE}_{bucket_id:05d}"


def replaced_bucket_id(file_name: str) -> int | None:
    """Return the bucket id in ``_acidsql_replaced_00003``; None for any other name."""
    name_match = _REPLACED.fullmatch(file_name)
    return int(name_match[1]) if name_match else None


def parse_directory(name: str) -> AcidDirectory | None:
    """Parse the name of a base, a delta or a delete delta, whether its numbers are padded or not;
    None for any other name. The numbers are not compared with each other or with limits."""
    if base_match := _BASE.fullmatch(name):
        write_id, visibility = int(base_match[1]), int(base_match[2] or 0)
        return AcidDirectory(name, DirectoryKind.BASE, write_id, write_id, None, visibility)
    if base_match := _DELTA.fullmatch(name):
        kind = DirectoryKind.DELETE_DELTA if base_match[1] else DirectoryKind.DELTA
        statement = None if base_match[4] is None else int(base_match[4])
        return AcidDirectory(
            name, kind, int(base_match[2]), int(base_match[3]), statement, int(base_match[5] or 0)
        )
    return None


def bucket_id_of(file_name: str) -> int | None:
    """Return the bucket id in ``bucket_00003`` or ``bucket_00003_0``; None for any other name."""
    bucket_match = _BUCKET.fullmatch(file_name)
    return int(bucket_match[1]) if bucket_match else None


def is_original(file_name: str) -> bool:
    """True for ``000000_0`` and ``000000_0_copy_1``: files written before ACID, or loaded."""
    return _ORIGINAL.fullmatch(file_name) is not None


def is_hidden(name: str) -> bool:
    """Whether a name begins with ``_`` or ``.``, so that readers ignore the file or directory."""
    return name.startswith(("_", "."))


def partition_name(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """Return ``p1=a/p2=1``: columns in lower case, all escaped as Hive does it
    (``FileUtils.makePartName``). The values None and "" are named as the default partition. There
    are as many values as columns, otherwise this is a ValueError."""
    pairs = zip(columns, values, strict=True)
    return "/".join(f"{_escape(name.lower())}={_escape_value(value)}" for name, value in pairs)


def parse_partition_name(name: str) -> list[tuple[str, str | None]]:
    """Return the unescaped (column, value) pairs of ``p1=a/p2=1``, in the order of the name; None
    is the default partition. The case of letters stays, an empty value is "".

    Raises:
        FormatError: A part is not of the form ``column=value``.
    """
    parts = []
    for part in name.split("/"):
        column, equals, value = part.partition("=")
        if not equals:
            raise FormatError(f"'{name}' is not the name of a partition", name=name)
        value = _unescape(value)
        parts.append((_unescape(column), None if value == DEFAULT_PARTITION else value))
    return parts


def _escape_value(value: str | None) -> str:
    return _escape(value) if value else DEFAULT_PARTITION


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda character: f"%{ord(character[0]):02X}", text)


def _unescape(text: str) -> str:
    return re.sub("%([0-9a-fA-F]{2})", lambda code: chr(int(code[1], 16)), text)


def _valid_statement_id(statement_id: int) -> int:
    """Return the statement id. Raise FormatError if it is not in 0..4095."""
    if not 0 <= statement_id <= STATEMENT_ID_MAX:
        raise FormatError(
            f"A transaction has at most {STATEMENT_ID_MAX + 1} writing statements; commit it",
            statement_id=statement_id,
        )
    return statement_id


_ORIGINAL_BUCKET = re.compile(r"(\d+)_\d+(?:_copy_\d+)?")


def bucket_id_of_original(path: str) -> int:
    """Return the bucket id in the name of an original file: the first number of ``000001_0`` or
    ``000001_0_copy_2``. Directories before it are ignored.

    Raises:
        FormatError: The name has another form (for example Spark's ``part-00000…``).
    """
    match = _ORIGINAL_BUCKET.fullmatch(path.rpartition("/")[2])
    if match is None:
        raise FormatError(
            f"'{path}' has no bucket id in its name, so its rows have no row id; Hive asks for "
            "names like 000000_0",
            path=path,
        )
    return int(match.group(1))
