"""What the formats of change records share: their fields, images of rows, and order values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.types import DataType, DoubleType, FloatType, StructField, StructType, VariantType

from acidsql.errors import AnalysisError
from acidsql.storage.columns import literal, quote

TEXT = "__acidsql_text"  # the column with a record as a text of JSON
ROOT = "__acidsql_json"  # the column with the parsed text of a record, a VARIANT
IMAGE = "MAP<STRING, VARIANT>"  # the image of a row in a text, by names in lower case
NUMBER = "DECIMAL(38,0)"
_LONG = literal("[0-9.]{39}|[0-9.]{17}[eE]|[0-9][eE][+]?[0-9]{3}")


class RecordFields:
    """Makes SQL of the fields of a record: those of its JSON text, or columns that were parsed
    already.

    The methods that take a path raise AnalysisError if two fields of a parsed record have a name of
    the path in different cases.

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
        """Return SQL of a field as a text; NULL if the record lacks the field. ``path``: the names
        of the fields around it, then its own."""
        if self._columns is None:
            return f"try_variant_get({ROOT}, {_json_path(path)}, 'string')"
        column = self._find_column(path)
        return "CAST(NULL AS STRING)" if column is None else f"CAST({column[0]} AS STRING)"

    def number(self, *path: str) -> str:
        """Return SQL of a field as a whole number from 0 on; NULL if the field has another value.

        Raises:
            AnalysisError: The field was parsed as a floating number, which may be a rounded one.
        """
        column = None if self._columns is None else self._find_column(path)
        if column is not None and isinstance(column[1], FloatType | DoubleType):
            raise AnalysisError(
                f"The records' '{'.'.join(path)}' is a {column[1].simpleString().upper()}, which "
                "rounds long numbers. Parse it as STRING.",
                condition="DATATYPE_MISMATCH", sqlstate="42K09", column=path[-1],
            )  # fmt: skip
        return whole_number(self.text(*path))

    def has_long_numbers_sql(self) -> str:
        """Return SQL that is true if the record's text, or a text of an image that was asked for so
        far, has what looks like a number that Spark may round.

        Spark keeps 38 digits of a number without an exponent. A number with an exponent is kept as
        a DOUBLE.
        """
        conditions = [f"coalesce({text} RLIKE {_LONG}, false)" for text in self._texts]
        return " OR ".join(conditions) or "false"

    def has_sql(self, *path: str) -> str:
        """Return SQL that is true if the record has the field, and the field is not null."""
        return f"{self.text(*path)} IS NOT NULL"

    def image(self, *path: str) -> RowImage:
        """Return the image of a row that a field has, with a struct or a JSON object; an image that
        is always NULL if there is no such field. A text of JSON in a parsed record is noted for
        ``has_long_numbers_sql``."""
        if self._columns is None:
            field_sql = f"try_variant_get({ROOT}, {_json_path(path)}, 'variant')"
            return RowImage(image_by_lower_names(field_sql), is_present=_is_present_sql(field_sql))
        column = self._find_column(path)
        if column is None:
            return RowImage(f"CAST(NULL AS {IMAGE})")
        sql, kind = column
        if isinstance(kind, StructType):
            return RowImage(sql, kind)
        text = f"CAST({sql} AS STRING)"
        self._texts.append(text)
        variant = parsed_json(text)
        is_present = f"{text} IS NOT NULL AND NOT coalesce(is_variant_null({variant}), false)"
        return RowImage(image_by_lower_names(variant), is_present=is_present)

    def record_image(self) -> RowImage:
        """Return the image of a row whose columns are the fields of the record itself."""
        if self._columns is None:
            return RowImage(image_by_lower_names(ROOT), is_present=_is_present_sql(ROOT))
        names = ", ".join(quote(field.name) for field in self._columns)
        return RowImage(f"struct({names})", self._columns)

    def _find_column(self, path: Sequence[str]) -> tuple[str, DataType] | None:
        """Return SQL and type of the column, or nested field, of a parsed record with this path,
        whatever the case; None if the record lacks it. Raise AnalysisError if two fields have a
        name of the path."""
        kind: DataType | None = self._columns
        parts: list[str] = []
        for name in path:
            field = find_field(kind, name) if isinstance(kind, StructType) else None
            if field is None:
                return None
            parts.append(quote(field.name))
            kind = field.dataType
        assert kind is not None
        return ".".join(parts), kind


@dataclass(frozen=True, slots=True)
class RowImage:
    """The image of a row.

    Attributes:
        sql: SQL of a struct, or of a map by names in lower case. NULL: there is no image.
        kind: The struct's type; None for a map.
        is_present: SQL that is true if the record has any value in the image's place. If ``sql`` is
            NULL then, the value is no image of a row.
    """

    sql: str
    kind: StructType | None = None
    is_present: str = "false"

    def raw_value(self, column: str) -> tuple[str, DataType] | None:
        """Return SQL of a column's value in the image, not yet converted to the column's type, and
        the value's own type; the name may be in any case.

        In a map every value is a VARIANT, NULL for a missing name. None if the image is a struct
        without the column.

        Raises:
            AnalysisError: Two fields of the struct have the name.
        """
        if self.kind is None:
            return f"try_element_at({self.sql}, {literal(column.lower())})", VariantType()
        field = find_field(self.kind, column)
        return None if field is None else (f"{self.sql}.{quote(field.name)}", field.dataType)

    def lacks_column_sql(self, column: str) -> str:
        """Return SQL that is true if the image leaves the column out; NULL for a map that is NULL.
        Of a struct, GoldenGate's flag ``…_isMissing`` alone tells, if its type has the flag, or
        else whether its type has the column. A NULL in the image is a value.

        Raises:
            AnalysisError: Two fields of the struct have the name.
        """
        if self.kind is None:
            return f"NOT map_contains_key({self.sql}, {literal(column.lower())})"
        flag = self.raw_value(f"{column}_isMissing")  # of GoldenGate's Avro
        if flag is not None and flag[1].simpleString() == "boolean":
            return f"coalesce({flag[0]}, false)"
        return "false" if self.raw_value(column) else "true"


@dataclass(frozen=True, slots=True)
class Ends:
    """What a format's records say about the source's transactions, as SQL over ``RecordFields``.

    Attributes:
        txn: The transaction of a change or of a commit point; NULL: a change without a transaction.
        place: The place of a change in its transaction.
        is_last: Whether a change is the last change of its transaction.
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
    """A format's records, as SQL over ``RecordFields``.

    Attributes:
        op: ``insert``, ``update``, ``delete``, ``truncate``, or ``snapshot`` (a row that was there
            when the feed began); ``''`` for what is no change; NULL for anything else.
        before: The row before the change, as far as the record has its columns.
        after: The row after the change.
        sequence: The order value. All records of a key must have comparable ones.
        table: The changed table.
        txn: The transaction of the source, or NULL.
        fault: What is wrong with a record, or NULL.
        same: The image with the old values of the columns that ``before`` lacks.
        unavailable: The text that stands for a value that the tool does not know; "" if the format
            has no such text.
        days: Whether a whole number for a DATE is the days since 1970.
        binary: The encoding of bytes as a text: ``base64`` or ``hex``.
        ends: How the end of the source's transactions is known; None: it is not known.
    """

    op: str
    before: RowImage
    after: RowImage
    sequence: str
    table: str
    txn: str
    fault: str = "CAST(NULL AS STRING)"
    same: RowImage | None = None
    unavailable: str = ""
    days: bool = False
    binary: str = "base64"
    ends: Ends | None = None


def operation_sql(word: str, operations: dict[str, str]) -> str:
    """Return SQL of the operation (see ``Envelope.op``) that a format's word means.

    Args:
        word: SQL of the word.
        operations: The operation of each word. An unknown word becomes NULL.
    """
    cases = " ".join(f"WHEN {literal(word)} THEN {literal(op)}" for word, op in operations.items())
    return f"CASE {word} {cases} END"


def order_value(*commit: str, is_change: str = "true", within: Sequence[str] = ()) -> str:
    """Return SQL of the order value of a change: a struct of whole numbers (DECIMAL(38,0)), in the
    order ``commit``, 1 or 0 by ``is_change``, ``within``. A part that is NULL counts as 0.

    Args:
        commit: SQL of the parts of the transaction's place. If two transactions changed one row,
            the later transaction has the higher place.
        is_change: SQL that is false for a row of a snapshot. Such a row comes before the changes of
            the transaction at the same place, which the snapshot has seen or not.
        within: The place of the change within its transaction.
    """
    parts = [f"CAST({part} AS {NUMBER})" for part in (*commit, *within)]
    parts.insert(len(commit), f"CASE WHEN {is_change} THEN 1 ELSE 0 END")
    struct_fields = ", ".join(
        f"'f{number}', coalesce({sql}, 0)" for number, sql in enumerate(parts, 1)
    )
    return f"named_struct({struct_fields})"


def whole_number(sql: str) -> str:
    """Return SQL of a text as a whole number from 0 on, of at most 38 digits; NULL if the text is
    no such number."""
    return f"CASE WHEN {sql} RLIKE {literal('^ *[0-9]{1,38} *$')} THEN CAST({sql} AS {NUMBER}) END"


def file_number(sql: str) -> str:
    """Return SQL of the number at the end of a name of MySQL's binary log: ``binlog.000012`` → 12;
    NULL without such a number."""
    return whole_number(f"regexp_extract({sql}, {literal('([0-9]+)$')}, 1)")


def log_place_number(sql: str) -> str:
    """Return SQL of the number that a place in a log means, such as ``00000027:00000ac0:0002`` or
    ``0x00009a.0000e04c.10``.

    The three hexadecimal parts have 32, 32 and 16 bits, and their bits beside each other are the
    number. Case, ``0x``, and blanks around do not matter. NULL if the text is no such place.
    """
    lower = f"trim(lower({sql}))"
    form = literal("^(0x)?[0-9a-f]{1,8}[:.][0-9a-f]{1,8}[:.][0-9a-f]{1,4}$")
    digits = f"split(replace({lower}, '0x', ''), '[:.]')"

    def part(number: int, factor: int) -> str:
        value = f"CAST(conv(try_element_at({digits}, {number}), 16, 10) AS DECIMAL(10,0))"
        return f"{value} * CAST({factor} AS DECIMAL(16,0))"

    total = f"{part(1, 1 << 48)} + {part(2, 1 << 16)} + {part(3, 1)}"
    return f"CASE WHEN {lower} RLIKE {form} THEN CAST({total} AS {NUMBER}) END"


def parsed_json(text: str) -> str:
    """Return SQL of the VARIANT of a text of JSON; NULL if the text is not exactly one value of
    JSON.

    Spark's parser ignores what follows the first value, and replaces bytes that are no UTF-8.
    """
    end, second = literal(',"end"]'), literal("$[1]")
    is_one = f"get_json_object(concat('[', {text}, {end}), {second}) = 'end'"
    return f"CASE WHEN is_valid_utf8({text}) AND {is_one} THEN try_parse_json({text}) END"


def find_field(struct: StructType, name: str) -> StructField | None:
    """Return the field of a struct with this name in any case; None if the struct has no such
    field.

    Raises:
        AnalysisError: Two fields have this name.
    """
    fields = [field for field in struct if field.name.lower() == name.lower()]
    if len(fields) > 1:
        raise AnalysisError(
            f"The records have the columns {', '.join(field.name for field in fields)}, which "
            "differ in case only. Leave out all but one of them by select(…).",
            condition="AMBIGUOUS_REFERENCE", sqlstate="42704", column=name,
        )  # fmt: skip
    return fields[0] if fields else None


def image_by_lower_names(variant: str) -> str:
    """Return SQL of a JSON object, a VARIANT, as a map by names in lower case.

    NULL if the VARIANT is no object, or if two names of the object differ in case only.
    """
    image = f"try_cast({variant} AS {IMAGE})"
    names = f"transform(map_keys({image}), k -> lower(k))"
    lower_image = f"transform_keys({image}, (k, v) -> lower(k))"
    return f"CASE WHEN size(array_distinct({names})) = size({image}) THEN {lower_image} END"


def _is_present_sql(variant: str) -> str:
    """Return SQL that is true if a VARIANT is neither NULL nor the null of JSON."""
    return f"{variant} IS NOT NULL AND NOT is_variant_null({variant})"


def _json_path(path: Sequence[str]) -> str:
    """Return SQL of the text of a field's JSONPath, such as ``$["source"]["db"]``."""
    return literal("$" + "".join(f'["{name}"]' for name in path))
