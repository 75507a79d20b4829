"""``Session.transactions_from``: what records of a tool tell of the transactions of their source.

The records of many tables come in one DataFrame, before they are rows of any table. So they stay as
they are, and get columns for ``commit_points``.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from acidsql.errors import AnalysisError, SettingError
from acidsql.storage.columns import quote
from acidsql.streams.changes import FORMATS, fields_of, malformed, unparsed
from acidsql.streams.envelopes.parts import TEXT

_WITH_ENDS = ("debezium", "maxwell")
_TABLE = "_table"
_NAMES = (_TABLE, "_source_txn", "_place", "_is_last", "_num_records")


def source_transactions(format: str, rows: DataFrame) -> DataFrame:
    """See ``Session.transactions_from``."""
    if format not in _WITH_ENDS:
        known = ", ".join(_WITH_ENDS)
        raise SettingError(
            f"format='{format}' is not one of {known}: other records do not tell where a "
            "transaction of the source ends.",
            name="format",
        )
    given = rows.columns
    if taken := [name for name in given if name.lower() in _NAMES]:
        raise AnalysisError(
            f"The records have a column '{taken[0]}', which transactions_from() adds.",
            condition="COLUMN_ALREADY_EXISTS", sqlstate="42711", column=taken[0],
        )  # fmt: skip
    rows, fields = fields_of(format, rows)
    found = FORMATS[format].envelope(fields)
    ends = found.ends
    assert ends is not None
    is_point = f"coalesce({found.op} = '' AND {ends.is_point}, false)"
    fault = (
        f"CASE WHEN {unparsed(fields)} THEN 'it is no JSON' WHEN {found.op} IS NULL THEN "
        f"'it has no {FORMATS[format].MARK} that is known' ELSE {ends.fault} END"
    )
    record = f"coalesce(concat(': ', left({TEXT}, 200)), '')" if fields.is_text else "''"
    good = rows.where(
        f"CASE WHEN {is_point} THEN true WHEN {found.op} = '' THEN false "
        f"WHEN {fault} IS NOT NULL THEN {malformed(format, f'concat({fault}, {record})')} "
        "ELSE true END"
    )
    table = f"CASE WHEN NOT {is_point} THEN {found.table} END"
    values = (table, ends.txn, ends.place, ends.is_last, ends.num_records)
    return good.selectExpr(
        *map(quote, given),
        *(f"{sql} AS {name}" for name, sql in zip(_NAMES, values, strict=True)),
    )
