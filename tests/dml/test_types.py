"""Every type that ORC and Spark have in common, written in every way, and read by other readers."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pyarrow.orc as pa_orc
import pyorc
import pytest
from kit import counts, fill, ordered, table
from over_hive import needs

from acidsql.acid import bucket_codec
from acidsql.acid.layout import parse_directory
from acidsql.errors import ConstraintError, WriteError

# type → literals; the first of each is an ordinary one. None of them is NULL: that comes by itself.
VALUES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["1Y", "-128Y", "127Y"],
    "SMALLINT": ["1S", "-32768S", "32767S"],
    "INT": ["1", "-2147483648", "2147483647"],
    "BIGINT": ["1L", "-9223372036854775808L", "9223372036854775807L"],
    "FLOAT": ["1.5F", "float('NaN')", "float('-Infinity')", "float('-0.0')",
              "float('3.4028235E38')",
              "float('1.4E-45')"],
    "DOUBLE": ["1.5D", "double('NaN')", "double('Infinity')", "double('-0.0')",
               "1.7976931348623157E308D", "4.9E-324D"],
    "DECIMAL(5,2)": ["1.50BD", "-999.99BD", "999.99BD"],
    "DECIMAL(18,0)": ["1BD", "-999999999999999999BD"],
    "DECIMAL(38,18)": ["1BD", "-99999999999999999999.999999999999999999BD", "1E-18BD"],
    "DECIMAL(38,0)": ["1BD", "99999999999999999999999999999999999999BD"],
    "STRING": ["'a'", "''", "'it\\'s \\n 日本 \\\\'", "repeat('x', 70000)", "' '"],
    "CHAR(4)": ["'ab'", "''", "'日本語x'", "'ab  '"],
    "VARCHAR(4)": ["'ab'", "''", "'日本語x'", "'ab  '"],
    "BINARY": ["x'0001FF'", "x''"],
    "DATE": ["DATE'2024-02-29'", "DATE'0001-01-01'", "DATE'9999-12-31'", "DATE'1582-10-15'",
             "DATE'1581-12-31'"],
    "TIMESTAMP": ["TIMESTAMP_NTZ'2024-02-29 12:34:56.789012'", "TIMESTAMP_NTZ'0001-01-01 00:00:00'",
                  "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
                  "TIMESTAMP_NTZ'1969-12-31 23:59:58.5'",
                  "TIMESTAMP_NTZ'1582-10-15 01:02:03.000001'"],
    "ARRAY<INT>": ["array(1, NULL, 3)", "array()"],
    "ARRAY<ARRAY<STRING>>": ["array(array('a', NULL), NULL, array())"],
    "MAP<STRING, INT>": ["map('a', 1, 'b', NULL)", "map()"],
    "MAP<INT, ARRAY<DOUBLE>>": ["map(1, array(1.5D, NULL), 2, NULL)"],
    "MAP<BINARY, INT>": ["map(x'01', 1, x'02', NULL)"],
    "MAP<STRUCT<a: INT>, STRING>": ["map(named_struct('a', 1), 'x')"],
    "STRUCT<a: INT, b: STRING>": ["named_struct('a', 1, 'b', 'x')",
                     "named_struct('a', CAST(NULL AS INT), 'b', CAST(NULL AS STRING))"],
    "STRUCT<a: STRUCT<b: ARRAY<MAP<STRING, DECIMAL(4,2)>>>, c: DATE>": [
        "named_struct('a', named_struct('b', array(map('k', 1.25BD), NULL)), "
        "'c', DATE'2024-01-01')",
        "named_struct('a', CAST(NULL AS STRUCT<b: ARRAY<MAP<STRING, DECIMAL(4,2)>>>), 'c', NULL)"],
    "STRUCT<t: TIMESTAMP, c: CHAR(3), `ü'$`: ARRAY<VARCHAR(2)>>": [
        "named_struct('t', TIMESTAMP_NTZ'2024-01-01 00:00:00', 'c', 'x', "
        "\"ü'$\", array('yz', NULL))"],
}  # fmt: skip
COLUMNS = {f"c{i}": kind for i, kind in enumerate(VALUES)}
DDL = "k INT, " + ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
ROWS = 6
ODD_KEYS = ("MAP<BINA", "MAP<STRU")


def row(number: int) -> list[str]:
    """The literals of one row; NULL if a type has no more values."""
    return [values[number] if number < len(values) else "NULL" for values in VALUES.values()]


def shown(frame) -> list[tuple]:
    """Values as Spark's texts, exact and without the limits of Python's types."""
    names = [name for name in frame.columns if name != "k"]
    json = "'ignoreNullFields', 'false'"
    return [
        tuple(found)
        for found in frame.selectExpr(
            "k",
            *(
                # to_json shows a map's keys by their address if they are not plain values.
                f"to_json(map_entries({n}), map({json}))" if COLUMNS[n][:8] in ODD_KEYS
                else f"to_json(struct({n}), map({json}))" if "<" in COLUMNS[n] else f"hex({n})"
                if COLUMNS[n] in ("STRING", "BINARY") else f"concat('<', string({n}), '>')"
                for n in names
            ),
        ).orderBy("k").collect()
    ]  # fmt: skip


@pytest.fixture(scope="module")
def expected(spark):
    """The values that Spark alone gives for the literals, with CHAR padded as in its tables."""
    wide = [
        "SELECT " + ", ".join([f"{n} AS k"] + [
            f"CAST({_padded(value, kind)} AS {_wide(kind)}) AS {name}"
            for value, (name, kind) in zip(row(n), COLUMNS.items(), strict=True)
        ]) for n in range(ROWS)
    ]  # fmt: skip
    return shown(spark.sql(" UNION ALL ".join(wide)))


def _wide(kind: str) -> str:
    for old, new in (("TIMESTAMP", "TIMESTAMP_NTZ"), ("CHAR(4)", "STRING"), ("VARSTRING", "STRING"),
                     ("VARCHAR(2)", "STRING"), ("CHAR(3)", "STRING")):  # fmt: skip
        kind = kind.replace(old, new)
    return kind


def _padded(value: str, kind: str) -> str:
    if kind == "CHAR(4)" and value != "NULL":
        return f"rpad({value}, 4, ' ')"
    return value.replace("'c', 'x'", "'c', 'x  '")


def values_rows(numbers) -> str:
    return ", ".join(f"({', '.join([str(n), *row(n)])})" for n in numbers)


@pytest.mark.parametrize("way", ["values", "select", "update", "merge"])
def test_every_value_comes_back_as_it_went_in(spark, acid, expected, way):
    acid.sql(f"CREATE TABLE t ({DDL})")
    source = f"(SELECT * FROM VALUES {values_rows(range(ROWS))} AS s(k, {', '.join(COLUMNS)}))"
    if way == "values":
        acid.sql(f"INSERT INTO t VALUES {values_rows(range(ROWS))}")
    elif way == "select":
        acid.sql(f"INSERT INTO t SELECT /*+ REPARTITION(2) */ * FROM {source} s")
    elif way == "update":
        acid.sql(f"INSERT INTO t SELECT * FROM {source} s")
        assert counts(acid, "UPDATE t SET k = k + 0, c0 = NOT NOT c0") == (0, ROWS, 0)
    else:
        acid.sql("INSERT INTO t (k) VALUES (0), (1), (2)")
        merge = f"MERGE INTO t USING {source} s ON t.k = s.k WHEN MATCHED THEN UPDATE SET * " \
                "WHEN NOT MATCHED THEN INSERT *"  # fmt: skip
        assert counts(acid, merge) == (ROWS - 3, 3, 0)
    assert shown(acid.sql("SELECT * FROM t")) == expected
    _others_read_the_same(acid)


def _others_read_the_same(acid):
    """pyorc and pyarrow agree with Spark on which values are null, and on the values of simple
    types."""
    found = acid.sql("SELECT row__id, k, c3, c4, c11, c14 FROM t").collect()
    live = {tuple(row[0]): row for row in found}
    seen = 0
    for path in bucket_files(acid):
        with open(path, "rb") as file:
            for event in pyorc.Reader(file, column_indices=None):
                key = (event[1], event[2], event[3])
                if event[0] == 0 and key in live:
                    found = live[key]
                    assert event[5][0] == found[1]
                    assert event[5][4] == found[2]
                    assert event[5][5] == found[3]
                    assert event[5][12] == found[4]
                    assert event[5][15] == (None if found[5] is None else bytes(found[5]))
                    seen += 1
    assert seen == len(live) == ROWS


def bucket_files(acid, name="t"):
    return sorted(Path(acid.warehouse, name).rglob("bucket_*"))


def test_the_files_follow_the_safe_write_profile(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT) "
             "CLUSTERED BY (id) INTO 3 BUCKETS")  # fmt: skip
    acid.sql("INSERT INTO t SELECT id, 'v', id % 2 FROM range(30)")
    acid.sql("INSERT INTO t VALUES (100, 'w', 0), (101, 'w', 7)")
    acid.sql("UPDATE t SET v = 'u' WHERE id % 3 = 0")
    acid.sql("DELETE FROM t WHERE id % 5 = 0")
    acid.sql("MERGE INTO t USING (SELECT id, 1 AS p FROM range(40)) s ON t.id = s.id "
             "WHEN MATCHED AND t.id > 20 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'm' "
             "WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'i', s.p)")  # fmt: skip
    root = Path(acid.warehouse, "t")
    for directory in {path.parent for path in bucket_files(acid)}:
        assert (directory / "_orc_acid_version").read_bytes() == b"2"
        names = sorted(p.name for p in directory.iterdir())
        assert names == ["_orc_acid_version", *sorted(n for n in names if n[0] == "b")]
        parsed = parse_directory(directory.name)
        for path in directory.glob("bucket_*"):
            _check_file(path, parsed)
    assert not [p for p in root.rglob("*") if p.name.startswith(("_tmp", "."))]
    assert all(any(p.is_file() for p in d.rglob("*")) for d in root.rglob("*") if d.is_dir())
    for number in range(1, 6):
        _deletes_are_a_statement_before_inserts(root, number)


def _check_file(path, directory):
    reader = pyorc.Reader(BytesIO(path.read_bytes()))
    metadata = reader.user_metadata
    events = list(reader)
    assert reader.schema.fields.keys() >= {"operation", "row"}
    assert str(reader.schema["row"]) == "struct<id:int,v:string>"
    assert metadata["hive.acid.version"] == b"2"
    deletes = "DELETE" in directory.kind.name
    kinds = b"0,0,%d" if deletes else b"%d,0,0"
    assert metadata["hive.acid.stats"] == kinds % len(events)
    last = events[-1]
    assert metadata["hive.acid.key.index"] == b"%d,%d,%d;" % last[1:4]
    keys = [event[1:4] for event in events]
    assert keys == sorted(set(keys))  # strictly ascending
    bucket_id = int(path.name.removeprefix("bucket_"))
    for operation, _, property_, _, write_id, row_ in events:
        assert operation == (2 if deletes else 0)
        assert (row_ is None) == deletes
        assert write_id == directory.min_write_id == directory.max_write_id
        assert bucket_codec.decode(property_).bucket_id == bucket_id
    assert pa_orc.ORCFile(path).nrows == len(events)


def _deletes_are_a_statement_before_inserts(root, write_id):
    found = [parse_directory(d.name) for d in root.rglob("*delta_*")]
    mine = [d for d in found if d.min_write_id == write_id]
    deletes = {d.statement_id for d in mine if "DELETE" in d.kind.name}
    inserts = {d.statement_id for d in mine if "DELETE" not in d.kind.name}
    assert not deletes or not inserts or max(deletes) < min(inserts)


NAMES = ["operation", "originaltransaction", "bucket", "rowid", "currenttransaction", "row",
         "with space", "dot.ted", "select", "日本", "__x", "rowId2", "c0", "_metadata",
         "writeid", "t", "s", "a:b,c"]  # fmt: skip


@pytest.mark.parametrize("partitioned", [False, True])
def test_any_name_may_be_a_columns(acid, partitioned):
    quoted = ["`" + name.replace("`", "``") + "`" for name in NAMES]
    columns = ", ".join(f"{name} INT" for name in quoted)
    acid.sql(f"CREATE TABLE t ({columns})" + (" PARTITIONED BY (`p q` INT)" * partitioned))
    extra = ", 1" * partitioned
    acid.sql(f"INSERT INTO t VALUES ({', '.join(map(str, range(len(NAMES))))}{extra})")
    acid.sql(f"INSERT INTO t SELECT {', '.join(['-1'] * len(NAMES))}{extra}")
    for number, name in enumerate(quoted):
        done = counts(acid, f"UPDATE t SET {name} = {name} + 100 WHERE {name} = {number}")
        assert done == (0, 1, 0), name
    acid.sql("MERGE INTO t USING t AS s ON t.`row` = s.`row` AND t.`bucket` = -1 "
             "WHEN MATCHED THEN UPDATE SET `operation` = s.`rowid` - 1, t.`dot.ted` = -5 "
             "WHEN NOT MATCHED AND s.`row` < 0 THEN INSERT *")  # fmt: skip
    acid.sql("DELETE FROM t WHERE `bucket` = 7777 OR `operation` IS NULL")
    found = ordered(r[: len(NAMES)] for r in table(acid))
    changed = [-1] * len(NAMES)
    changed[0], changed[7] = -2, -5
    assert found == ordered([tuple(changed), tuple(i + 100 for i in range(len(NAMES)))])
    assert acid.sql("SELECT * FROM t").columns[: len(NAMES)] == [n.lower() for n in NAMES]


@pytest.mark.parametrize("name", ["row__id", "ROW__ID", "__acidsql_action"])
def test_the_names_that_are_taken_are_refused(acid, name):
    with pytest.raises(Exception, match="the name is taken"):
        acid.sql(f"CREATE TABLE t (id INT, {name} INT)")


def test_a_timestamp_that_orc_cannot_hold_is_an_error_by_name(acid):
    acid.sql("CREATE TABLE t (at TIMESTAMP)")
    for source in ("VALUES (TIMESTAMP_NTZ'1969-12-31 23:59:59.5')",
                   "SELECT TIMESTAMP_NTZ'1969-12-31 23:59:59.5'"):  # fmt: skip
        with pytest.raises(WriteError, match="one second later"):
            acid.sql(f"INSERT INTO t {source}")
    assert table(acid) == []


def test_a_year_that_python_does_not_know(acid):
    acid.sql("CREATE TABLE t (d DATE)")
    for source in ("VALUES (DATE'+12345-06-07')", "SELECT DATE'+12345-06-07'"):
        assert counts(acid, f"INSERT INTO t {source}") == (1, 0, 0)
    found = acid.sql("SELECT string(d) FROM t").collect()
    assert [row[0] for row in found] == ["+12345-06-07"] * 2


@pytest.mark.parametrize("day", ["1582-10-05", "1582-10-14", "-4000-01-01"])
@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP"])
def test_days_that_sparks_orc_reader_would_show_as_others_are_not_written(acid, kind, day):
    acid.sql(f"CREATE TABLE t (d {kind}, a ARRAY<{kind}>)")
    for value in (f"{kind}'{day}', NULL", f"NULL, array({kind}'{day}')"):
        with pytest.raises(WriteError) as caught:
            acid.sql(f"INSERT INTO t SELECT {value}")
        assert caught.value.condition == "DATETIME_FIELD_OUT_OF_BOUNDS"
    assert table(acid) == []


def test_the_days_around_them_are_kept(acid):
    days = ["0001-01-01", "1582-10-04", "1582-10-15", "9999-12-31"]
    fill(
        acid, "t (d DATE, t TIMESTAMP)", *(f"DATE'{d}', TIMESTAMP_NTZ'{d} 23:59:59'" for d in days)
    )
    shown = acid.sql("SELECT string(d), string(t) FROM t").collect()
    assert sorted(map(tuple, shown)) == [(day, f"{day} 23:59:59") for day in days]


def test_texts_that_are_too_long_are_an_error_and_blanks_are_cut(acid):
    fill(acid, "t (c CHAR(2), v VARCHAR(2), a ARRAY<VARCHAR(2)>)")
    acid.sql("INSERT INTO t VALUES ('a   ', 'ab  ', array('ab   ', NULL))")
    assert table(acid) == [("a ", "ab", ["ab", None])]
    for bad in ("'abc', 'a', NULL", "'a', 'abc', NULL", "'a', 'a', array('abc')",
                "'a', 'a b', NULL"):  # fmt: skip
        with pytest.raises(ConstraintError) as caught:
            acid.sql(f"INSERT INTO t VALUES ({bad})")
        assert caught.value.condition == "EXCEED_LIMIT_LENGTH"
    with pytest.raises(ConstraintError):
        acid.sql("UPDATE t SET v = concat(v, 'x')")
    acid.sql("CREATE TABLE bars (`a|b` VARCHAR(2))")
    with pytest.raises(ConstraintError, match=r"column 'a\|b' of type VARCHAR\(2\) allows"):
        acid.sql("INSERT INTO bars SELECT concat('abc', 'd')")
    assert counts(acid, "UPDATE t SET v = 'z' WHERE c = 'a ' AND v = 'ab'") == (0, 1, 0)


@pytest.mark.classic
@needs("keeps_versions")
def test_a_stream_of_the_table_gives_the_same_values(acid, tmp_path):
    """Of a partitioned table, and after an overwrite too."""
    names = [name for name, kind in COLUMNS.items() if "<" not in kind or "CHAR(" not in kind]
    kinds = ", ".join(f"{name} {COLUMNS[name]}" for name in names)
    acid.sql(f"CREATE TABLE src (k INT, {kinds}) PARTITIONED BY (p STRING, q DATE)")

    def insert(how, *numbers):
        rows = []
        for number in numbers:
            known = dict(zip(COLUMNS, row(number), strict=True))
            place = ["'a/b=ü'" if number % 2 else "NULL", "DATE'1500-01-01'"]
            rows.append(", ".join([str(number), *(known[name] for name in names), *place]))
        acid.sql(f"INSERT {how} src VALUES " + ", ".join(f"({one})" for one in rows))

    def collect(batch, _):
        found.append((shown(batch.drop("p", "q")), ordered(batch.select("k", "p", "q").collect())))

    def run():
        writer = stream.writeStream.foreachBatch(collect)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        return found.pop()

    found: list = []
    insert("INTO", *range(ROWS - 1))
    stream = acid.spark.readStream.format("acidsql").option("table", "src")
    stream = stream.option("warehouse", acid.warehouse).load()
    now = acid.table("src")
    values, places = run()
    assert len(values) == ROWS - 1
    assert values == shown(now.drop("p", "q"))
    assert places == ordered(now.select("k", "p", "q").collect())
    insert("OVERWRITE", ROWS - 1)
    values, _ = run()
    assert values == shown(acid.table("src").drop("p", "q").where(f"k = {ROWS - 1}"))
    assert not found
