"""The tail of an ORC file: parse and rewrite its postscript and footer.

pyarrow's ORC writer cannot set user metadata, a calendar, or the types CHAR and VARCHAR. The footer
has all three: it is a protobuf message at the end of the file. This module rewrites the footer
before it is written to the disk. It parses only the fields that it needs, and copies all others.

Source: ORC specification v1, ``orc_proto.proto`` (field numbers below).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from acidsql.acid.values.types import HiveType
from acidsql.costs import note_opened_file
from acidsql.errors import FormatError
from acidsql.storage.orc.encoding.compression import compress, decompress
from acidsql.storage.orc.encoding.protobuf import (
    Field,
    as_bytes,
    as_int,
    cache_if_short,
    decode_fields,
    encode_fields,
    varints,
)
from acidsql.storage.orc.encoding.stripe import Stripe

MAGIC = b"ORC"
CALENDAR_JULIAN = 1
CALENDAR_PROLEPTIC = 2
ZSTD = 5  # the number of this CompressionKind
MAX_BLOCK = 1 << 23  # bytes; the length of a chunk has 23 bits, so a chunk is shorter
_FIRST_READ = 16 * 1024  # bytes: holds the whole tail of most files

# Type.Kind, in the order of orc_proto.proto.
_KINDS = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary",
    "timestamp", "array", "map", "struct", "uniontype", "decimal", "date", "varchar", "char",
    "timestamp with local time zone",
)  # fmt: skip
BIGINT = _KINDS.index("bigint")


class _Footer:
    """Field numbers of the message Footer."""

    STRIPES, TYPES, METADATA, ROWS, STATISTICS, WRITER, CALENDAR = 3, 4, 5, 6, 7, 9, 11


class _Script:
    """Field numbers of the message PostScript."""

    FOOTER_LENGTH, COMPRESSION, BLOCK_SIZE, METADATA_LENGTH = 1, 2, 3, 5


@dataclass(frozen=True, slots=True)
class PostScript:
    """The last bytes of a file.

    Attributes:
        footer_length: Bytes of the footer as stored.
        metadata_length: Bytes of the Metadata section before it.
        compression: CompressionKind: 0 none, 1 zlib, 2 snappy, 3 lzo, 4 lz4, 5 zstd.
        block_size: The maximum size of a chunk in bytes, before compression.
        length: Bytes of the postscript itself, with the length byte after it.
        fields: All fields of the message.
    """

    footer_length: int
    metadata_length: int
    compression: int
    block_size: int
    length: int
    fields: tuple[Field, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class OrcType:
    """One node of the schema tree. Nodes are numbered in pre-order; the root is number 0.

    Attributes:
        kind: The type's name in Hive.
        children: The numbers of the child nodes.
        names: The field names of a struct.
        parameters: As those of a ``HiveType``.
    """

    kind: str
    children: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    parameters: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Footer:
    """The parts of a footer that we need.

    Attributes:
        rows: Rows in the file.
        stripes: The positions and sizes of the stripes.
        user_metadata: The writer's own entries.
        types: The schema tree in pre-order.
        calendar: 0 unknown, 1 hybrid Julian/Gregorian, 2 proleptic Gregorian.
        writer: 0 ORC in Java, 1 ORC in C++, 4 Trino, and others.
        statistics: A ColumnStatistics message for each node of ``types``, not decoded.
    """

    rows: int
    stripes: tuple[Stripe, ...]
    user_metadata: Mapping[str, bytes]
    types: tuple[OrcType, ...]
    calendar: int
    writer: int
    statistics: tuple[bytes, ...] = field(repr=False)

    @property
    def stripe_rows(self) -> tuple[int, ...]:
        """Rows of each stripe."""
        return tuple(stripe.rows for stripe in self.stripes)


def read_footer(file: BinaryIO, length: int) -> Footer:
    """Read the footer of a file, and check its numbers and types. Names are as Java reads them.

    Args:
        file: The file, open for random access.
        length: The end of the file in bytes: its size, or the last entry of ``_flush_length``.

    Raises:
        FormatError: It is not an ORC file, it is cut short or damaged, or Java misreads a name.
    """
    return read_checked_footer(file, length)[0]


def read_checked_footer(file: BinaryIO, length: int) -> tuple[Footer, bytes, PostScript]:
    """Read a footer, and check its numbers and types.

    Args:
        file: The file, open for random access.
        length: The end of the file in bytes.

    Returns:
        The footer, with names as Java reads them; the Footer message, decompressed; the postscript.

    Raises:
        FormatError: It is not an ORC file, it is cut short or damaged, or Java misreads a name.
    """
    note_opened_file()
    message, script = read_tail(file, length)
    footer = parse_footer(message)
    _check_footer(footer, length - script.length - script.footer_length - script.metadata_length)
    if any("`" in name for node in footer.types for name in node.names):
        types = [replace(node, names=tuple(map(read_name, node.names))) for node in footer.types]
        footer = replace(footer, types=tuple(types))
    return footer, message, script


def read_tail(file: BinaryIO, length: int) -> tuple[bytes, PostScript]:
    """Read the Footer message, decompressed, and the postscript of a file that ends at ``length``.

    Raises:
        FormatError: It is not an ORC file, it is cut short, or its blocks are too large.
    """
    tail = _read_at(file, max(0, length - _FIRST_READ), length)
    script = parse_postscript(tail)
    needed_size = script.length + script.footer_length
    if needed_size > length:
        raise FormatError("the ORC file is cut short: its footer is longer than the file")
    if script.block_size > MAX_BLOCK:
        raise FormatError(f"the ORC file's blocks have {script.block_size} bytes")
    if needed_size > len(tail):
        tail = _read_at(file, length - needed_size, length)
    stored_footer = tail[len(tail) - needed_size : len(tail) - script.length]
    try:
        return decompress(stored_footer, script.compression), script
    except FormatError as error:
        raise FormatError(error.message, offset=length - needed_size) from error


def parse_postscript(tail: bytes) -> PostScript:
    """Read the postscript from the last bytes of a file. A number that is missing is 0, a missing
    block size 256 KiB. Raises FormatError if there is no postscript.
    """
    length = tail[-1] + 1 if tail else 0
    body = tail[-length:-1]
    if len(body) != length - 1 or MAGIC not in body:
        raise FormatError("not an ORC file: it has no postscript at its end")
    fields = tuple(decode_fields(body))
    # If a field occurs twice, the last value counts, as in any protobuf reader.
    numbers = {number: as_int(value) for number, value in fields}
    return PostScript(
        numbers.get(_Script.FOOTER_LENGTH, 0),
        numbers.get(_Script.METADATA_LENGTH, 0),
        numbers.get(_Script.COMPRESSION, 0),
        numbers.get(_Script.BLOCK_SIZE, 1 << 18),
        length,
        fields,
    )


def parse_footer(message: bytes) -> Footer:
    """Decode a Footer message; names stay as they are stored. A number that is missing is 0. The
    values are not checked. Raises FormatError if the bytes are no message.
    """
    rows, calendar, writer = 0, 0, 0
    stripes: list[Stripe] = []
    metadata: dict[str, bytes] = {}
    types: list[OrcType] = []
    statistics: list[bytes] = []
    for number, value in decode_fields(message):
        if isinstance(value, int):
            rows = value if number == _Footer.ROWS else rows
            calendar = value if number == _Footer.CALENDAR else calendar
            writer = value if number == _Footer.WRITER else writer
        elif number == _Footer.STRIPES:
            stripes.append(Stripe.parse(value))
        elif number == _Footer.METADATA:
            item = dict(decode_fields(value))
            metadata[as_bytes(item.get(1)).decode()] = as_bytes(item.get(2))
        elif number == _Footer.TYPES:
            types.append(_parse_type(value))
        elif number == _Footer.STATISTICS:
            statistics.append(value)
    other_parts = (tuple(types), calendar, writer, tuple(statistics))
    return Footer(rows, tuple(stripes), metadata, *other_parts)


def _check_footer(footer: Footer, end: int) -> None:
    """Raise FormatError if the stripes have another number of rows than the footer says, a stripe
    ends behind the byte ``end``, or the types are no tree: no writer writes this, and it could
    make Python, or ORC's C++, do anything.
    """
    if sum(footer.stripe_rows) != footer.rows:
        raise FormatError(
            f"the ORC file says that it has {footer.rows} rows, and its stripes have "
            f"{sum(footer.stripe_rows)}"
        )
    for stripe in footer.stripes:
        if stripe.offset + stripe.length > end:
            raise FormatError(
                f"the ORC file's stripe is outside of the file, at byte {stripe.offset}"
            )
    _check_types(footer.types)


def _check_types(types: Sequence[OrcType]) -> None:
    """Raise FormatError unless the types are a tree: each but the first is the child of exactly one
    type, which stands before it, and a struct has as many names as children.
    """
    child_numbers = [child for node in types for child in node.children]
    is_tree = sorted(child_numbers) == list(range(1, len(types)))
    is_ordered = all(child > i for i, node in enumerate(types) for child in node.children)
    has_all_names = all(
        len(node.names) == len(node.children) for node in types if node.kind == "struct"
    )
    if not (types and is_tree and is_ordered and has_all_names):
        raise FormatError("the ORC file's types are no tree")


def complete_footer(message: bytes, metadata: Mapping[str, str], row: HiveType) -> bytes:
    """Complete a Footer message with the things that pyarrow cannot write.

    Args:
        message: The footer that pyarrow wrote, decompressed.
        metadata: User metadata; it replaces any that the message has.
        row: The type of the file's root, whose CHAR and VARCHAR are declared in the footer.

    Returns:
        The new message. Its names are stored so that Java reads them back. It declares the
        proleptic Gregorian calendar: without a declaration Hive 4 assumes the hybrid calendar, and
        moves days before 1582-10-15.
    """
    lengths = dict(_declared_lengths(row))
    fields: list[Field] = []
    position = 0
    for number, value in decode_fields(message):
        if number == _Footer.TYPES:
            value = _rename_fields(_declare_length(as_bytes(value), lengths.get(position)))
            position += 1
        if number not in (_Footer.METADATA, _Footer.CALENDAR):
            fields.append((number, value))
    for key, text in metadata.items():
        item = encode_fields([(1, key.encode()), (2, text.encode())])
        fields.append((_Footer.METADATA, item))
    fields.append((_Footer.CALENDAR, CALENDAR_PROLEPTIC))
    return encode_fields(fields)


def encode_tail(message: bytes, script: PostScript, metadata_length: int | None = None) -> bytes:
    """Return the end of a file as bytes: the footer, compressed, and the postscript with the
    footer's new length.

    Args:
        message: The Footer message, not compressed.
        script: The postscript that the file had.
        metadata_length: The new length of the Metadata section in bytes; None if it stays.
    """
    footer = compress(message, script.compression, script.block_size)
    new = {_Script.FOOTER_LENGTH: len(footer)}
    if metadata_length is not None:
        new[_Script.METADATA_LENGTH] = metadata_length
    body = encode_fields([(number, new.get(number, value)) for number, value in script.fields])
    return footer + body + bytes([len(body)])


# ── names ────────────────────────────────────────────────────────────────────────────────────


def read_name(stored: str) -> str:
    """Return the name of a field as Java's ORC reader takes it out of a footer.

    Java puts back-quotes around a stored name, unless one is there, and parses the result.

    Raises:
        FormatError: There is a back-quote that Java would take for the name's end.
    """
    if "`" not in stored:
        return stored
    name = stored[1:-1].replace("``", "`")
    if stored != _stored_name(name):
        raise FormatError(
            f"the ORC file has a column or field '{stored}', and ORC's readers in Java take the "
            "back-quote for the end of the name; write the file anew under another name"
        )
    return name


def _stored_name(name: str) -> str:
    """Return a name in the form that Java reads back: in back-quotes if it has back-quotes in it,
    and these doubled.
    """
    return "`" + name.replace("`", "``") + "`" if "`" in name else name


def _rename_fields(message: bytes) -> bytes:
    """Return a Type message whose fields' names are stored so that Java reads them back: see
    ``_stored_name``.
    """
    if b"`" not in message:
        return message
    return encode_fields(
        (number, _stored_name(as_bytes(value).decode()).encode() if number == 3 else value)
        for number, value in decode_fields(message)
    )


# ── types ────────────────────────────────────────────────────────────────────────────────────


@cache_if_short(1024)
def _parse_type(message: bytes) -> OrcType:
    """Decode a Type message; names stay as they are stored. Parameters are the length of a CHAR or
    VARCHAR, and the precision and scale of a DECIMAL. The name of an unknown kind is its number, as
    in ``kind 20``.
    """
    kind, children, names = 0, list[int](), list[str]()
    numbers = {4: 0, 5: 0, 6: 0}  # length, precision, scale
    for number, value in decode_fields(message):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number in numbers and isinstance(value, int):
            numbers[number] = value
        elif number == 2:
            # orc_proto.proto says packed, but a writer may also write the numbers one by one.
            children += [value] if isinstance(value, int) else varints(value)
        elif number == 3:
            names.append(as_bytes(value).decode())
    word = _KINDS[kind] if kind < len(_KINDS) else f"kind {kind}"
    length, *decimal = numbers.values()
    parameters = {"char": (length,), "varchar": (length,), "decimal": tuple(decimal)}
    return OrcType(word, tuple(children), tuple(names), parameters.get(word, ()))


def _declared_lengths(root: HiveType) -> Iterator[tuple[int, HiveType]]:
    """Yield the number and type of each CHAR and VARCHAR below ``root``, in the order of the
    numbers: in pre-order, from 0 for ``root``."""
    pending, position = [root], 0
    while pending:
        node = pending.pop()
        if node.kind in ("char", "varchar"):
            yield position, node
        position += 1
        pending.extend(reversed(node.children))


def _declare_length(message: bytes, declared: HiveType | None) -> bytes:
    """Return a Type message with the kind and length of ``declared``, a CHAR or VARCHAR; for None
    the message itself.
    """
    if declared is None:
        return message
    fields = [f for f in decode_fields(message) if f[0] not in (1, 4)]
    kind: Field = (1, _KINDS.index(declared.kind))
    return encode_fields([kind, *fields, (4, declared.parameters[0])])


def _read_at(file: BinaryIO, start: int, end: int) -> bytes:
    """Read the file's bytes from ``start`` to ``end``. Raises FormatError if it ends before."""
    file.seek(start)
    data = file.read(end - start)
    if len(data) < end - start:
        raise FormatError("the ORC file is cut short: it ends before the length that was committed")
    return data
