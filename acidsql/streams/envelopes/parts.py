"""What the formats of change records share: their fields, images of rows, and order values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.types import DataType, DoubleType, FloatType, StructField, StructType, VariantType

from acidsql.errors import AnalysisError
from acidsql.storage.columns import literal, quote

TEXT = "__acidsql_text"  # a record as a text of JSON
ROOT = "__acidsql_json"  # the parsed text of a record, a VARIANT
IMAGE = "MAP<STRING, VARIANT>"  # the image of a row in a text, by names in lower case
NUMBER = "DECIMAL(38,0)"
_LONG = literal("[0-9.]{39}|[0-9.]{17}[eE]|[0-9][eE][+]?[0-9]{3}")


class Fields:
    """The fields of a record: those of its JSON text, or columns that were parsed already.

    Args:
        columns: The columns of the DataFrame; None for a text.
    """

    def __init__(self, columns: StructType | None) -> None:
        self._columns = columns
        self._texts = [TEXT] if columns is None else []

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
        """SQL of a field as a whole number from 0 on; NULL if it is none.

        Raises:
            AnalysisError: The field was parsed as a floating number, which may be a rounded one.
        """
        found = None if self._columns is None else self._find(path)
        if found is not None and isinstance(found[1], FloatType | DoubleType):
            raise AnalysisError(
                f"The records' '{'.'.join(path)}' is a {found[1].simpleString().upper()}, which "
                "rounds long numbers. Parse it as STRING.",
                condition="DATATYPE_MISMATCH", sqlstate="42K09", column=path[-1],
            )  # fmt: skip
        return whole_number(self.text(*path))

    def has_long_numbers(self) -> str:
        """SQL: whether a text has a number, or what looks like one, that Spark may have rounded.

        Spark keeps 38 digits of a number without an exponent, and of others what a DOUBLE keeps.
        """
        found = [f"coalesce({one} RLIKE {_LONG}, false)" for one in self._texts]
        return " OR ".join(found) or "false"

    def has(self, *path: str) -> str:
        """SQL: whether there is such a field, and it is not null."""
        return f"{self.text(*path)} IS NOT NULL"

    def image(self, *path: str) -> Image:
        """The image of a row in a field; an image without columns if there is no such field."""
        if self._columns is None:
            found_in_text = f"try_variant_get({ROOT}, {_json_path(path)}, 'variant')"
            return Image(lower_names(found_in_text), there=_is_there(found_in_text))
        found = self._find(path)
        if found is None:
            return Image(f"CAST(NULL AS {IMAGE})")
        sql, kind = found
        if isinstance(kind, StructType):
            return Image(sql, kind)
        text = f"CAST({sql} AS STRING)"
        self._texts.append(text)
        variant = parsed(text)
        there = f"{text} IS NOT NULL AND NOT coalesce(is_variant_null({variant}), false)"
        return Image(lower_names(variant), there=there)

    def whole(self) -> Image:
        """The whole record as the image of a row."""
        if self._columns is None:
            return Image(lower_names(ROOT), there=_is_there(ROOT))
        names = ", ".join(quote(field.name) for field in self._columns)
        return Image(f"struct({names})", self._columns)

    def _find(self, path: Sequence[str]) -> tuple[str, DataType] | None:
        kind: DataType | None = self._columns
        parts: list[str] = []
        for name in path:
            found = named(kind, name) if isinstance(kind, StructType) else None
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
        there: SQL: whether the record has something in the image's place. If it has, and ``sql`` is
            NULL, it is no image.
    """

    sql: str
    kind: StructType | None = None
    there: str = "false"

    def raw(self, column: str) -> tuple[str, DataType] | None:
        """SQL of a column's value, and its type (VARIANT in a map); None if there is none."""
        if self.kind is None:
            return f"try_element_at({self.sql}, {literal(column.lower())})", VariantType()
        field = named(self.kind, column)
        return None if field is None else (f"{self.sql}.{quote(field.name)}", field.dataType)

    def lacks(self, column: str) -> str:
        """SQL: whether the image does not tell the column's value. That is not NULL."""
        if self.kind is None:
            return f"NOT map_contains_key({self.sql}, {literal(column.lower())})"
        flag = self.raw(f"{column}_isMissing")  # of GoldenGate's Avro
        if flag is not None and flag[1].simpleString() == "boolean":
            return f"coalesce({flag[0]}, false)"
        return "false" if self.raw(column) else "true"


@dataclass(frozen=True, slots=True)
class Ends:
    """What a format's records tell of the source's transactions, as SQL over ``Fields``.

    Attributes:
        txn: The transaction of a change or of a commit point; NULL: a change that has none.
        place: The place of a change in its transaction.
        is_last: Whether a change is the last one of its transaction.
        num_records: The number of changes of the transaction.
        is_point: Whether a record that is no change is a commit point.
        fault: What a change lacks, or NULL.
    """

    txn: str
    place: str
    fault: str
    is_last: str = "CAST(NULL AS BOOLEAN)"
    num_records: str = "CAST(NULL AS BIGINT)"
    is_point: str = "false"


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
        binary: How a text has bytes: ``base64`` or ``hex``.
        ends: How the end of the source's transactions is known; None: it is not.
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
    binary: str = "base64"
    ends: Ends | None = None


def words(sql: str, known: dict[str, str]) -> str:
    """SQL that translates a format's words; NULL for other ones."""
    cases = " ".join(f"WHEN {literal(word)} THEN {literal(op)}" for word, op in known.items())
    return f"CASE {sql} {cases} END"


def order(*commit: str, is_change: str = "true", within: Sequence[str] = ()) -> str:
    """SQL of an order value. A part that is NULL counts as 0.

    Args:
        commit: The place of the transaction: of two transactions that changed one row, the later
            one has the higher place.
        is_change: SQL, false for a row of a snapshot. It comes before the changes of the
            transaction at the same place, which the snapshot has seen or not.
        within: The place of the change within its transaction.
    """
    fields = [f"CAST({part} AS {NUMBER})" for part in (*commit, *within)]
    fields.insert(len(commit), f"CASE WHEN {is_change} THEN 1 ELSE 0 END")
    named = ", ".join(f"'f{number}', coalesce({sql}, 0)" for number, sql in enumerate(fields, 1))
    return f"named_struct({named})"


def whole_number(sql: str) -> str:
    """SQL of the whole number from 0 on that a text has; NULL if it has none."""
    return f"CASE WHEN {sql} RLIKE {literal('^ *[0-9]{1,38} *$')} THEN CAST({sql} AS {NUMBER}) END"


def file_number(sql: str) -> str:
    """SQL of the number of a binary log of MySQL's: ``binlog.000012`` → 12."""
    return whole_number(f"regexp_extract({sql}, {literal('([0-9]+)$')}, 1)")


def hexadecimal(sql: str) -> str:
    """SQL of the number of a place in a log: ``00000027:00000ac0:0002``, ``0x00009a.0000e04c.10``.

    The parts have 32, 32 and 16 bits. NULL if it is no such place.
    """
    lower = f"trim(lower({sql}))"
    form = literal("^(0x)?[0-9a-f]{1,8}[:.][0-9a-f]{1,8}[:.][0-9a-f]{1,4}$")
    digits = f"split(replace({lower}, '0x', ''), '[:.]')"

    def part(number: int, factor: int) -> str:
        value = f"CAST(conv(try_element_at({digits}, {number}), 16, 10) AS DECIMAL(10,0))"
        return f"{value} * CAST({factor} AS DECIMAL(16,0))"

    total = f"{part(1, 1 << 48)} + {part(2, 1 << 16)} + {part(3, 1)}"
    return f"CASE WHEN {lower} RLIKE {form} THEN CAST({total} AS {NUMBER}) END"


def parsed(text: str) -> str:
    """SQL of the VARIANT of a text of JSON; NULL if the text is not exactly one value of JSON.

    Spark's parser ignores what follows the first value, and replaces bytes that are no UTF-8.
    """
    end, second = literal(',"end"]'), literal("$[1]")
    is_one = f"get_json_object(concat('[', {text}, {end}), {second}) = 'end'"
    return f"CASE WHEN is_valid_utf8({text}) AND {is_one} THEN try_parse_json({text}) END"


def named(struct: StructType, name: str) -> StructField | None:
    """The field of a name, whatever the case; None if there is none.

    Raises:
        AnalysisError: There are two.
    """
    found = [one for one in struct if one.name.lower() == name.lower()]
    if len(found) > 1:
        raise AnalysisError(
            f"The records have the columns {', '.join(one.name for one in found)}, which differ in "
            "case only. Leave out all but one of them by select(…).",
            condition="AMBIGUOUS_REFERENCE", sqlstate="42704", column=name,
        )  # fmt: skip
    return found[0] if found else None


def lower_names(variant: str) -> str:
    """SQL of the map of an object in JSON, by names in lower case.

    NULL if it is no object, or if two of its names differ in case only.
    """
    given = f"try_cast({variant} AS {IMAGE})"
    names = f"transform(map_keys({given}), k -> lower(k))"
    lower = f"transform_keys({given}, (k, v) -> lower(k))"
    return f"CASE WHEN size(array_distinct({names})) = size({given}) THEN {lower} END"


def _is_there(variant: str) -> str:
    return f"{variant} IS NOT NULL AND NOT is_variant_null({variant})"


def _json_path(path: Sequence[str]) -> str:
    return literal("$" + "".join(f'["{name}"]' for name in path))
