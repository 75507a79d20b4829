"""How many rows Spark hands to Python at once.

Spark keeps a batch below ``maxBytesPerBatch`` by measuring it after each row, and that takes longer
than all else that it does to hand rows over: half of the JVM's time in an INSERT … SELECT. A batch
of rows none of which is long need not be measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812 - PySpark's own convention

from acidsql.storage.columns import quote
from acidsql.storage.event_records import PARTITION, RECORD
from acidsql.storage.jvm import may_call_user_code, users_conf
from acidsql.storage.orc_writer import BATCH_ROWS

_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_DEFAULTS = {_RECORDS: "10000", _BYTES: "67108864b"}
_NOT_MEASURED = str(2**31 - 1)  # what Spark takes for "no limit"

# Together at most 128 MiB: Spark's own bound is 64, but batches of only such rows hardly exist.
_ROWS = 8192
_TEXT_MAX = 16 * 1024  # bytes of a row's texts
_COLUMNS_MAX = 512  # of at most 16 bytes each: 64 MiB

_TEXTS = (T.StringType, T.BinaryType, T.CharType, T.VarcharType)
_FIXED = (
    T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType,
    T.DecimalType, T.DateType, T.TimestampType, T.TimestampNTZType,
)  # fmt: skip
_SHORT_TEXTS = (PARTITION, RECORD)  # a directory's name, what is told of a file

_TOO_LONG = f"acidsql: a row has more than {_TEXT_MAX} bytes of text; batches are measured now."


@dataclass(frozen=True, slots=True)
class Batches:
    """Rows for Python.

    Attributes:
        rows: The rows.
        settings: Of Spark, for the job.
    """

    rows: DataFrame
    settings: dict[str, str] = field(default_factory=dict)


def measured(rows: DataFrame) -> Batches:
    """Rows of any length, by more than 10,000, unless somebody has chosen their number."""
    spark = rows.sparkSession
    is_chosen = spark.conf.get(_RECORDS) != _DEFAULTS[_RECORDS]
    return Batches(rows, {} if is_chosen else {_RECORDS: str(BATCH_ROWS)})


def unmeasured(rows: DataFrame) -> Batches | None:
    """The same rows in batches that Spark does not measure; a long row fails the job.

    Returns:
        None where somebody has chosen how large batches are, where the query may call code of
        the user's (what that gets is not ours to bound), or where a column's values are neither of
        fixed size nor texts.
    """
    spark = rows.sparkSession
    kinds = {column.name: column.dataType for column in rows.schema.fields}
    texts = [
        name
        for name, kind in kinds.items()
        if isinstance(kind, _TEXTS) and name not in _SHORT_TEXTS
    ]
    if (
        len(kinds) > _COLUMNS_MAX
        or any(users_conf(spark, name) not in (None, value) for name, value in _DEFAULTS.items())
        or not all(isinstance(kind, (*_TEXTS, *_FIXED)) for kind in kinds.values())
    ):
        return None
    if texts:
        rows = _without_long(rows, texts)
    # After the guard, whose functions may be the session's own in Spark 4.1.
    if may_call_user_code(rows):
        return None
    # The same for all: threads of a session share its settings.
    return Batches(rows, {_RECORDS: str(_ROWS), _BYTES: _NOT_MEASURED})


def is_long_row(error: BaseException) -> bool:
    """Whether a job failed because a row is too long for a batch that is not measured."""
    return _TOO_LONG in str(error)


def _without_long(rows: DataFrame, texts: list[str]) -> DataFrame:
    """The rows, and an error for each that is too long."""
    # Not coalesce: Spark 4.1 lets a session have its own.
    lengths = [
        f"CASE WHEN {quote(name)} IS NULL THEN 0L ELSE CAST(octet_length({quote(name)}) AS BIGINT) "
        "END"
        for name in texts
    ]
    first = quote(texts[0])
    guarded = (
        f"CASE WHEN {' + '.join(lengths)} > {_TEXT_MAX} THEN raise_error('{_TOO_LONG}') "
        f"ELSE {first} END AS {first}"
    )
    return rows.selectExpr(*(guarded if name == texts[0] else quote(name) for name in rows.columns))
