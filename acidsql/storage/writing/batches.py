"""How many rows Spark hands to Python in one batch.

Spark measures a batch after each row to keep it below ``maxBytesPerBatch``. This takes half of the
JVM's time in an INSERT … SELECT. If no row of a batch is long, Spark need not measure the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812 - PySpark's own convention

from acidsql.storage.columns import quote
from acidsql.storage.event_records import PARTITION, RECORD
from acidsql.storage.orc.writer import BATCH_ROWS
from acidsql.storage.spark.session.jvm import may_call_user_code, users_conf

_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_DEFAULTS = {_RECORDS: "10000", _BYTES: "67108864b"}
_NOT_MEASURED = str(2**31 - 1)  # means "no limit" to Spark

# An unmeasured batch has at most _ROWS rows with _TEXT_MAX bytes of text each: 128 MiB. Spark's own
# bound for a batch is 64 MiB, but it seldom happens that all rows of a batch are so long.
_ROWS = 8192
_TEXT_MAX = 16 * 1024  # bytes of all texts of a row
_COLUMNS_MAX = 512  # a column of fixed size has at most 16 bytes: 64 MiB for a batch

_TEXTS = (T.StringType, T.BinaryType, T.CharType, T.VarcharType)
_FIXED = (
    T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType,
    T.DecimalType, T.DateType, T.TimestampType, T.TimestampNTZType,
)  # fmt: skip
_SHORT_TEXTS = (PARTITION, RECORD)  # the name of a directory, the record of a file

_TOO_LONG = f"acidsql: a row has more than {_TEXT_MAX} bytes of text; batches are measured now."


@dataclass(frozen=True, slots=True)
class Batches:
    """Rows for Python.

    Attributes:
        rows: The rows.
        settings: Spark settings for the job.
    """

    rows: DataFrame
    settings: dict[str, str] = field(default_factory=dict)


def measured_batches(rows: DataFrame) -> Batches:
    """Return rows of any length, in batches that Spark measures: at most 64 MiB, unless the user
    set it.

    A batch may have more rows than Spark's default of 10,000, unless the user has set the number.
    """
    spark = rows.sparkSession
    is_chosen = spark.conf.get(_RECORDS) != _DEFAULTS[_RECORDS]
    return Batches(rows, {} if is_chosen else {_RECORDS: str(BATCH_ROWS)})


def unmeasured_batches(rows: DataFrame) -> Batches | None:
    """Return the same rows in batches of at most 8192 rows that Spark does not measure; a row with
    more than 16 KiB of text fails the job (``is_long_row``).

    Returns:
        The batches. None if the user has set the size of batches, if the query may call the user's
        code (it must get the batches that Spark would give it), if a column is neither of fixed
        size nor a text, or if there are too many columns.
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
        rows = _refuse_long_rows(rows, texts)
    # Asked after _refuse_long_rows: in Spark 4.1 its functions may be the user's.
    if may_call_user_code(rows):
        return None
    # All statements use the same values, because the threads of a session share its settings.
    return Batches(rows, {_RECORDS: str(_ROWS), _BYTES: _NOT_MEASURED})


def is_long_row(error: BaseException) -> bool:
    """Whether a job failed because a row is too long for a batch that is not measured."""
    return _TOO_LONG in str(error)


def _refuse_long_rows(rows: DataFrame, texts: list[str]) -> DataFrame:
    """Return the same rows and columns, lazily, in a form that fails the job, with ``_TOO_LONG`` in
    the message, if a row has more than 16 KiB in the columns ``texts`` together.
    """
    # The SQL does not call coalesce, because in Spark 4.1 a session may redefine it.
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
