"""The records of tools of replication, as rows for AUTO CDC.

The samples are ours, in the forms that the tools' documentation describes. It is named at each.
"""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from over_hive import needs

from acidsql.errors import AnalysisError, ConstraintError, SettingError

pytestmark = pytest.mark.spark
ID_AND_NAME = "id INT, name STRING"


def texts(spark, *records):
    """A frame as Kafka's source gives it: each record is a dict, a text, or None."""
    values = [json.dumps(one) if isinstance(one, dict) else one for one in records]
    return spark.createDataFrame([(value,) for value in values], "value STRING")


def read(acid, format, records, schema=ID_AND_NAME, **options):
    rows = texts(acid.spark, *records) if isinstance(records, list) else records
    return acid.changes_from(format, rows, schema, **options).collect()


def short(rows):
    """Each row as its operation, its key and its name."""
    return [(row._op, row.id, row.name) for row in rows]


# ── Debezium ─────────────────────────────────────────────────────────────────────────────────
# https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-events
# (and mysql.html, sqlserver.html, oracle.html: the block ``source``)


def debezium(op, before=None, after=None, connector="postgresql", **source):
    place = {"lsn": 24023128, "txId": 555, "db": "shop", "schema": "public", "table": "c"}
    source = {"connector": connector, **(source or place)}
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1}


def test_debezium_tells_operation_key_order_table_and_transaction(acid):
    old, new = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
    records = [
        debezium("r", None, {"id": 3, "name": None}),
        debezium("c", None, old, lsn=10, txId=1, schema="s", table="t"),
        {"schema": {"type": "struct"}, "payload": debezium("u", old, new)},
        debezium("d", {"id": 1}, None),
        debezium("t"),
    ]
    rows = read(acid, "debezium", records)
    assert short(rows) == [
        ("snapshot", 3, None), ("insert", 1, "a"), ("update", 1, "b"), ("delete", 1, None),
        ("truncate", None, None),
    ]  # fmt: skip
    assert [row._table for row in rows[:2]] == ["public.c", "s.t"]
    assert [row._source_txn for row in rows[:2]] == ["555", "1"]
    assert rows[0]._sequence < rows[1]._sequence < rows[2]._sequence


def test_debezium_s_records_that_are_no_changes_are_left_out(acid):
    # …/stable/connectors/postgresql.html#postgresql-transaction-metadata, heartbeat.interval.ms
    records = [
        None,
        "null",
        {"schema": None, "payload": None},
        {"ts_ms": 1},
        debezium("m"),
        {"status": "BEGIN", "id": "571", "ts_ms": 1, "event_count": None, "data_collections": None},
        {"source": {"table": "c"}, "databaseName": "shop", "ddl": "DROP TABLE c", "ts_ms": 1},
    ]
    assert read(acid, "debezium", records) == []


def test_values_become_the_types_of_the_table_without_loss(acid):
    # …/stable/connectors/postgresql.html#postgresql-data-types
    schema = (
        "id BIGINT, `Odd ``name` STRING, amount DECIMAL(38,18), d DATE, at TIMESTAMP_NTZ, "
        "b BINARY, f DOUBLE, yes BOOLEAN, tags ARRAY<INT>, doc STRING"
    )
    after = (
        '{"ID": 9223372036854775807, "Odd `name": "é\\"|", "amount": 12345678901234567890.1234567,'
        ' "d": 19675, "at": "2023-11-14T22:13:20.123456", "b": "AQID", "f": 4.2341, "yes": 1,'
        ' "tags": [1, null], "doc": {"k": 1}, "more": 1}'
    )
    text = json.dumps(debezium("c", None, None)).replace('"after": null', f'"after": {after}')
    (row,) = read(acid, "debezium", texts(acid.spark, text), schema)
    assert row.id == (1 << 63) - 1 and row["Odd `name"] == 'é"|'
    assert row.amount == Decimal("12345678901234567890.1234567")
    assert (str(row.d), str(row.at)) == ("2023-11-14", "2023-11-14 22:13:20.123456")
    assert (bytes(row.b), row.f, row.yes, row.tags) == (b"\1\2\3", 4.2341, True, [1, None])
    assert row.doc == '{"k":1}'


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ('{"op": "c", "after"', "no JSON"),
        ("", "no JSON"),
        ("[1]", "no op that is known"),
        (debezium("x", None, {"id": 1}), "no op that is known"),
        ({"id": 1, "status": "BEGIN", "name": "a row alone"}, "no op that is known"),
        (debezium("c", {"id": 1}, None), "it has no row"),
        (debezium("d", None, None), "delete without the row before it"),
        (debezium("c", None, {"id": "x", "name": "a"}), "column id is no INT: x"),
        (debezium("c", None, {"id": 1.5, "name": "a"}), "column id is no INT: 1.5"),
        (debezium("c", None, {"id": 1}), "it has no column name"),
        (debezium("c", None, {"id": 1, "name": "__debezium_unavailable_value"}), "not available"),
        (debezium("c", None, {"id": 1, "name": "a"}, "vitess", vgtid="x"), "connector vitess"),
        (debezium("c", None, {"id": 1, "name": "a"}, lsn=None), "no known order"),
        (debezium("c", None, {"id": 1, "name": "a"}, "mysql", file="b.1"), "no known order"),
    ],
)
def test_a_record_that_cannot_be_read_fails_the_query_and_does_not_vanish(acid, record, said):
    rows = acid.changes_from("debezium", texts(acid.spark, record), ID_AND_NAME)
    with pytest.raises(Exception, match=said):
        rows.select("_table").collect()


@needs("keeps_state_tables")
def test_auto_cdc_applies_nothing_of_a_batch_with_such_a_record(acid):
    acid.sql("CREATE TABLE t (id INT, name STRING)")
    good = debezium("c", None, {"id": 7, "name": "good"})
    rows = acid.changes_from("debezium", texts(acid.spark, good, "no | JSON"), ID_AND_NAME)
    cdc = acid.auto_cdc("t", keys="id", sequence_by="_sequence", column_list=["id", "name"])
    with pytest.raises(ConstraintError, match="it is no JSON.*no . JSON") as caught:
        cdc.apply(rows)
    assert caught.value.condition == "CHANGE_RECORD_MALFORMED"
    assert acid.sql("SELECT * FROM t").count() == 0


def test_a_number_for_a_timestamp_is_refused_because_its_unit_is_unknown(acid):
    record = debezium("c", None, {"id": 1, "at": 1700000000})
    with pytest.raises(Exception, match="column at is no TIMESTAMP: 1700000000"):
        read(acid, "debezium", [record], "id INT, at TIMESTAMP")


def test_what_is_not_told_can_become_null(acid):
    records = [
        debezium("u", None, {"id": 1}),
        debezium("u", None, {"id": 2, "name": "__debezium_unavailable_value"}),
    ]
    rows = read(acid, "debezium", records, absent="null")
    assert short(rows) == [("update", 1, None), ("update", 2, None)]


def test_parsed_records_need_no_schema(acid):
    struct = "STRUCT<id: INT, name: STRING>"
    source = "STRUCT<connector: STRING, lsn: BIGINT, `table`: STRING>"
    rows = acid.spark.createDataFrame(
        [
            ("c", None, (1, "a"), ("postgresql", 5, "t")),
            ("d", (1, None), None, ("postgresql", 6, "t")),
        ],
        f"op STRING, before {struct}, after {struct}, source {source}",
    )
    found = acid.changes_from("debezium", rows).collect()
    assert short(found) == [("insert", 1, "a"), ("delete", 1, None)]
    assert found[0]._sequence < found[1]._sequence and found[0]._table == "t"


# ── DMS ──────────────────────────────────────────────────────────────────────────────────────
# https://docs.aws.amazon.com/dms/latest/userguide/CHAP_Target.S3.html (…Configuring.InsertOps)
# https://docs.aws.amazon.com/dms/latest/userguide/CHAP_Tasks.CustomizingTasks.TableMapping.\
# SelectionTransformation.Expressions.html (headers)


def test_dms_files_have_op_and_headers_beside_the_columns(acid):
    full = acid.spark.createDataFrame([(1, "a")], ID_AND_NAME)
    changes = acid.spark.createDataFrame(
        [
            ("U", 1, "b", "20120530124530000000000000000000009"),
            ("D", 1, "b", "20120530124530000000000000000000010"),
            ("I", 2, "c", ""),
        ],
        "Op STRING, id INT, name STRING, AR_H_CHANGE_SEQ STRING",
    )
    loaded = acid.changes_from("dms", full)
    rows = loaded.unionByName(acid.changes_from("dms", changes)).collect()
    assert short(rows) == [
        ("snapshot", 1, "a"), ("update", 1, "b"), ("delete", 1, "b"), ("insert", 2, "c"),
    ]  # fmt: skip
    orders = [row._sequence for row in rows]
    assert orders[0] < orders[1] < orders[2] and orders[3] == orders[0]


def test_dms_without_a_place_in_the_log_needs_a_column_for_the_order(acid):
    rows = acid.spark.createDataFrame(
        [("U", 1, "b", "2023-01-01 00:00:00.000002")], "Op STRING, id INT, name STRING, ts STRING"
    )
    with pytest.raises(Exception, match="no AR_H_CHANGE_SEQ"):
        read(acid, "dms", rows)
    (row,) = read(acid, "dms", rows, sequence="CAST(ts AS TIMESTAMP)")
    assert row._sequence.microsecond == 2 and "ts" not in row


# ── GoldenGate ───────────────────────────────────────────────────────────────────────────────
# https://docs.oracle.com/en/middleware/goldengate/big-data/19.1/gadbd/
# using-pluggable-formatters.html: "Using the JSON Formatter", operation modeled


def goldengate(op, pos, before=None, after=None):
    record = {"table": "QASOURCE.T", "op_type": op, "op_ts": "2015-11-05 18:45:36.000000",
              "current_ts": "2016-10-05T10:15:51.267000", "pos": f"{pos:020}"}  # fmt: skip
    images = {"before": before, "after": after}
    return record | {name: image for name, image in images.items() if image is not None}


def test_goldengate_has_upper_case_names_and_may_change_a_key(acid):
    one, two = {"ID": "1", "NAME": "a"}, {"ID": "2", "NAME": "a"}
    records = [
        goldengate("I", 2928, None, one),
        goldengate("U", 3000, one, two),
        goldengate("U", 3100, {"ID": "2"}, {"ID": "2", "NAME": "b"}),
        goldengate("D", 4136, two),
        goldengate("T", 4300),
    ]
    rows = read(acid, "goldengate", records, keys="id")
    assert short(rows) == [
        ("insert", 1, "a"), ("delete", 1, "a"), ("update", 2, "a"), ("update", 2, "b"),
        ("delete", 2, "a"), ("truncate", None, None),
    ]  # fmt: skip
    assert rows[1]._sequence == rows[2]._sequence > rows[0]._sequence
    assert {row._table for row in rows} == {"QASOURCE.T"}


def test_goldengate_s_missing_columns_are_not_null(acid):
    image = "STRUCT<id: INT, id_isMissing: BOOLEAN, name: STRING, name_isMissing: BOOLEAN>"
    rows = acid.spark.createDataFrame(
        [("t", "U", "01", (1, False, "a", False), (1, False, None, True))],
        f"table STRING, op_type STRING, pos STRING, before {image}, after {image}",
    )
    for given in (rows, [goldengate("U", 1, {"ID": 1}, {"ID": 1})]):
        with pytest.raises(Exception, match="it has no column name"):
            read(acid, "goldengate", given, keys="id")
    assert short(read(acid, "goldengate", rows, keys="id", absent="null")) == [("update", 1, None)]


# ── Maxwell ──────────────────────────────────────────────────────────────────────────────────
# https://maxwells-daemon.io/dataformat/ and …/bootstrapping/


def maxwell(kind, data, position=None, **more):
    place = {} if position is None else {"position": position}
    return {"database": "test", "table": "e", "type": kind, "ts": 1, "data": data, **place, **more}


def test_maxwell_has_old_values_positions_and_bootstraps(acid):
    file = "master.000006"
    records = [
        maxwell("bootstrap-start", {}),
        maxwell("bootstrap-insert", {"id": 1, "name": "a"}),
        maxwell("bootstrap-complete", {}),
        maxwell("insert", {"id": 5, "name": "n"}, f"{file}:800911", xid=23396, xoffset=0),
        maxwell("update", {"id": 1, "name": None}, f"{file}:800911", xid=23396, xoffset=1,
                old={"name": "a"}),
        maxwell("update", {"id": 9, "name": "n"}, f"{file}:800911", xid=23396, commit=True,
                old={"id": 5}),
        maxwell("delete", {"id": 1, "name": None}, "master.000010:4", xid=1, commit=True),
        {"type": "table-alter", "database": "test", "table": "e", "ts": 1},
    ]  # fmt: skip
    rows = read(acid, "maxwell", records, keys=["id"])
    assert short(rows) == [
        ("snapshot", 1, "a"), ("insert", 5, "n"), ("update", 1, None), ("delete", 5, "n"),
        ("update", 9, "n"), ("delete", 1, None),
    ]  # fmt: skip
    orders = [row._sequence for row in rows]
    assert orders == sorted(orders) and len(set(orders)) == 5
    assert rows[1]._table == "test.e" and rows[1]._source_txn == "23396"
    with pytest.raises(Exception, match="output_binlog_position"):
        read(acid, "maxwell", [maxwell("insert", {"id": 1, "name": "a"})], keys="id")


# ── all ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("format", "options", "error", "said"),
    [
        ("canal", {}, SettingError, "canal"),
        ("debezium", {"absent": "no"}, SettingError, "absent"),
        ("debezium", {"schema": None}, SettingError, "schema"),
        ("debezium", {"schema": "id INT, ID INT"}, SettingError, "twice"),
        ("debezium", {"schema": "_op INT"}, SettingError, "_op"),
        ("debezium", {"keys": "k"}, SettingError, "'k'"),
        ("debezium", {"sequence": "a; b"}, SettingError, "sequence"),
        ("maxwell", {}, SettingError, "keys"),
        ("goldengate", {}, SettingError, "keys"),
    ],
)
def test_wrong_arguments_are_refused_at_once(acid, format, options, error, said):
    given = {"schema": ID_AND_NAME, **options}
    with pytest.raises(error, match=said):
        acid.changes_from(format, texts(acid.spark), given.pop("schema"), **given)


def test_frames_that_are_no_records_are_refused_at_once(acid):
    numbers = acid.spark.range(1)
    with pytest.raises(AnalysisError, match="no column 'op'"):
        acid.changes_from("debezium", numbers, ID_AND_NAME)
    rows = acid.spark.createDataFrame([("I", 1)], "Op STRING, id INT")
    with pytest.raises(AnalysisError, match="no column 'name'"):
        acid.changes_from("dms", rows, ID_AND_NAME)


@needs("keeps_state_tables")
def test_a_truncation_in_a_topic_of_kafka_is_refused_and_not_overlooked(acid):
    acid.sql("CREATE TABLE t (id INT, name STRING)")
    records = [debezium("c", None, {"id": 1, "name": "a"}), debezium("t")]
    rows = [(b"key", json.dumps(one).encode(), "topic") for one in records]
    topic = acid.spark.createDataFrame(rows, "key BINARY, value BINARY, topic STRING")
    cdc = acid.auto_cdc("t", keys="id", sequence_by="_sequence", column_list=["id", "name"])
    cdc.apply(acid.changes_from("debezium", topic.limit(1), ID_AND_NAME))
    with pytest.raises(ConstraintError, match="NULL in their key"):
        cdc.apply(acid.changes_from("debezium", topic, ID_AND_NAME))
    assert acid.sql("SELECT * FROM t").collect() == [(1, "a")]


@needs("keeps_state_tables")
def test_a_stream_of_records_is_applied(acid, tmp_path):
    acid.sql("CREATE TABLE t (id INT, name STRING)")
    (tmp_path / "in").mkdir()
    records = [
        debezium("r", None, {"id": 1, "name": "a"}, lsn=5),
        debezium("u", None, {"id": 1, "name": "b"}, lsn=7),
        None,
        debezium("c", None, {"id": 2, "name": "x"}, lsn=6),
        debezium("d", {"id": 2}, None, lsn=8),
    ]
    lines = [json.dumps(one) for one in records]
    (tmp_path / "in" / "1.txt").write_text("\n".join(lines))
    rows = acid.spark.readStream.text(str(tmp_path / "in"))
    cdc = acid.auto_cdc(
        "t",
        keys="id",
        sequence_by="_sequence",
        apply_as_deletes="_op = 'delete'",
        column_list=["id", "name"],
    )
    query = (
        acid.changes_from("debezium", rows, ID_AND_NAME)
        .writeStream.foreachBatch(cdc)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert acid.sql("SELECT * FROM t").collect() == [(1, "b")]
