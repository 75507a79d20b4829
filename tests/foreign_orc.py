"""ORC files of other writers: files of acidsql's with changed footers."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from acidsql.storage.orc.encoding.footer import CALENDAR_PROLEPTIC, encode_tail, read_tail
from acidsql.storage.orc.encoding.protobuf import decode_fields, encode_fields

_STATISTICS, _WRITER, _CALENDAR = 7, 9, 11  # fields of Footer
_TRINO = 4


def as_another_writers(path: Path, *, statistics: bool = True) -> None:
    """Make a file look like one of Trino's, which declares the proleptic calendar.

    Args:
        path: The file.
        statistics: Keep the statistics of its columns.
    """
    data = path.read_bytes()
    message, script = read_tail(BytesIO(data), len(data))
    dropped = {_WRITER, _CALENDAR} if statistics else {_WRITER, _CALENDAR, _STATISTICS}
    fields = [field for field in decode_fields(message) if field[0] not in dropped]
    footer = encode_fields([*fields, (_WRITER, _TRINO), (_CALENDAR, CALENDAR_PROLEPTIC)])
    path.write_bytes(data[: -script.length - script.footer_length] + encode_tail(footer, script))
