"""The columns of an ORC file in Hive's types, from its footer. Driver only, no Spark job."""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.acid import event
from acidsql.acid.types import HiveType
from acidsql.errors import FormatError
from acidsql.storage.filesystem import filesystem_for
from acidsql.storage.orc_footer import OrcType, parse_footer, read_tail
from acidsql.storage.protobuf import as_bytes, as_int, decode_fields

_TYPES = 4  # field of Footer
_LENGTH, _PRECISION, _SCALE = 4, 5, 6  # fields of Type


def columns_of(path: str, length: int | None = None) -> list[tuple[str, str]]:
    """The user's columns: names as the file has them, and Hive's type texts.

    Args:
        path: A file of events (its ``row`` is taken), or any other ORC file.
        length: Where it ends, in bytes, if not at its size (``_flush_length``).

    Raises:
        FormatError: It is no ORC file, or ends before its first column.
    """
    files = filesystem_for(path)
    with files.open_input(path) as file:
        message, _ = read_tail(file, files.size(path) if length is None else length)
    types = parse_footer(message).types
    details = [dict(decode_fields(as_bytes(v))) for n, v in decode_fields(message) if n == _TYPES]
    parameters = [tuple(as_int(d.get(n)) for n in (_LENGTH, _PRECISION, _SCALE)) for d in details]
    if not types or types[0].kind != "struct":
        raise FormatError(f"'{path}' has no columns", path=path)
    root = types[0]
    if [name.lower() for name in root.names] == [n.lower() for n in event.EVENT_COLUMNS]:
        root = types[root.children[-1]]
    return [
        (name, str(_node(child, types, parameters)))
        for name, child in zip(root.names, root.children, strict=True)
    ]


def _node(
    number: int, types: Sequence[OrcType], parameters: Sequence[tuple[int, ...]]
) -> HiveType:
    orc = types[number]
    length, precision, scale = parameters[number]
    children = tuple(_node(child, types, parameters) for child in orc.children)
    if orc.kind in ("char", "varchar"):
        return HiveType(orc.kind, (length,))
    if orc.kind == "decimal":
        return HiveType(orc.kind, (precision, scale))
    return HiveType(orc.kind, children=children, names=orc.names)
