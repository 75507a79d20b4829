"""What the formats of change records share: their fields, images of rows, and order values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.types import DataType, StructType, VariantType

from acidsql.storage.columns import literal, quote

TEXT = "__acidsql_text"  # a record as a text of JSON
ROOT = "__acidsql_json"  # the parsed text of a record, a VARIANT
IMAGE = "MAP<STRING, VARIANT>"  # the image of a row in a text, by names in lower case
NUMBER = "DECIMAL(38,0)"


class Fields:
    """The fields of a record: those of its JSON text, or columns that were parsed already.

    Args:
        columns: The columns of the DataFrame; None for a text.
    """

    def __init__(self, columns: StructType | None) -> None:
        self._columns = columns

    @property
    def is_text(self) -> bool:
        """Whether the records are texts."""
        return self._columns is None

    def text(self, *path: str) -> str:
        """SQL of a field as a text; NULL if there is none."""
        if self._columns is None:
            return f"try_variant_get({ROOT}, {_json_path(path)}, 'string')"
        found = self._find(path)
        return "CAST(NULL AS STRING)" if found is None else f"CAST({found[0]} AS STRING)"

    def number(self, *path: str) -> str:
        """SQL of a field as a whole number; NULL if it is none."""
        return f"try_cast({self.text(*path)} AS {NUMBER})"

    def has(self, *path: str) -> str:
        """SQL: whether there is such a field, and it is not null."""
        return f"{self.text(*path)} IS NOT NULL"

    def image(self, *path: str) -> Image:
        """The image of a row in a field; an image without columns if there is no such field."""
        if self._columns is None:
            return Image(_image_of(f"try_variant_get({ROOT}, {_json_path(path)}, 'variant')"))
        found = self._find(path)
        if found is None:
            return Image(f"CAST(NULL AS {IMAGE})")
        sql, kind = found
        if isinstance(kind, StructType):
            return Image(sql, kind)
        return Image(_image_of(f"try_parse_json(CAST({sql} AS STRING))"))

    def whole(self) -> Image:
        """The whole record as the image of a row."""
        if self._columns is None:
            return Image(_image_of(ROOT))
        names = ", ".join(quote(field.name) for field in self._columns)
        return Image(f"struct({names})", self._columns)

    def _find(self, path: Sequence[str]) -> tuple[str, DataType] | None:
        kind: DataType | None = self._columns
        parts: list[str] = []
        for name in path:
            fields = kind.fields if isinstance(kind, StructType) else []
            found = next((one for one in fields if one.name.lower() == name.lower()), None)
            if found is None:
                return None
            parts.append(quote(found.name))
            kind = found.dataType
        assert kind is not None
        return ".".join(parts), kind


@dataclass(frozen=True, slots=True)
class Image:
    """The image of a row.

    Attributes:
        sql: A struct, or a map by names in lower case. NULL: there is no image.
        kind: The struct's type; None for a map.
    """

    sql: str
    kind: StructType | None = None

    def raw(self, column: str) -> tuple[str, DataType] | None:
        """SQL of a column's value, and its type (VARIANT in a map); None if there is none."""
        if self.kind is None:
            return f"try_element_at({self.sql}, {literal(column.lower())})", VariantType()
        for field in self.kind:
            if field.name.lower() == column.lower():
                return f"{self.sql}.{quote(field.name)}", field.dataType
        return None

    def lacks(self, column: str) -> str:
        """SQL: whether the image does not tell the column's value. That is not NULL."""
        if self.kind is None:
            return f"NOT map_contains_key({self.sql}, {literal(column.lower())})"
        flag = self.raw(f"{column}_isMissing")  # of GoldenGate's Avro
        if flag is not None and flag[1].simpleString() == "boolean":
            return f"coalesce({flag[0]}, false)"
        return "false" if self.raw(column) else "true"


@dataclass(frozen=True, slots=True)
class Envelope:
    """A format's records, as SQL over ``Fields``.

    Attributes:
        op: ``insert``, ``update``, ``delete``, ``truncate``, or ``snapshot`` (a row that was there
            when the feed began); ``''`` for what is no change; NULL for anything else.
        before: The row before the change, at least the columns that it tells.
        after: The row after the change.
        sequence: The order value. All records of a key must have comparable ones.
        table: The changed table.
        txn: The transaction of the source, or NULL.
        fault: What is wrong with a record, or NULL.
        same: The image with the old values of the columns that ``before`` lacks.
        unavailable: The text that stands for a value that the tool does not know; "" if none does.
        days: Whether a whole number for a DATE is the days since 1970.
    """

    op: str
    before: Image
    after: Image
    sequence: str
    table: str
    txn: str
    fault: str = "CAST(NULL AS STRING)"
    same: Image | None = None
    unavailable: str = ""
    days: bool = False


def words(sql: str, known: dict[str, str]) -> str:
    """SQL that translates a format's words; NULL for other ones."""
    cases = " ".join(f"WHEN {literal(word)} THEN {literal(op)}" for word, op in known.items())
    return f"CASE {sql} {cases} END"


def order(*parts: str, is_change: str = "true") -> str:
    """SQL of an order value. A part that is NULL counts as 0.

    ``is_change``: SQL, false for a row of a snapshot. It comes before changes at the same place.
    """
    fields = [f"coalesce(CAST({part} AS {NUMBER}), 0)" for part in parts]
    fields.append(f"CASE WHEN {is_change} THEN 1 ELSE 0 END")
    named = ", ".join(f"'f{number}', {sql}" for number, sql in enumerate(fields, 1))
    return f"named_struct({named})"


def file_number(sql: str) -> str:
    """SQL of the number of a binary log of MySQL's: ``binlog.000012`` → 12."""
    return f"try_cast(regexp_extract({sql}, '([0-9]+)$', 1) AS {NUMBER})"


def hexadecimal(sql: str) -> str:
    """SQL of the number of a place in a log: ``00000027:00000ac0:0002``, ``0x00009a.0000e04c.10``.

    The parts have 32, 32 and 16 bits.
    """
    digits = f"split(replace(lower({sql}), '0x', ''), '[:.]')"

    def part(number: int, factor: int) -> str:
        value = f"CAST(conv(trim(try_element_at({digits}, {number})), 16, 10) AS DECIMAL(10,0))"
        return f"{value} * CAST({factor} AS DECIMAL(16,0))"

    return f"CAST({part(1, 1 << 48)} + {part(2, 1 << 16)} + {part(3, 1)} AS {NUMBER})"


def _json_path(path: Sequence[str]) -> str:
    return literal("$" + "".join(f'["{name}"]' for name in path))


def _image_of(variant: str) -> str:
    return f"transform_keys(try_cast({variant} AS {IMAGE}), (k, v) -> lower(k))"
