"""The files of AWS DMS in S3: the columns of the table, ``Op``, and columns that a task adds."""

from __future__ import annotations

from acidsql.streams.envelopes.parts import Envelope, RecordFields, operation_sql, order_value

MARK = "Op"
_OPS = {"I": "insert", "U": "update", "D": "delete"}
_CHANGE_SEQUENCE = "AR_H_CHANGE_SEQ"
# Columns with these names are not the table's. A task adds them by a rule, ``$AR_H_…``.
HEADERS = (
    "Op", _CHANGE_SEQUENCE, "AR_H_STREAM_POSITION", "AR_H_TIMESTAMP", "AR_H_COMMIT_TIMESTAMP",
    "AR_H_OPERATION", "AR_H_USER", "AR_M_SOURCE_SCHEMA", "AR_M_SOURCE_TABLE_NAME",
    "AR_M_SOURCE_TABLE_ID",
)  # fmt: skip


def envelope(fields: RecordFields) -> Envelope:
    """Return DMS's envelope, as SQL over a record's fields. The record itself is the row, before
    and after. Files of a full load have no ``Op``, and no place in the log. The fault is an update
    or delete without a place, or a place that is no number."""
    op, place = fields.text("Op"), fields.number(_CHANGE_SEQUENCE)
    has_place = f"coalesce({fields.text(_CHANGE_SEQUENCE)}, '') <> ''"
    row = fields.record_image()
    return Envelope(
        op=f"CASE WHEN {op} IS NULL THEN 'snapshot' ELSE {operation_sql(op, _OPS)} END",
        before=row,  # a delete has the deleted row; an update has the new row only
        after=row,
        sequence=f"CASE WHEN {has_place} OR {op} IS NULL OR {op} = 'I' THEN "
        f"{order_value(place, is_change=has_place)} END",
        table=f"nullif(concat_ws('.', {fields.text('AR_M_SOURCE_SCHEMA')}, "
        f"{fields.text('AR_M_SOURCE_TABLE_NAME')}), '')",
        txn="CAST(NULL AS STRING)",
        fault=f"CASE WHEN {has_place} AND {place} IS NULL "
        f"THEN '{_CHANGE_SEQUENCE} is no number' "
        f"WHEN {op} IN ('U', 'D') AND NOT ({has_place}) "
        f"THEN 'it has no {_CHANGE_SEQUENCE}: let the task add it, or pass sequence=…' END",
        binary="hex",
    )
