"""The operations of Oracle GoldenGate for Big Data: texts of JSON, or columns from Avro."""

from __future__ import annotations

from acidsql.streams.envelopes.parts import Envelope, RecordFields, operation_sql, order_value

MARK = "op_type"
_OPS = {"I": "insert", "U": "update", "D": "delete", "T": "truncate"}


def envelope(fields: RecordFields) -> Envelope:
    """Return GoldenGate's envelope, as SQL over a record's fields. An update may change the key,
    and may lack unchanged columns. The order is ``pos``; the fault is a record without it."""
    place = fields.number("pos")
    return Envelope(
        op=operation_sql(fields.text("op_type"), _OPS),
        before=fields.image("before"),
        after=fields.image("after"),
        sequence=order_value(place),
        table=fields.text("table"),
        txn=f"coalesce({fields.text('tokens', 'TK-XID')}, {fields.text('xid')})",
        fault=f"CASE WHEN {place} IS NULL THEN 'it has no pos' END",
    )
