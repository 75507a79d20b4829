"""The records of Maxwell's Daemon for MySQL."""

from __future__ import annotations

from acidsql.streams.envelopes.parts import (
    Ends,
    Envelope,
    RecordFields,
    file_number,
    operation_sql,
    order_value,
    whole_number,
)

MARK = "type"
_OPS = {
    "insert": "insert", "update": "update", "delete": "delete", "bootstrap-insert": "snapshot",
    "bootstrap-start": "", "bootstrap-complete": "",
    "table-create": "", "table-alter": "", "table-drop": "",
    "database-create": "", "database-alter": "", "database-drop": "",
}  # fmt: skip
_LAST = 1 << 62  # the place of the last row of a transaction, which has no xoffset


def envelope(fields: RecordFields) -> Envelope:
    """Return Maxwell's envelope, as SQL over a record's fields. ``old`` has the values that an
    update has changed, and no others. The fault is a change without a position, or with neither
    ``xoffset`` nor ``commit``.

    The order is that of the binary log, because a transaction may begin before another one and
    change a row after it; then its xid is the lower one. Rows of a bootstrap come first.
    """
    kind, place = fields.text("type"), fields.text("position")
    file = file_number(f"substring_index({place}, ':', 1)")
    offset = whole_number(f"substring_index({place}, ':', -1)")
    row = f"coalesce({fields.number('xoffset')}, {_LAST})"
    is_change = f"{kind} <> 'bootstrap-insert'"
    data = fields.image("data")
    return Envelope(
        op=operation_sql(kind, _OPS),
        before=fields.image("old"),
        same=data,
        after=data,
        sequence=f"CASE WHEN {is_change} THEN {order_value(file, offset, within=[row])} "
        f"ELSE {order_value('0', '0', is_change='false', within=['0'])} END",
        table=f"concat_ws('.', {fields.text('database')}, {fields.text('table')})",
        txn=fields.text("xid"),
        fault=f"CASE WHEN {kind} IN ('insert', 'update', 'delete') "
        f"THEN CASE WHEN {file} IS NULL OR {offset} IS NULL "
        "THEN 'it has no position: set output_binlog_position=true, or pass sequence=…' "
        # The rows of one event have one position, and UPDATE … SET id = id + 1 changes keys twice.
        f"WHEN NOT ({fields.has_sql('xoffset')} OR {fields.has_sql('commit')}) "
        "THEN 'it has no xoffset: set output_xoffset=true, or pass sequence=…' END END",
        ends=_ends(fields),
    )


def _ends(fields: RecordFields) -> Ends:
    """Return what tells the end of a source transaction, as SQL: its last row has ``commit``, and
    the others have an ``xoffset``. The fault is a change without ``xid``."""
    xid, is_last = fields.text("xid"), f"coalesce({fields.text('commit')} = 'true', false)"
    return Ends(
        txn=xid,
        place=f"CASE WHEN {is_last} THEN 'last' ELSE {fields.text('xoffset')} END",
        is_last=is_last,
        # Rows of a bootstrap have no transaction.
        fault=f"CASE WHEN {fields.text('type')} <> 'bootstrap-insert' AND {xid} IS NULL "
        "THEN 'it has no xid: set output_commit_info=true' END",
    )
