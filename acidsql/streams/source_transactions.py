"""``Session.transactions_from``: what change records say about the transactions of their source.

The records of many tables come in one DataFrame, before they are rows of any table. So the records
stay as they are, and get columns for ``commit_points``.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from acidsql.errors import AnalysisError, SettingError
from acidsql.storage.columns import quote
from acidsql.streams.changes import (
    FORMATS,
    failure_sql,
    is_unparsed_sql,
    records_and_fields,
)
from acidsql.streams.envelopes.parts import TEXT

_WITH_ENDS = ("debezium", "maxwell")
_TABLE = "_table"
_NAMES = (_TABLE, "_source_txn", "_place", "_is_last", "_num_records")


def source_transactions(format: str, rows: DataFrame) -> DataFrame:
    """Return change records as they are, with five more columns of what they tell of the source's
    transactions, lazily: ``_table`` (NULL at a commit point), ``_source_txn``, ``_place``,
    ``_is_last`` and ``_num_records``. Records that are neither changes nor commit points are left
    out; a malformed one fails the query.

    Raises:
        SettingError: The format does not tell where transactions end.
        AnalysisError: The rows are no records of this format, or have such a column already.
    """
    if format not in _WITH_ENDS:
        format_names = ", ".join(_WITH_ENDS)
        raise SettingError(
            f"format='{format}' is not one of {format_names}: other records do not tell where a "
            "transaction of the source ends.",
            name="format",
        )
    column_names = rows.columns
    if reserved_names := [name for name in column_names if name.lower() in _NAMES]:
        raise AnalysisError(
            f"The records have a column '{reserved_names[0]}', which transactions_from() adds.",
            condition="COLUMN_ALREADY_EXISTS", sqlstate="42711", column=reserved_names[0],
        )  # fmt: skip
    rows, fields = records_and_fields(format, rows)
    envelope = FORMATS[format].envelope(fields)
    ends = envelope.ends
    assert ends is not None
    is_point = f"coalesce({envelope.op} = '' AND {ends.is_point}, false)"
    fault = (
        f"CASE WHEN {is_unparsed_sql(fields)} THEN 'it is no JSON' WHEN {envelope.op} IS NULL THEN "
        f"'it has no {FORMATS[format].MARK} that is known' ELSE {ends.fault} END"
    )
    record = f"coalesce(concat(': ', left({TEXT}, 200)), '')" if fields.is_text else "''"
    good_rows = rows.where(
        f"CASE WHEN {is_point} THEN true WHEN {envelope.op} = '' THEN false "
        f"WHEN {fault} IS NOT NULL THEN {failure_sql(format, f'concat({fault}, {record})')} "
        "ELSE true END"
    )
    table = f"CASE WHEN NOT {is_point} THEN {envelope.table} END"
    values_sql = (table, ends.txn, ends.place, ends.is_last, ends.num_records)
    return good_rows.selectExpr(
        *map(quote, column_names),
        *(f"{sql} AS {name}" for name, sql in zip(_NAMES, values_sql, strict=True)),
    )
