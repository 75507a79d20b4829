"""Values of old files as values of a column's present type, if the type was changed since.

They are what Hive's reader shows, ORC's ``ConvertTreeReaderFactory``: a number, day or time that
became a text; a text that became shorter, or a DOUBLE; a number that became a FLOAT or DOUBLE.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidsql.acid.values.evolution import TEXTS
from acidsql.acid.values.types import HiveType

_EXPONENTS = range(-3, 7)  # Java writes such numbers without an exponent
_BLANKS = "".join(map(chr, range(ord(" ") + 1)))  # what Java's String.trim takes away
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<word>NaN|Infinity)"
    r"|(?P<plain>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?"
    r"|(?P<hex>0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)"
)


def cast_values(
    array: pa.Array, target: HiveType, arrow_target: pa.DataType, file_type: HiveType | None
) -> pa.Array:
    """Convert values of a file to a column's present type, as Hive's reader shows them.

    Texts are cut to a CHAR's or VARCHAR's length, and those of a CHAR lose the blanks at their end
    in another type of text. What is no number becomes NULL in a FLOAT or DOUBLE. For all other
    types Arrow casts the values. If the type is the same, ``array`` itself is returned.

    Args:
        array: The values.
        target: The type of the table's column.
        arrow_target: The same type in Arrow.
        file_type: The type of the file's column; None if only Arrow's type is known.

    Raises:
        ArrowInvalid, ArrowNotImplementedError: There is no such conversion, or a value does not
            fit.
    """
    if file_type == target and array.type == arrow_target:
        return array
    if target.kind in TEXTS:
        is_padded = file_type is not None and file_type.kind == "char" and target.kind != "char"
        text = _as_text(array)
        return _truncate_texts(pc.utf8_rtrim(text, characters=" ") if is_padded else text, target)
    if target.kind in ("float", "double"):
        return _as_double(array).cast(arrow_target, safe=False)
    return array if array.type == arrow_target else array.cast(arrow_target)


def _as_text(array: pa.Array) -> pa.Array:
    """Convert values to texts as Hive shows them: TRUE or FALSE, a FLOAT or DOUBLE as Java writes
    the DOUBLE of its value (so the FLOAT 0.1 has 17 digits; NaN becomes NULL), a DECIMAL without
    zeros at the end of its fraction, days and timestamps; other types as Arrow casts them.
    """
    kind = array.type
    if pa.types.is_boolean(kind):
        return pc.if_else(array, "TRUE", "FALSE")
    if pa.types.is_floating(kind):
        return _converted_values(array, java_text, pa.string())
    if pa.types.is_decimal(kind):
        return _converted_values(array, _decimal_text, pa.string())
    if pa.types.is_date32(kind):
        return _moment_text(array, pa.int32(), "D")
    if pa.types.is_timestamp(kind):
        return _moment_text(array, pa.int64(), "us")
    return array if pa.types.is_string(kind) else array.cast(pa.string())


def _as_double(array: pa.Array) -> pa.Array:
    """Convert values to DOUBLE; true is 1, and a text that is no number of Java's becomes NULL.
    Raises ArrowNotImplementedError for days and timestamps.
    """
    kind = array.type
    if pa.types.is_string(kind):
        return _converted_values(array, parse_double, pa.float64())
    if pa.types.is_decimal(kind):
        return _converted_values(
            array, float, pa.float64()
        )  # Arrow's own cast does not round to the nearest
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    if pa.types.is_temporal(kind):
        raise pa.ArrowNotImplementedError(f"no reader shows {kind} as a number")
    return array.cast(pa.float64(), safe=False)


def _converted_values(
    array: pa.Array, convert: Callable[[Any], Any], kind: pa.DataType
) -> pa.Array:
    """Return an array of type ``kind`` with the result of ``convert`` for each value; NULL stays
    NULL.
    """
    values = array.to_pylist()
    return pa.array([None if value is None else convert(value) for value in values], kind)


def _truncate_texts(array: pa.Array, target: HiveType) -> pa.Array:
    """Return texts cut to the length of a CHAR or VARCHAR, in characters; for a STRING the texts
    themselves.
    """
    if not target.parameters or (pc.max(pc.utf8_length(array)).as_py() or 0) <= (
        length := target.parameters[0]
    ):
        return array
    return pc.utf8_slice_codeunits(array, 0, length)


def _decimal_text(value: Decimal) -> str:
    """Return a DECIMAL as text, without an exponent or zeros at the end of its fraction."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _moment_text(array: pa.Array, number: pa.DataType, unit: str) -> pa.Array:
    """Return days or microseconds since 1970 as texts, ``2020-01-31`` or ``2020-01-31 12:00:00.5``;
    a fraction of a second ends with its last digit that is no 0. NULL stays NULL.

    ``number``: Arrow's integer type of the values; ``unit``: numpy's, ``D`` or ``us``.
    """
    numbers = array.cast(number).fill_null(0).to_numpy().astype(np.int64)
    texts = np.datetime_as_string(numbers.view(f"datetime64[{unit}]")).tolist()
    valid = array.is_valid().to_pylist()
    return pa.array(
        [
            _padded_moment(text) if is_valid else None
            for text, is_valid in zip(texts, valid, strict=True)
        ],
        pa.string(),
    )


def _padded_moment(text: str) -> str:
    """Turn numpy's text of a day or moment into Java's: a blank for ``T``, four digits for the
    year, ``+`` before a longer year, no zeros at the end of a fraction.
    """
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    year, _, rest = text.removeprefix("-").partition("-")
    sign = "-" if text[0] == "-" else "+" if len(year) > len("9999") else ""
    return f"{sign}{year.zfill(4)}-{rest.replace('T', ' ')}"


def java_text(value: float) -> str | None:
    """Return a DOUBLE as ``Double.toString`` of Java 19 and newer writes it: the fewest digits that
    tell it from its neighbours. From 0.001 to below 10**7 it is like ``12.0``, otherwise like
    ``1.2E10``; ``-0.0`` and ``Infinity`` are written so. None for NaN, which Hive shows as NULL.
    """
    if value != value:
        return None
    sign = "-" if str(value)[0] == "-" else ""
    if value in (0.0, np.inf, -np.inf):
        return sign + ("Infinity" if value else "0.0")
    value = abs(value)
    shortest = Decimal(repr(value))
    digits, exponent = _digits(shortest), shortest.adjusted()
    if len(digits) == 1:
        # Java writes at least two digits. If the second is not 0, they may be nearer.
        two = Decimal(f"{value:.1e}")
        if float(two) == value:
            digits, exponent = _digits(two), two.adjusted()
    if exponent not in _EXPONENTS:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    integer_digits = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{sign}{integer_digits}.{digits[exponent + 1 :] or '0'}"


def _digits(value: Decimal) -> str:
    """Return a number's digits without sign, point, or zeros at the end."""
    return "".join(map(str, value.as_tuple().digits)).rstrip("0")


def parse_double(text: str) -> float | None:
    """Return the value that ``Double.parseDouble`` of Java gives a text; None if Java would refuse
    the text. Blanks around the number do not count; ``1e3``, ``1.5f``, ``NaN``, ``Infinity`` and
    hexadecimal numbers are numbers, too.
    """
    parts = _NUMBER.fullmatch(text.strip(_BLANKS))
    if parts is None:
        return None
    if parts["hex"]:
        try:
            value = float.fromhex(parts["hex"])
        except OverflowError:
            value = float("inf")
    else:
        value = float(parts["word"] or parts["plain"])
    return -value if parts["sign"] == "-" else value
