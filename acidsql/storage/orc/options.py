"""A table's ``orc.…`` properties: how its ORC files are written. Workers import this module.

Names and meanings are ORC's (``OrcConf``), as Hive passes them on. Our default of ``orc.compress``
is zstd, which Hive 3 does not read (Hive 3 reads all other codecs). A table without these
properties is written with the defaults below.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from acidsql.acid.properties import Property
from acidsql.acid.values.types import HiveType
from acidsql.errors import SettingError

PREFIX = "orc."
BLOOM_FILTER_COLUMNS = "orc.bloom.filter.columns"
# Java's writer does not use a dictionary for these columns.
DIRECT_ENCODING_COLUMNS = ("orc.column.encoding.direct", "orc.direct.encoding.columns")
COMPRESSIONS = ("zstd", "zlib", "snappy", "lz4", "none")
STRIPE_SIZE = 64 * 1024 * 1024  # bytes
_BLOCK = 64 * 1024  # bytes: the ORC writer's blocks are multiples of it
_BLOCK_END = 8 * 1024 * 1024  # bytes: a chunk's length has 23 bits
_STRIDE_MIN = 1000  # ORC's own limit
_STRIDE_MAX = 10_000_000  # for so many rows, a bloom filter takes 12 MB for each column
_INT_MAX = 2**31 - 1  # Java readers keep a stream of a stripe in one array
_NO_BLOOM = ("boolean", "struct", "array", "map", "uniontype")

# ORC's other properties. They say how Java's writer works; a reader sees no difference.
_WITHOUT_EFFECT = frozenset(
    PREFIX + name
    for name in (
        "base.delta.ratio", "block.padding", "block.padding.tolerance", "buffer.size.enforce",
        "compression.strategy", "column.encoding.direct", "dictionary.early.check",
        "dictionary.implementation", "dictionary.key.threshold", "dictionary.max.size",
        "direct.encoding.columns", "encoding.strategy", "enforce.buffer.size", "memory.pool",
        "proleptic.gregorian.default", "rows.between.memory.checks", "stripe.row.count",
        "stripe.size.check", "write.format", "write.variable.length.blocks",
        "bloom.filter.write.version", "overwrite.output.file", "row.child.limit",
        "schema.evolution.case.sensitive", "force.positional.evolution",
    )
)  # fmt: skip
# If these were ignored, data would be stored readable that the user wants to hide.
_REFUSED = ("orc.encrypt", "orc.mask", "orc.key.provider")


@dataclass(frozen=True, slots=True)
class OrcOptions:
    """How files are written.

    Attributes:
        compression: ``orc.compress``: zstd, zlib, snappy, lz4 or none.
        stripe_size: ``orc.stripe.size``, in bytes before compression.
        block_size: ``orc.compress.size``, in bytes before compression; rounded up to a multiple of
            64 KiB.
        row_index_stride: ``orc.row.index.stride``, in rows; 0: no row indexes, as with
            ``orc.create.index=false``.
        bloom_filter_columns: ``orc.bloom.filter.columns``: names; ``s.f`` for a struct's field.
        bloom_filter_fpp: ``orc.bloom.filter.fpp``: the rate of false positives.
    """

    compression: str = "zstd"
    stripe_size: int = STRIPE_SIZE
    block_size: int = _BLOCK
    row_index_stride: int = 10_000
    bloom_filter_columns: tuple[str, ...] = ()
    bloom_filter_fpp: float = 0.01

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> OrcOptions:
        """Return the options that a table's properties set, with defaults for all others. Ignored
        are properties without ``orc.``, and those of ORC's that make no difference to a reader.
        ``orc.create.index=false`` sets the stride to 0, whatever it is otherwise.

        Raises:
            SettingError: ORC has no such property (written in lower case), the value is not valid,
                or the property asks for encryption or masking, which is not supported.
        """
        values: dict[str, Any] = {}
        for key, value in properties.items():
            if key.lower().startswith(PREFIX):
                read = _option_and_reader(key)
                if read is not None:
                    values[read[0]] = read[1](key, value)
        if not values.pop("create_index", True):
            values["row_index_stride"] = 0
        return cls(**values)

    def bloom_filter_ids(self, row: HiveType, number: int = 0) -> frozenset[int]:
        """Return the numbers of the ORC columns that get a bloom filter (in pre-order, the root is
        0).

        Without row indexes there are none. The name of a nested column stands for all columns in
        it, and gives no filter to itself; the case of names does not count. BOOLEAN columns get
        none.

        Args:
            row: The user's columns, as one struct. Names that it does not have (any more) are
                ignored, as in Hive.
            number: The number of that struct.
        """
        if not self.row_index_stride:
            return frozenset()  # a bloom filter is a part of the row index
        names = {name.lower() for name in self.bloom_filter_columns}
        return frozenset(
            column_id
            for column_id, path, node in _nodes(row, number, ())
            if node.kind not in _NO_BLOOM
            and any(".".join(path[:end]) in names for end in range(1, len(path) + 1))
        )


DEFAULT = OrcOptions()


def check_bloom_filter_columns(options: OrcOptions, row: HiveType) -> None:
    """Refuse a bloom filter on an unknown column, or on a BOOLEAN, which cannot have one. The case
    of names does not count.

    Args:
        options: The table's options.
        row: The table's data columns, as one struct.

    Raises:
        SettingError: The error names the column and says why.
    """
    kinds = {".".join(path): node.kind for _, path, node in _nodes(row, 0, ())}
    for name in options.bloom_filter_columns:
        kind = kinds.get(name.lower())
        if kind is None:
            names = ", ".join(child.lower() for child in row.names)
            raise _property_error(
                BLOOM_FILTER_COLUMNS, f"'{name}' is none of the table's data columns ({names})"
            )
        if kind == "boolean":
            raise _property_error(
                BLOOM_FILTER_COLUMNS, f"'{name}' is BOOLEAN, which has no bloom filter in ORC"
            )


def _nodes(
    node: HiveType, number: int, path: tuple[str, ...]
) -> Iterator[tuple[int, tuple[str, ...], HiveType]]:
    """Yield a node of a type and all nodes below it, in pre-order: number, path of lower-case
    names, and type. Children of an array or map have the names ``_0`` and ``_1``.

    ``number`` and ``path``: those of ``node``.
    """
    yield number, path, node
    number += 1
    # Children of a list or map have no names. A filter on the list or map is a filter on them.
    names = node.names or tuple(f"_{position}" for position in range(len(node.children)))
    for name, child in zip(names, node.children, strict=True):
        child_nodes = list(_nodes(child, number, (*path, name.lower())))
        yield from child_nodes
        number += len(child_nodes)


# ── values ───────────────────────────────────────────────────────────────────────────────────

_Read = Callable[[str, str], Any]


def _option_and_reader(key: str) -> tuple[str, _Read] | None:
    """Return the option that a property sets, and a function (key, text) → value that reads it.
    None if the property has no effect on readers. Raises SettingError for an unknown or refused
    property; case counts.
    """
    if key in _READERS:
        return _READERS[key]
    if key in _REFUSED:
        raise _property_error(
            key, "columns cannot be encrypted or masked", "UNSUPPORTED_FEATURE", "0A000"
        )
    if key in _WITHOUT_EFFECT:
        return None
    property_names = [*_READERS, *_WITHOUT_EFFECT]
    close = difflib.get_close_matches(key.lower(), property_names, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise _property_error(key, f"ORC has no such property{hint}", "INVALID_PROPERTY_KEY", "42602")


def _word_reader(words: tuple[str, ...]) -> _Read:
    """Return a reader that accepts one of these words, in any case, and returns it in lower case;
    for any other text it raises SettingError.
    """

    def read(key: str, value: str) -> str:
        if value.lower() not in words:
            raise _property_error(key, f"'{value}' is none of {', '.join(words).upper()}")
        return value.lower()

    return read


def _integer_reader(low: int, high: int, *, or_zero: bool = False) -> _Read:
    """Return a reader that accepts a whole number from ``low`` to ``high`` (and 0 if ``or_zero``),
    and returns it as an int; for any other text it raises SettingError. Blanks around the digits do
    not matter.
    """

    def read(key: str, value: str) -> int:
        """Return the number that is written in ``value``; the error names ``key``."""
        number = int(value) if value.strip().isdecimal() else -1
        if not (low <= number <= high or (or_zero and number == 0)):
            zero = ", or 0 for none" if or_zero else ""
            raise _property_error(key, f"'{value}' is no whole number from {low} to {high}{zero}")
        return number

    return read


def _read_block_size(key: str, value: str) -> int:
    """Return a number of bytes, rounded up to a multiple of 64 KiB, but at most 8 MiB less 64 KiB.
    Raises SettingError unless the text is a whole number from 1 to below 8 MiB.
    """
    size: int = _integer_reader(1, _BLOCK_END - 1)(key, value)
    return min(-(-size // _BLOCK) * _BLOCK, _BLOCK_END - _BLOCK)


def _read_boolean(key: str, value: str) -> bool:
    return bool(_word_reader(("true", "false"))(key, value) == "true")


def _read_probability(key: str, value: str) -> float:
    """Return the text as a number. Raises SettingError unless it is above 0 and below 1."""
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise _property_error(key, f"'{value}' is no number between 0 and 1")
    return number


def _read_names(_: str, value: str) -> tuple[str, ...]:
    """Return the names in a text, which commas separate, without blanks around them."""
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _property_error(
    key: str, fault: str, condition: str = "INVALID_PROPERTY_VALUE", sqlstate: str = "42602"
) -> SettingError:
    return SettingError(f"{key}: {fault}.", condition=condition, sqlstate=sqlstate, key=key)


_READERS: dict[str, tuple[str, _Read]] = {
    "orc.compress": ("compression", _word_reader(COMPRESSIONS)),
    "orc.stripe.size": ("stripe_size", _integer_reader(1, _INT_MAX)),
    "orc.compress.size": ("block_size", _read_block_size),
    "orc.row.index.stride": (
        "row_index_stride",
        _integer_reader(_STRIDE_MIN, _STRIDE_MAX, or_zero=True),
    ),
    "orc.create.index": ("create_index", _read_boolean),
    BLOOM_FILTER_COLUMNS: ("bloom_filter_columns", _read_names),
    "orc.bloom.filter.fpp": ("bloom_filter_fpp", _read_probability),
}

PROPERTIES = (
    Property("orc.compress", "ZSTD", "NONE, SNAPPY, ZLIB, LZ4 or ZSTD; Hive 3 reads all but ZSTD."),
    Property("orc.stripe.size", f"{STRIPE_SIZE}", "Bytes of a stripe, before compression."),
    Property("orc.compress.size", f"{_BLOCK}", "Bytes of a compressed block, before compression; "
             "rounded up to 64 KiB."),
    Property("orc.row.index.stride", "10000", f"Rows of an entry of the row index, at least "
             f"{_STRIDE_MIN}; 0: no indexes."),
    Property("orc.create.index", "true", "false: no indexes."),
    Property(BLOOM_FILTER_COLUMNS, "", "The columns with a bloom filter, separated by commas; s.f "
             "is a field of a struct."),
    Property("orc.bloom.filter.fpp", "0.01", "The rate of false positives of a bloom filter."),
)  # fmt: skip
