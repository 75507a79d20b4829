"""Debezium's change events, as its documentation describes them for each connector."""

from __future__ import annotations

from acidsql.storage.columns import literal
from acidsql.streams.envelopes.parts import (
    IMAGE,
    ROOT,
    TEXT,
    Ends,
    Envelope,
    RecordFields,
    file_number,
    log_place_number,
    operation_sql,
    order_value,
    whole_number,
)

MARK = "op"
_OPS = {
    "c": "insert", "u": "update", "d": "delete", "r": "snapshot", "t": "truncate",
    "m": "",  # a message of pg_logical_emit_message
}  # fmt: skip
_TIMES = ("ts_ms", "ts_us", "ts_ns")
_OF_TRANSACTIONS = ("status", "id", "event_count", "data_collections")
_OF_DDL = ("source", "databaseName", "schemaName", "ddl", "tableChanges", "position", "status")
_UNAVAILABLE = "__debezium_unavailable_value"


def root(parsed: str) -> str:
    """Return SQL of the record in a parsed text, without the schema that Kafka Connect's JSON
    converter may put around it. ``parsed``: SQL of the parsed text, a VARIANT."""
    payload = f"try_variant_get({parsed}, '$.payload', 'variant')"
    return f"coalesce({payload}, {parsed})"


def envelope(fields: RecordFields) -> Envelope:
    """Return Debezium's envelope, as SQL over a record's fields. Its update of a key is two events:
    a delete and an insert. The fault is a change, or a row of a snapshot, of a connector that is
    not known, or a change without its place in the log."""
    op, connector = fields.text("op"), fields.text("source", "connector")
    is_change = f"{op} <> 'r'"
    cases, order_conditions = [], []
    for names, (commit, within, needed) in _places(fields, is_change).items():
        listed = ", ".join(map(literal, names))
        value = order_value(*commit, is_change=is_change, within=within)
        cases.append(f"WHEN {connector} IN ({listed}) THEN {value}")
        place = " AND ".join(f"{part} IS NOT NULL" for part in needed)
        order_conditions.append(f"({connector} IN ({listed}) AND ({op} = 'r' OR {place}))")
    fault = (
        f"CASE WHEN {op} IN ('c', 'u', 'd', 'r', 't') "
        f"AND NOT coalesce({' OR '.join(order_conditions)}, false)"
        " THEN concat('the source (connector ', "
        f"coalesce({connector}, 'unknown'), ') gives no known order: pass sequence=…') END"
    )
    schema = fields.text("source", "schema")
    return Envelope(
        op=f"CASE WHEN {_is_no_change_sql(fields)} THEN '' ELSE {operation_sql(op, _OPS)} END",
        before=fields.image("before"),
        after=fields.image("after"),
        sequence=f"CASE {' '.join(cases)} END",
        table=f"concat_ws('.', coalesce({schema}, {fields.text('source', 'db')}), "
        f"{fields.text('source', 'table')})",
        txn=f"coalesce({fields.text('transaction', 'id')}, {fields.text('source', 'gtid')}, "
        f"{fields.text('source', 'txId')})",
        fault=fault,
        unavailable=_UNAVAILABLE,
        days=True,
        ends=_ends(fields),
    )


def _ends(fields: RecordFields) -> Ends:
    """Return what tells the end of a source transaction, as SQL: the record END has the number of
    events. The fault is a change without ``transaction``.

    The connector sends END if ``provide.transaction.metadata`` is on.
    """
    op, txn = fields.text("op"), fields.text("transaction", "id")
    return Ends(
        txn=f"coalesce({txn}, {fields.text('id')})",
        place=fields.text("transaction", "total_order"),
        num_records=f"CAST({fields.number('event_count')} AS BIGINT)",
        is_point=f"{fields.text('status')} = 'END'",
        # Rows of a snapshot have no transaction.
        fault=f"CASE WHEN {op} <> 'r' AND {txn} IS NULL THEN 'it has no block transaction: set "
        "provide.transaction.metadata=true' END",
    )


def _places(
    fields: RecordFields, is_change: str
) -> dict[tuple[str, ...], tuple[list[str], list[str], list[str]]]:
    """Return the parts of the order value, as SQL: names of connectors → three lists. The parameter
    ``is_change``: SQL that is false for a row of a snapshot.

    The lists are the place of the commit, the place of the change within its transaction, and the
    parts that no change may lack. All order values are structs of one type, so a shorter place is
    padded with "0".

    The connector sends changes when their transaction commits. So the LSN or SCN of a change may be
    below that of a snapshot that has not seen the change; but the LSNs of commits are in order. The
    first part of PostgreSQL's ``sequence`` is the commit before the transaction's own commit, which
    gives the same order. Before the first commit that the connector has seen, it is not known.
    """
    sequence = fields.text("source", "sequence")
    commit = whole_number(f"get_json_object({sequence}, {literal('$[0]')})")
    lsn, scn = fields.number("source", "lsn"), fields.number("source", "scn")
    commit_scn = fields.number("source", "commit_scn")
    rs_id = log_place_number(fields.text("source", "rs_id"))
    file = file_number(fields.text("source", "file"))
    pos, row = fields.number("source", "pos"), fields.number("source", "row")
    commit_lsn = log_place_number(fields.text("source", "commit_lsn"))
    change_lsn = log_place_number(fields.text("source", "change_lsn"))
    serial, ssn = fields.number("source", "event_serial_no"), fields.number("source", "ssn")
    first = f"coalesce({commit}, CASE WHEN {is_change} THEN {lsn} END)"
    return {
        ("postgresql",): ([first, "0"], [lsn, "0", "0"], [lsn]),
        ("mysql", "mariadb"): ([file, pos], [row, "0", "0"], [file, pos]),
        ("sqlserver",): ([commit_lsn, "0"], [change_lsn, serial, "0"], [commit_lsn, change_lsn]),
        ("oracle",): ([f"coalesce({commit_scn}, {scn})", "0"], [scn, rs_id, ssn], [scn, rs_id]),
    }


def _is_no_change_sql(fields: RecordFields) -> str:
    """Return SQL that is true for a tombstone, a heartbeat, DDL, and the begin or end of a
    transaction.

    Of records that the caller has parsed, only the begin and the end of a transaction count: the
    NULLs of other records may come from a failed parse.
    """
    is_border = f"{fields.text('status')} IN ('BEGIN', 'END')"
    if not fields.is_text:
        return f"coalesce({fields.text('op')} IS NULL AND {is_border}, false)"
    tombstone = f"({TEXT} IS NULL OR is_variant_null({ROOT}))"
    keys = f"map_keys(try_cast({ROOT} AS {IMAGE}))"
    kinds = " OR ".join(
        f"({mark} AND size(array_except({keys}, array({', '.join(map(literal, names))}))) = 0)"
        for mark, names in (
            (fields.has_sql("ts_ms"), _TIMES),  # a heartbeat
            (is_border, (*_OF_TRANSACTIONS, *_TIMES)),
            (fields.has_sql("databaseName"), (*_OF_DDL, *_TIMES)),
        )
    )
    return f"coalesce({tombstone} OR {kinds}, false)"
