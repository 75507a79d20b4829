"""A table's data columns in Arrow: their types, and the conversion of arrays into these types.

Timestamps are wall clocks: Arrow ``timestamp[us]`` without a zone. CHAR and VARCHAR are strings
in Arrow; their lengths are declared in the ORC footer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, zip_longest

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acidsql.acid import event
from acidsql.acid.values.evolution import has_no_cast
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.errors import FormatError, UnsupportedError, WriteError
from acidsql.storage.orc.casts import cast_values
from acidsql.storage.orc.encoding.footer import CALENDAR_PROLEPTIC

_PLAIN = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
_Int32s = npt.NDArray[np.int32]

FIRST_GREGORIAN = -141_427  # 1582-10-15, in days since 1970-01-01
_DAY = 86_400_000_000  # microseconds
CALENDAR_JULIAN_DATES = -1  # of old Parquet files: dates are hybrid, timestamps proleptic
_JULIAN_EPOCH = 719_470  # days from 0000-03-01 (Julian) to 1970-01-01


def arrow_type(hive_type: str | HiveType) -> pa.DataType:
    """Return the Arrow type of Hive's type, or of its text.

    Raises:
        FormatError: The text is of no type that is supported.
        KeyError: The HiveType is of a kind that has no type in Arrow, as UNIONTYPE.
    """
    node = parse_type(hive_type) if isinstance(hive_type, str) else hive_type
    if node.kind == "decimal":
        return pa.decimal128(*node.parameters)
    if node.kind == "array":
        return pa.list_(arrow_type(node.children[0]))
    if node.kind == "map":
        return pa.map_(arrow_type(node.children[0]), arrow_type(node.children[1]))
    if node.kind == "struct":
        children = (arrow_type(child) for child in node.children)
        return pa.struct([pa.field(n, t) for n, t in zip(node.names, children, strict=True)])
    return _PLAIN[node.kind]


@dataclass(frozen=True)
class RowSchema:
    """A table's data columns, in order; small, and safe to pickle.

    Attributes:
        names: The names in the metastore.
        types: Hive's type texts.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]

    @classmethod
    def from_fields(cls, fields: Iterable[tuple[str, str]]) -> RowSchema:
        """Make a schema from pairs of a name and Hive's type text."""
        pairs = tuple(fields)
        return cls(tuple(name for name, _ in pairs), tuple(text for _, text in pairs))

    def __reduce__(self) -> tuple[object, ...]:
        return RowSchema, (self.names, self.types)  # without the cached properties

    @cached_property
    def hive(self) -> HiveType:
        """The columns as one struct of Hive."""
        children = tuple(parse_type(text) for text in self.types)
        return HiveType("struct", children=children, names=self.names)

    @cached_property
    def struct(self) -> pa.StructType:
        """The columns as one Arrow struct."""
        return arrow_type(self.hive)

    @property
    def arrow(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return pa.schema(list(self.struct))

    def event_type(self) -> HiveType:
        """Return Hive's type of an event: a struct of five columns and ``row``, the user's
        columns.
        """
        kinds = ("int", "bigint", "int", "bigint", "bigint")
        children = (*(HiveType(kind) for kind in kinds), self.hive)
        return HiveType("struct", children=children, names=event.EVENT_COLUMNS)

    def conform_for_writing(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Cast each array to the Arrow type of the table's column at the same position. CHAR
        values, nested ones too, are padded with blanks to their length. No value is cut: whether a
        CHAR or VARCHAR is too long is not checked, because the caller's SQL has done so.

        Raises:
            WriteError: The number of columns is wrong, Arrow cannot cast a value, or a timestamp's
                type has a time zone.
        """
        if len(columns) != len(self.names):
            raise WriteError(f"{len(columns)} columns given for {len(self.names)} of the table")
        converted = []
        for name, node, array in zip(self.names, self.hive.children, columns, strict=True):
            try:
                converted.append(_conform_array(array, node, arrow_type(node)))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise WriteError(f"column '{name}' cannot be written: {error}") from error
        return converted


def _conform_array(array: pa.Array, hive_type: HiveType, arrow_target: pa.DataType) -> pa.Array:
    """Cast an array, nested values too, to the Arrow type of a Hive type, and pad CHAR values.
    Lengths are not checked.

    Raises ArrowInvalid if a value does not fit, or a timestamp's type, nested too, has a zone, and
    ArrowNotImplementedError if there is no such cast.
    """
    if _has_zone(array.type):
        raise pa.ArrowInvalid("a timestamp with a zone is no wall clock")
    if array.type != arrow_target:
        array = array.cast(arrow_target)
    if hive_type.kind == "char":
        # ORC's own CharTreeWriter pads, too: Hive compares statistics with padded literals.
        return pc.utf8_rpad(pc.utf8_rtrim(array, characters=" "), hive_type.parameters[0], " ")
    if not hive_type.children:
        return array
    offsets, parts = exact_children(array)
    children = zip(parts, hive_type.children, strict=True)
    converted = [_conform_array(part, child, part.type) for part, child in children]
    return nested_array(array.is_null(), offsets, converted, arrow_target)


def _has_zone(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is not None
    return any(_has_zone(kind.field(i).type) for i in range(kind.num_fields))


def exact_children(array: pa.Array) -> tuple[_Int32s | None, list[pa.Array]]:
    """Return the offsets of a list or map (from 0; None for a struct), and the child arrays: the
    elements, the keys and values, or the fields. Elements, keys and values below a null are left
    out; fields below a null are NULL.

    In Arrow, values below a null are undefined. But Arrow's ORC writer stores these values, and so
    shifts all later values of the column: silently wrong data (seen with pyarrow 26 for any null
    struct within a struct).
    """
    if isinstance(array, pa.StructArray):
        return None, list(array.flatten())  # null where the struct is null
    parts = [array.keys, array.items] if isinstance(array, pa.MapArray) else [array.values]
    if not len(array):  # Spark 4.1 leaves the offsets of an empty array undefined
        return np.zeros(1, np.int32), [part.slice(0, 0) for part in parts]
    offsets = array.offsets.to_numpy()
    starts, lengths = offsets[:-1], np.diff(offsets)
    if array.null_count:
        lengths[array.is_null().to_numpy(zero_copy_only=False)] = 0
    exact = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    if exact[-1] == offsets[-1] - offsets[0]:
        return exact, [part.slice(offsets[0], exact[-1]) for part in parts]
    indices = np.repeat(starts - exact[:-1], lengths) + np.arange(exact[-1])
    return exact, [part.take(pa.array(indices)) for part in parts]


def nested_array(
    nulls: pa.Array, offsets: _Int32s | None, parts: list[pa.Array], target: pa.DataType
) -> pa.Array:
    """Make a struct, list or map of type ``target`` from offsets and child arrays, in the form in
    which ``exact_children`` returns them.

    ``nulls``: a boolean array, true where the value is NULL. ``offsets``: None for a struct.
    """
    if offsets is None:
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=nulls)
    mask = nulls if nulls.true_count else None
    if pa.types.is_map(target):
        return pa.MapArray.from_arrays(pa.array(offsets), *parts, type=target, mask=mask)
    return pa.ListArray.from_arrays(pa.array(offsets), *parts, type=target, mask=mask)


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def conform(
    row: pa.StructArray, schema: RowSchema, calendar: int, file_types: Sequence[HiveType] = ()
) -> pa.StructArray:
    """Convert rows that were read from a file to the table's types, as Hive 4 does.

    Columns are matched by position; fields of structs within them by name, ignoring case. Missing
    columns and fields are null, surplus ones are left out. Timestamps are cut to microseconds. If a
    file is not declared proleptic, its days before 1582-10-15 are taken as Julian days, and become
    the proleptic days of the same date; days of timestamps, too, but for ``CALENDAR_JULIAN_DATES``.
    Values of another type are converted, see ``casts``.

    Args:
        row: The rows from Arrow's ORC reader.
        schema: The table's columns.
        calendar: The calendar in the file's footer, or ``CALENDAR_JULIAN_DATES``.
        file_types: The types of the file's columns, by position, as far as they are known.

    Raises:
        FormatError: A value does not fit the table's type, or a struct's fields cannot be matched.
        UnsupportedError: Nobody reads values of the file's type as values of the table's.
    """
    _, parts = exact_children(row)
    parts += [pa.nulls(len(row))] * (len(schema.names) - len(parts))
    columns = []
    columns_with_types = zip_longest(schema.names, schema.hive.children, parts, file_types)
    for name, node, part, kind in islice(columns_with_types, len(schema.names)):
        try:
            columns.append(_conform_values(part, node, calendar, kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            if kind is not None and has_no_cast(kind, node):
                raise _type_changed_error(name, kind, node) from None
            raise FormatError(f"column '{name}' cannot be read: {error}") from error
    return nested_array(row.is_null(), None, columns, schema.struct)


def _type_changed_error(name: str, old: HiveType, new: HiveType) -> UnsupportedError:
    """Return the error for an old version of the table whose column has values of a type that it
    had then.
    """
    return UnsupportedError(
        f"The column '{name}' has values of type {str(old).upper()} in this version of the table, "
        f"and they cannot be read as {str(new).upper()}, the type that the column got since. "
        "Nothing is damaged: versions since the files were written anew can be read.",
        condition="UNSUPPORTED_FEATURE.CHANGED_TYPE",
    )


def _conform_values(
    array: pa.Array, target: HiveType, calendar: int, file_type: HiveType | None = None
) -> pa.Array:
    """Convert values of a file, nested ones too, to the table's type. Fields of structs are matched
    by name; missing ones are null, surplus ones are left out. ``file_type``: None if it is unknown,
    and for parts of a nested value.

    Raises ArrowInvalid, ArrowNotImplementedError or FormatError if values or fields do not fit.
    """
    if not target.children or not pa.types.is_nested(array.type):
        return _conform_leaf(array, target, calendar, file_type)
    offsets, parts = exact_children(array)
    if target.kind == "struct":
        parts = [*parts, pa.nulls(len(array))]  # the last array (index -1) is for missing fields
        parts = [parts[i] for i in _field_places(target, array.type)]
    pairs = zip(parts, target.children, strict=True)
    columns = [_conform_values(part, kind, calendar) for part, kind in pairs]
    return nested_array(array.is_null(), offsets, columns, arrow_type(target))


def _field_places(target: HiveType, file_struct: pa.StructType) -> list[int]:
    """Return the position of each of the table's fields in a struct of a file; -1 for a missing
    field. Names are compared without case. Raises FormatError if a name fits two fields, or all are
    missing.
    """
    places = places_of_fields(target.names, [field.name for field in file_struct])
    return [-1 if place is None else place for place in places]


def places_of_fields(names: Sequence[str], own_names: Sequence[str]) -> list[int | None]:
    """Return the position of each of ``names`` (a table's fields) among ``own_names``, the fields
    of a file's struct; None for a missing field.

    Names are compared without case, as in ORC's own reader.

    Raises:
        FormatError: A name fits two fields, or all fields are missing from a struct that has some.
    """
    lowered = [name.lower() for name in own_names]
    for name in names:
        if lowered.count(name.lower()) > 1:
            namesakes = [
                f"'{own_name}'" for own_name in own_names if own_name.lower() == name.lower()
            ]
            raise FormatError(f"a struct has several fields for '{name}': {', '.join(namesakes)}")
    places = [lowered.index(n.lower()) if n.lower() in lowered else None for n in names]
    if own_names and set(places) == {None}:
        raise FormatError(
            f"a struct has the fields {', '.join(own_names)}, none of the table's "
            f"{', '.join(names)}"
        )
    return places


def _conform_leaf(
    array: pa.Array, target: HiveType, calendar: int, file_type: HiveType | None
) -> pa.Array:
    """Convert values of a file that are not nested: days to the proleptic calendar, unless the file
    has it; timestamps to microseconds and to this calendar, unless the file or its timestamps have
    it; then all values as ``casts.cast_values`` does. Values of Arrow's type null become NULLs.

    Raises ArrowInvalid or ArrowNotImplementedError if there is no such conversion.
    """
    kind = arrow_type(target)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    if pa.types.is_date32(array.type) and calendar != CALENDAR_PROLEPTIC:
        array = _to_proleptic_days(array)
    if pa.types.is_timestamp(array.type):
        array = _to_microseconds(array)
        if calendar not in (CALENDAR_PROLEPTIC, CALENDAR_JULIAN_DATES):
            array = to_proleptic_timestamps(array)
    return cast_values(array, target, kind, file_type)


def _to_proleptic_days(array: pa.Array) -> pa.Array:
    """Convert days of the hybrid calendar to days of the same *name* in the proleptic calendar.
    Days from 1582-10-15 on stay.
    """
    days = array.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
    old = days < FIRST_GREGORIAN
    if not old.any():
        return array
    days[old] = _rename_julian(days[old])
    mask = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(days.astype(np.int32), mask=mask).cast(pa.date32())


def _to_microseconds(array: pa.Array) -> pa.Array:
    """Convert timestamps of any unit to Arrow's ``timestamp[us]``; nanoseconds are rounded down.
    Raises ArrowInvalid if their type has a time zone, or one does not fit.
    """
    if array.type.tz is not None:
        raise pa.ArrowInvalid("TIMESTAMP WITH LOCAL TIME ZONE is not supported")
    if array.type.unit == "ns":
        array = pc.floor_temporal(array, unit="microsecond")
    return array.cast(pa.timestamp("us"))


def to_proleptic_timestamps(array: pa.Array) -> pa.Array:
    """Convert timestamps of the hybrid calendar to those of the same date and time in the proleptic
    one. Those from 1582-10-15 on stay.
    """
    micros = array.cast(pa.int64()).fill_null(0).to_numpy()
    days, time = np.divmod(micros, _DAY)
    old = days < FIRST_GREGORIAN
    if not old.any():
        return array
    days[old] = _rename_julian(days[old])
    mask = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(days * _DAY + time, mask=mask).cast(pa.timestamp("us"))


def _rename_julian(days: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return, for each day (since 1970) of the Julian calendar, the Gregorian day of the same date.

    Years begin on 1 March here, so that the leap day is the last day of a year.
    """
    since = days + _JULIAN_EPOCH
    cycle, rest = np.divmod(since, 1461)  # four Julian years
    year = np.minimum(rest // 365, 3)
    day_of_year = rest - year * 365
    year = year + cycle * 4
    leap_days = year // 4 - year // 100 + year // 400
    gregorian_epoch = 719_468  # days from 0000-03-01 (Gregorian) to 1970-01-01
    renamed: npt.NDArray[np.int64] = year * 365 + leap_days + day_of_year - gregorian_epoch
    return renamed
