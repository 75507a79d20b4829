"""What records of tools tell of the transactions of their source.

The samples have the forms of the tools' documentation, which is named at each.
"""

from __future__ import annotations

import json

import pytest

from acidsql.errors import AnalysisError, SettingError

pytestmark = pytest.mark.spark

# https://debezium.io/documentation/reference/stable/connectors/postgresql.html
# #postgresql-transaction-metadata
BEGIN = {"status": "BEGIN", "id": "571:53195829", "ts_ms": 1486500577125, "event_count": None,
         "data_collections": None}  # fmt: skip
END = {"status": "END", "id": "571:53195829", "ts_ms": 1486500577691, "event_count": 2,
       "data_collections": [{"data_collection": "s1.a", "event_count": 1},
                            {"data_collection": "s2.a", "event_count": 1}]}  # fmt: skip
CHANGE = {
    "before": None, "after": {"pk": "2", "aa": "1"},
    "source": {"connector": "postgresql", "schema": "s1", "table": "a", "lsn": 46523128,
               "txId": 571},
    "op": "c", "ts_ms": 1580390884335,
    "transaction": {"id": "571:53195829", "total_order": 1, "data_collection_order": 1},
}  # fmt: skip
# https://maxwells-daemon.io/dataformat/
FIRST = {"database": "test", "table": "e", "type": "insert", "ts": 1477053217, "xid": 23396,
         "xoffset": 0, "position": "master.000006:800911", "data": {"id": 1}}  # fmt: skip
LAST = {"database": "test", "table": "f", "type": "insert", "ts": 1477053217, "xid": 23396,
        "commit": True, "position": "master.000006:800911", "data": {"id": 2}}  # fmt: skip
BOOTSTRAP = {"database": "test", "table": "e", "ts": 1, "data": {"id": 3}}


def told(acid, format, *records):
    """What is told of each record that is left: all columns but the record itself."""
    values = [(None if one is None else json.dumps(one),) for one in records]
    found = acid.transactions_from(format, acid.spark.createDataFrame(values, "value STRING"))
    assert found.columns == [
        "value", "_table", "_source_txn", "_place", "_is_last", "_num_records",
    ]  # fmt: skip
    return [tuple(row)[1:] for row in found.collect()]


def test_debezium_s_end_tells_how_many_changes_there_are(acid):
    snapshot = CHANGE | {"op": "r", "transaction": None}
    enveloped = {"schema": {"type": "struct"}, "payload": CHANGE}
    records = [BEGIN, None, CHANGE, enveloped, END, {"ts_ms": 1}, snapshot]
    change = ("s1.a", "571:53195829", "1", None, None)
    assert told(acid, "debezium", *records) == [
        change, change, (None, "571:53195829", None, None, 2), ("s1.a", None, None, None, None),
    ]  # fmt: skip


def test_maxwell_s_last_row_tells_that_it_is_the_last_one(acid):
    rows = [BOOTSTRAP | {"type": kind} for kind in ("bootstrap-start", "bootstrap-insert")]
    assert told(acid, "maxwell", FIRST, LAST, *rows) == [
        ("test.e", "23396", "0", False, None), ("test.f", "23396", "last", True, None),
        ("test.e", None, None, False, None),
    ]  # fmt: skip


def test_records_that_were_parsed_tell_the_same(acid):
    place = "STRUCT<id: STRING, total_order: BIGINT>"
    source = "STRUCT<connector: STRING, schema: STRING, `table`: STRING, lsn: BIGINT>"
    columns = (
        f"op STRING, after STRUCT<pk: STRING>, source {source}, transaction {place}, "
        "status STRING, id STRING, event_count BIGINT"
    )
    lines = acid.spark.createDataFrame(
        [(json.dumps(one),) for one in (BEGIN, CHANGE, END)], "value STRING"
    )
    parsed = lines.selectExpr(f"from_json(value, '{columns}') AS p").select("p.*")
    found = acid.transactions_from("debezium", parsed).select("op", "_table", "_source_txn",
                                                              "_place", "_num_records")  # fmt: skip
    assert [tuple(row) for row in found.collect()] == [
        ("c", "s1.a", "571:53195829", "1", None), (None, None, "571:53195829", None, 2),
    ]  # fmt: skip
    rows = acid.changes_from("debezium", parsed, "pk STRING").collect()
    assert [(row.pk, row._op) for row in rows] == [("2", "insert")]


@pytest.mark.parametrize(
    ("format", "record", "said"),
    [
        ("debezium", CHANGE | {"transaction": None}, "provide.transaction.metadata=true"),
        ("debezium", [1], "no op that is known: \\[1\\]"),
        ("maxwell", {**FIRST, "xid": None}, "output_commit_info=true"),
    ],
)
def test_a_record_that_tells_too_little_fails_the_query(acid, format, record, said):
    with pytest.raises(Exception, match=said) as caught:
        told(acid, format, record)
    assert "CHANGE_RECORD_MALFORMED" in str(caught.value)


def test_formats_without_an_end_of_transactions_are_refused(acid):
    rows = acid.spark.createDataFrame([("x",)], "value STRING")
    with pytest.raises(SettingError, match="where a transaction of the source ends"):
        acid.transactions_from("goldengate", rows)
    with pytest.raises(AnalysisError, match="'_place', which"):
        acid.transactions_from("maxwell", rows.selectExpr("value", "1 AS _place"))
