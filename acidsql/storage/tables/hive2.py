"""Finds deltas in the layout of Hive 2, whose rows must be merged one by one.

Before Hive 3 a delta could hold changes in place: its events say 1 (update) or 2 (delete), and no
``delete_delta`` stands beside it. Hive 3 and later, Trino and acidsql do not apply such events. A
major compaction, by the old Hive, writes a base without them.

Hive 3 and later put a file ``_orc_acid_version`` into every directory. So the footers of the files
are read only if a delta has no such file.
"""

from __future__ import annotations

from collections.abc import Iterable

from acidsql.acid.event import INSERT
from acidsql.acid.layout import ACID_VERSION_FILE, DirectoryKind, bucket_id_of, parse_directory
from acidsql.errors import FormatError, UnsupportedError
from acidsql.storage.files.filesystem import Entry, filesystem_for
from acidsql.storage.orc.damage import naming_damage
from acidsql.storage.orc.encoding.footer import read_footer
from acidsql.storage.orc.encoding.protobuf import as_bytes, as_int, decode_fields

_OPERATION = 1  # the number of the column in a file of events
_INTEGERS, _MAX = 2, 2  # fields of ColumnStatistics and of IntegerStatistics


def refuse_old_updates(directory: Entry, children: Iterable[Entry]) -> None:
    """Raise an error for a delta with updates or deletes in Hive 2's layout.

    Args:
        directory: A directory of a full-ACID table.
        children: Its files.

    Raises:
        UnsupportedError: The delta has such events.
    """
    if find_old_update(directory, children) is not None:
        table = directory.path.rpartition("/")[0]
        raise UnsupportedError(
            f"'{directory.path}' has updates or deletes in the layout of Hive 2, which no reader "
            f"since Hive 3 applies. Run a major compaction of '{table}' with the old Hive first.",
            condition="UNSUPPORTED_FEATURE.HIVE_2_LAYOUT",
        )


def find_old_update(directory: Entry, children: Iterable[Entry]) -> str | None:
    """Return the path of a file with updates or deletes in Hive 2's layout in a directory; None if
    there is none, or the directory is no delta.

    Footers are read only if the delta has no ``_orc_acid_version``.
    """
    parsed = parse_directory(directory.name)
    if parsed is None or parsed.kind is not DirectoryKind.DELTA:
        return None
    files = list(children)
    if any(file.name == ACID_VERSION_FILE for file in files):
        return None
    buckets = (file for file in files if bucket_id_of(file.name) is not None and file.size)
    return next(
        (file.path for file in buckets if _greatest_operation_code(file.path, file.size) > INSERT),
        None,
    )


def _greatest_operation_code(path: str, size: int) -> int:
    """Return the greatest operation code (0 INSERT, 1 UPDATE, 2 DELETE) in an ORC file of events,
    by the statistics in its footer. INSERT if there are none, or the file is damaged or gone:
    whoever reads its rows raises that error.
    """
    try:
        with filesystem_for(path).open_input(path) as opened, naming_damage(path):
            footer = read_footer(opened, size)
        statistics = dict(decode_fields(footer.statistics[_OPERATION]))
        number = as_int(dict(decode_fields(as_bytes(statistics[_INTEGERS])))[_MAX])
    except (FileNotFoundError, FormatError, IndexError, KeyError):
        return INSERT  # no rows, no statistics; or it is damaged or gone: then its reader says so
    return (number >> 1) ^ -(number & 1)
