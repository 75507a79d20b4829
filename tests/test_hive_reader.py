"""A real Hive 4.0.1 reads acidsql's tables: the same rows under the same row ids.

The tests are skipped if Maven or a JDK is missing, or if Maven cannot fetch Hive's jars.
"""

from __future__ import annotations

from contextlib import closing

import changed_types
import pytest
from hive_reader import HiveReader, UnavailableError
from hive_values import rows_of

from acidsql.acid.layout import DEFAULT_PARTITION
from acidsql.storage.folding import newest_run

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def hive(tmp_path_factory):
    try:
        reader = HiveReader(tmp_path_factory.mktemp("hive"))
    except UnavailableError as error:
        pytest.skip(str(error))
    with closing(reader):
        yield reader


@pytest.fixture
def same_in_hive(acid, hive):
    """Compare a table's rows and row ids, as acidsql and both of Hive's readers return them."""

    def compare(name, columns, partition_columns=(), insert_only=False):
        ours = rows_of(
            acid.table(name, row_id=not insert_only).toArrow(),
            [kind for _, kind in [*columns, *partition_columns]],
        )
        for vectorized in (False, True):
            rows = hive.rows(
                f"{acid.warehouse}/{name}", columns, partition_columns,
                vectorized=vectorized, insert_only=insert_only,
            )  # fmt: skip
            rows = [
                (None if insert_only else row_id, with_null_partitions(values, partition_columns))
                for row_id, values in rows
            ]
            assert sorted(rows, key=repr) == ours, f"{vectorized=}"
        return ours

    return compare


def with_null_partitions(values, partition_columns):
    """Use NULL for NULL in string partition columns: here alone Hive's rows differ.

    Hive reads the directory's name as text there. Spark, Trino, Impala and acidsql read NULL.
    """
    first = len(values) - len(partition_columns)
    return values[:first] + [
        None if kind == "string" and value == DEFAULT_PARTITION else value
        for value, (_, kind) in zip(values[first:], partition_columns, strict=True)
    ]


def run(acid, *statements):
    for statement in statements:
        acid.sql(statement)


PLAIN = [("id", "int"), ("name", "string")]
MERGE = """
    MERGE INTO {table} t USING (SELECT CAST(id AS INT) AS id FROM range(5, 25)) s ON t.id = s.id
    WHEN MATCHED AND t.id % 3 = 0 THEN DELETE
    WHEN MATCHED THEN UPDATE SET name = concat(name, '!')
    WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'merged')
"""
CHANGES = [
    "INSERT INTO {table} VALUES (1, 'a'), (2, NULL), (3, 'é€😀')",
    "INSERT INTO {table} SELECT CAST(id AS INT), concat('n', id) FROM range(4, 20, 1, 3)",
    "UPDATE {table} SET name = upper(name) WHERE id % 2 = 0",
    "DELETE FROM {table} WHERE id IN (1, 7, 8)",
    MERGE,
    "UPDATE {table} SET name = 'again' WHERE id > 20 RETURNING old.name",
]


def test_hive_reads_a_plain_table_after_all_kinds_of_statement(acid, same_in_hive):
    acid.sql("CREATE TABLE plain (id INT, name STRING)")
    for statement in CHANGES:
        acid.sql(statement.format(table="plain"))
        rows = same_in_hive("plain", PLAIN)
    assert len(rows) > 10


def test_hive_reads_a_bucketed_table(acid, same_in_hive):
    acid.sql("CREATE TABLE bucketed (id INT, name STRING) CLUSTERED BY (id) INTO 4 BUCKETS")
    run(acid, *(statement.format(table="bucketed") for statement in CHANGES))
    acid.sql("UPDATE bucketed SET id = id + 1 WHERE id < 12")
    assert len({row_id[1] & 0x0FFF0000 for row_id, _ in same_in_hive("bucketed", PLAIN)}) == 4


def test_hive_reads_what_overwrote_and_what_came_after(acid, same_in_hive):
    acid.sql("CREATE TABLE over (id INT, name STRING)")
    run(
        acid,
        "INSERT INTO over VALUES (1, 'old')",
        "INSERT OVERWRITE over VALUES (2, 'new'), (3, 'new')",
        "UPDATE over SET name = 'newer' WHERE id = 3",
    )
    assert len(same_in_hive("over", PLAIN)) == 2
    acid.sql("INSERT OVERWRITE over SELECT * FROM over WHERE false")
    assert same_in_hive("over", PLAIN) == []
    acid.sql("INSERT INTO over VALUES (4, 'last')")
    assert len(same_in_hive("over", PLAIN)) == 1


def test_hive_reads_what_transactions_of_several_statements_left(acid, same_in_hive):
    acid.sql("CREATE TABLE several (id INT, name STRING)")
    acid.sql("INSERT INTO several VALUES (0, 'old'), (9, 'old')")
    with acid.transaction() as transaction:
        run(
            acid,
            "INSERT INTO several VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
            "UPDATE several SET name = concat(name, '!') WHERE id < 4",
            "UPDATE several SET name = concat(name, '?') WHERE id < 2",
            "DELETE FROM several WHERE id IN (2, 9)",
        )
        transaction.savepoint("here")
        run(acid, "DELETE FROM several", "INSERT INTO several VALUES (99, 'undone')")
        transaction.rollback("here")
        acid.sql(MERGE.format(table="several"))
        inside = sorted(map(tuple, acid.table("several", row_id=True).collect()))
    rows = same_in_hive("several", PLAIN)
    assert {tuple(values) for _, values in rows} >= {(0, "old!?"), (1, "a!?"), (3, "c!"), (4, "d")}
    assert len(rows) == len(inside) == 24
    with acid.transaction():
        run(
            acid,
            "INSERT INTO several VALUES (5, 'hidden')",
            "INSERT OVERWRITE several VALUES (6, 'x')",
        )
    assert len(same_in_hive("several", PLAIN)) == 1


def test_hive_reads_partitions_with_special_characters(acid, same_in_hive):
    acid.sql("CREATE TABLE parts (id INT, name STRING) PARTITIONED BY (p STRING, q INT)")
    texts = ["a b", "x/y:z=50%", "q'uote\"{}[]^~#*?", "ünï€", "\\back", "plain+plus"]
    run(
        acid,
        "INSERT INTO parts PARTITION (p = 'static', q = 0) VALUES (0, 'zero')",
        "INSERT INTO parts VALUES (90, 'n', NULL, 3), (91, 'e', 'x', NULL)",
    )
    for number, text in enumerate(texts):
        acid.sql("INSERT INTO parts VALUES (:n, 'x', :p, 1)", {"n": number, "p": text})
    run(
        acid,
        "INSERT INTO parts SELECT id + 100, name, p, q FROM parts",
        "UPDATE parts SET name = 'updated' WHERE id % 2 = 1",
        "DELETE FROM parts WHERE id IN (2, 104)",
        "UPDATE parts SET p = 'moved: here', q = q + 1 WHERE id IN (1, 90, 103)",
    )
    rows = same_in_hive("parts", PLAIN, [("p", "string"), ("q", "int")])
    assert {values[2] for _, values in rows} >= set(texts)


TYPES = [
    ("id", "int"), ("ti", "tinyint"), ("si", "smallint"), ("b", "bigint"), ("f", "float"),
    ("d", "double"), ("dec38", "decimal(38,18)"), ("dec5", "decimal(5,2)"), ("s", "string"),
    ("vc", "varchar(20)"), ("ch", "char(10)"), ("bo", "boolean"), ("dt", "date"),
    ("ts", "timestamp"), ("bin", "binary"), ("a", "array<int>"), ("m", "map<string,double>"),
    ("st", "struct<x:int,y:string,z:array<struct<q:date,r:decimal(10,2)>>>"),
]  # fmt: skip
TYPE_ROWS = """
    (1, 127Y, 32767S, 9223372036854775807, CAST('3.4028235e38' AS FLOAT), 1.7976931348623157e308D,
     99999999999999999999.999999999999999999BD, 999.99BD, 'é€', 'vc', 'ch', true,
     DATE'9999-12-31', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', X'00ff', array(1, NULL),
     map('k', 2.5D), named_struct('x', 1, 'y', 'yy', 'z',
       array(named_struct('q', DATE'2020-01-01', 'r', 1.50BD)))),
    (2, -128Y, -32768S, -9223372036854775807 - 1, CAST('NaN' AS FLOAT), CAST('-Infinity' AS DOUBLE),
     -0.000000000000000001BD, -999.99BD, '', '', '', false, DATE'0001-01-01',
     TIMESTAMP_NTZ'0001-01-01 00:00:00', X'', array(), map(), NULL),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL),
    (4, 0Y, 0S, 0L, CAST(0.1 AS FLOAT), 0.1D, 0BD, 0BD, ' ', ' x', ' x', false, DATE'1582-10-15',
     TIMESTAMP_NTZ'1969-12-31 23:59:58.5', X'01', NULL, NULL,
     named_struct('x', NULL, 'y', NULL, 'z', NULL)),
    (5, 1Y, 1S, 1L, CAST(1 AS FLOAT), 1D, 1BD, 1BD, 'gap', 'x', 'x', true, DATE'1500-02-28',
     TIMESTAMP_NTZ'2021-03-14 02:30:00', X'02', NULL, NULL, NULL)
"""


def test_hive_reads_all_types_and_their_extremes(acid, same_in_hive):
    acid.sql(f"CREATE TABLE kinds ({', '.join(f'{name} {kind}' for name, kind in TYPES)})")
    acid.sql(f"INSERT INTO kinds VALUES {TYPE_ROWS}")
    assert len(same_in_hive("kinds", TYPES)) == 5
    acid.sql("INSERT INTO kinds SELECT id + 10 AS id, * EXCEPT (id) FROM kinds")
    acid.sql("UPDATE kinds SET s = 'updated' WHERE id IN (1, 3, 12)")
    assert len(same_in_hive("kinds", TYPES)) == 10


def test_hive_reads_columns_called_like_the_formats_own(acid, same_in_hive):
    names = ["operation", "bucket", "row", "rowid", "currenttransaction"]
    acid.sql(f"CREATE TABLE traps ({', '.join(f'`{name}` BIGINT' for name in names)})")
    acid.sql("INSERT INTO traps SELECT id, id + 1, id + 2, id + 3, id + 4 FROM range(10)")
    run(acid, "DELETE FROM traps WHERE bucket = 4", "UPDATE traps SET `row` = 0 WHERE rowid = 8")
    assert len(same_in_hive("traps", [(name, "bigint") for name in names])) == 9


def test_hive_reads_columns_that_were_added_renamed_and_widened(acid, same_in_hive):
    run(
        acid,
        "CREATE TABLE evolved (a TINYINT, b SMALLINT, c INT, d BIGINT, e FLOAT, f DECIMAL(5, 2), "
        "g VARCHAR(3), h INT, i CHAR(3), j INT)",
        "INSERT INTO evolved VALUES (-128, 32767, -2147483648, 9223372036854775807, 0.5, -123.45, "
        "'abc', 7, 'x', 1), (1, 2, 3, 4, 5, 6, NULL, -8, 'yz', NULL)",
        "ALTER TABLE evolved ALTER COLUMN a TYPE INT, b TYPE DECIMAL(7, 1), c TYPE BIGINT, "
        "d TYPE DECIMAL(20, 0), e TYPE DOUBLE, f TYPE DECIMAL(9, 4), g TYPE STRING, "
        "h TYPE BIGINT, i TYPE CHAR(5), j TYPE DOUBLE",
        "ALTER TABLE evolved RENAME COLUMN c TO renamed",
        "ALTER TABLE evolved ADD COLUMNS (c STRING, z DATE)",
        "INSERT INTO evolved VALUES (70000, 1.5, 5000000000, 1, 0.25, 1.2345, 'long text', -9, "
        "'abcde', 0.5, 'new', DATE'2020-01-01')",
        "UPDATE evolved SET c = 'set' WHERE a = 1",
    )  # fmt: skip
    same_in_hive(
        "evolved",
        [("a", "int"), ("b", "decimal(7,1)"), ("renamed", "bigint"), ("d", "decimal(20,0)"),
         ("e", "double"), ("f", "decimal(9,4)"), ("g", "string"), ("h", "bigint"),
         ("i", "char(5)"), ("j", "double"), ("c", "string"), ("z", "date")],
    )  # fmt: skip


INSERT_ONLY = "TBLPROPERTIES ('transactional_properties' = 'insert_only')"


def test_hive_shows_null_in_fields_that_a_struct_got_later(acid, same_in_hive):
    acid.sql(
        "CREATE TABLE fields (id INT, st STRUCT<q: INT, p: STRUCT<x: INT>>, "
        "a ARRAY<STRUCT<q: INT>>, m MAP<STRING, STRUCT<q: INT>>)"
    )
    old = "named_struct('q', {0}, 'p', named_struct('x', 2)), array(named_struct('q', 3), NULL)"
    old += ", map('k', named_struct('q', 4))"
    run(
        acid,
        f"INSERT INTO fields VALUES (1, {old.format(1)}), (2, NULL, NULL, NULL)",
        f"INSERT INTO fields VALUES (3, {old.format(5)})",
        "MERGE WITH SCHEMA EVOLUTION INTO fields t USING (SELECT explode(array(1, 4)) AS id, "
        "named_struct('r', 9, 'p', named_struct('y', 8, 'x', 7), 'q', 6) AS st, "
        "array(named_struct('r', 'n', 'q', 5)) AS a, "
        "map('k', named_struct('r', 4, 'q', 3)) AS m) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "DELETE FROM fields WHERE id = 3",
        "INSERT INTO fields BY NAME SELECT 5 AS id",
    )
    kinds = [
        ("id", "int"),
        ("st", "struct<q:int,p:struct<x:int,y:int>,r:int>"),
        ("a", "array<struct<q:int,r:string>>"),
        ("m", "map<string,struct<q:int,r:int>>"),
    ]
    assert len(same_in_hive("fields", kinds)) == 4
    for kind in ("minor", "major"):
        acid.compact("fields", kind=kind, wait=True)
        assert len(same_in_hive("fields", kinds)) == 4
    run(
        acid,
        "CREATE TABLE only (id INT, st STRUCT<q: INT>) "
        "TBLPROPERTIES ('transactional_properties' = 'insert_only')",
        "INSERT INTO only VALUES (1, named_struct('q', 1)), (2, NULL)",
        "INSERT WITH SCHEMA EVOLUTION INTO only BY NAME "
        "SELECT 3 AS id, named_struct('r', 3, 'q', 2) AS st",
    )
    kinds = [("id", "int"), ("st", "struct<q:int,r:int>")]
    assert len(same_in_hive("only", kinds, insert_only=True)) == 3


@pytest.mark.parametrize("more", ["", INSERT_ONLY])
def test_hive_casts_the_values_of_old_files_in_the_same_way(acid, same_in_hive, more):
    ddl = ", ".join(f"{name} {kind}" for name, kind in changed_types.columns(new=False))
    run(
        acid,
        f"CREATE TABLE evolved ({ddl}) {more}",
        f"INSERT INTO evolved {changed_types.old_rows()}",
        f"ALTER TABLE evolved {changed_types.alterations()}",
        "INSERT INTO evolved SELECT id + 100, * EXCEPT (id) FROM evolved",
    )
    kinds = [(name, kind.lower()) for name, kind in changed_types.columns(new=True)]
    ours = same_in_hive("evolved", kinds, insert_only=bool(more))
    assert len(ours) == 2 * changed_types.ROWS


FEW_DELTAS = "TBLPROPERTIES ('compactorthreshold.hive.compactor.delta.num.threshold' = '4')"


def test_hive_reads_an_insert_only_table(acid, same_in_hive):
    acid.sql(f"CREATE TABLE plain (id INT, name STRING) {INSERT_ONLY}")
    run(
        acid,
        "INSERT INTO plain VALUES (1, 'a'), (2, NULL)",
        "INSERT INTO plain SELECT CAST(id AS INT), 'é' FROM range(3, 9, 1, 3)",
    )
    assert len(same_in_hive("plain", PLAIN, insert_only=True)) == 8
    with acid.transaction():
        run(acid, "INSERT INTO plain VALUES (9, 'b')", "INSERT INTO plain VALUES (10, 'c')")
    assert len(same_in_hive("plain", PLAIN, insert_only=True)) == 10
    acid.sql("INSERT OVERWRITE plain SELECT * FROM plain WHERE false")
    assert same_in_hive("plain", PLAIN, insert_only=True) == []
    acid.sql("INSERT INTO plain VALUES (11, 'd')")
    assert len(same_in_hive("plain", PLAIN, insert_only=True)) == 1


def test_hive_reads_an_insert_only_table_of_all_types_and_partitions(acid, same_in_hive):
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES)
    acid.sql(f"CREATE TABLE kinds ({columns}) PARTITIONED BY (p STRING) {INSERT_ONLY}")
    acid.sql(f"INSERT INTO kinds PARTITION (p = 'x/y') VALUES {TYPE_ROWS}")
    acid.sql("INSERT INTO kinds SELECT * EXCEPT (p), concat(p, '2') FROM kinds")
    assert len(same_in_hive("kinds", TYPES, [("p", "string")], insert_only=True)) == 10


def test_hive_reads_what_load_data_brought(acid, spark, same_in_hive, tmp_path):
    files = str(tmp_path / "files")
    rows = spark.range(0, 30, 1, 3).selectExpr("CAST(id AS INT) id", "concat('n', id) name")
    rows.write.orc(files)
    acid.sql("CREATE TABLE loaded (id INT, name STRING)")
    acid.sql("INSERT INTO loaded VALUES (100, 'first')")
    acid.sql(f"LOAD DATA LOCAL INPATH '{files}' INTO TABLE loaded")
    assert len(same_in_hive("loaded", PLAIN)) == 31
    acid.sql("DELETE FROM loaded WHERE id IN (0, 29, 15)")
    acid.sql("UPDATE loaded SET name = 'u' WHERE id = 7")
    assert len(same_in_hive("loaded", PLAIN)) == 28
    acid.sql(f"LOAD DATA LOCAL INPATH '{files}' OVERWRITE INTO TABLE loaded")
    acid.sql("DELETE FROM loaded WHERE id = 3")
    assert len(same_in_hive("loaded", PLAIN)) == 29


def test_hive_reads_a_table_made_of_sparks_files(acid, spark, same_in_hive):
    place = f"{acid.warehouse}/made"
    rows = spark.range(0, 30, 1, 3).selectExpr("CAST(id AS INT) id", "concat('n', id) name")
    rows.write.orc(place)
    acid.sql(f"CREATE TABLE made (id INT, name STRING) LOCATION '{place}'")
    assert len(same_in_hive("made", PLAIN)) == 30
    acid.sql(MERGE.format(table="made"))
    assert len(same_in_hive("made", PLAIN)) > 20


def test_hive_reads_an_insert_only_table_that_became_full_acid(acid, same_in_hive):
    acid.sql(f"CREATE TABLE became (id INT, name STRING) {INSERT_ONLY}")
    run(
        acid,
        "INSERT INTO became VALUES (1, 'a')",
        "INSERT OVERWRITE became SELECT CAST(id AS INT), 'n' FROM range(0, 12, 1, 3)",
        "INSERT INTO became VALUES (100, 'b'), (101, 'c')",
        "ALTER TABLE became SET TBLPROPERTIES ('transactional_properties' = 'default')",
    )
    assert len(same_in_hive("became", PLAIN)) == 14
    acid.sql(MERGE.format(table="became"))
    acid.sql("DELETE FROM became WHERE id = 101")
    assert len(same_in_hive("became", PLAIN)) > 20


@pytest.mark.parametrize(
    ("kind", "buckets"),
    [
        ("minor", ""),
        ("major", ""),
        ("rebalance", ""),
        ("minor", "CLUSTERED BY (id) INTO 2 BUCKETS"),
        ("major", "CLUSTERED BY (id) INTO 2 BUCKETS"),
    ],
)
def test_hive_reads_what_was_compacted_and_what_came_after(
    acid, same_in_hive, monkeypatch, kind, buckets
):
    acid.sql(f"CREATE TABLE compacted (id INT, name STRING) {buckets} {FEW_DELTAS}")
    run(acid, *(statement.format(table="compacted") for statement in CHANGES))
    before = same_in_hive("compacted", PLAIN)
    acid.sql(f"ALTER TABLE compacted COMPACT '{kind}' AND WAIT")
    after = same_in_hive("compacted", PLAIN)
    if kind != "rebalance":
        assert after == before
    assert [row for _, row in after] == [row for _, row in before] or kind == "rebalance"
    run(
        acid,
        "UPDATE compacted SET name = 'later' WHERE id IN (2, 4, 21)",
        "DELETE FROM compacted WHERE id = 5",
        "INSERT INTO compacted VALUES (100, 'new')",
        "INSERT INTO compacted VALUES (101, 'newer')",
    )
    same_in_hive("compacted", PLAIN)
    monkeypatch.setattr(newest_run, "SIZE_RATIO", 0)  # older deltas are always too large
    acid.sql(
        "ALTER TABLE compacted COMPACT 'minor' AND WAIT "
        "WITH OVERWRITE TBLPROPERTIES ('acidsql.compactor.strategy'='size_tiered')"
    )
    merged = 5 if kind == "minor" else 2
    assert f"read {merged} directories" in str(acid.last)
    same_in_hive("compacted", PLAIN)
    acid.sql("ALTER TABLE compacted COMPACT 'minor' AND WAIT")
    same_in_hive("compacted", PLAIN)


@pytest.mark.parametrize("kind", ["minor", "major"])
def test_hive_reads_a_transaction_that_deleted_its_own_rows_when_it_was_compacted(
    acid, same_in_hive, kind
):
    """Hive's vectorised reader does not apply a delete event to a row of the same write id."""
    acid.sql("CREATE TABLE own (id INT, name STRING)")
    with acid.transaction():
        acid.sql("INSERT INTO own VALUES (1, 'a'), (2, 'b')")
        acid.sql("DELETE FROM own WHERE id = 1")
        acid.sql("UPDATE own SET name = 'c' WHERE id = 2")
    acid.sql(f"ALTER TABLE own COMPACT '{kind}' AND WAIT")
    assert len(same_in_hive("own", PLAIN)) == 1


@pytest.mark.parametrize("kind", ["minor", "major"])
def test_hive_reads_an_insert_only_table_that_was_compacted(acid, same_in_hive, kind):
    acid.sql(
        "CREATE TABLE few (id INT, name STRING) "
        "TBLPROPERTIES ('transactional_properties'='insert_only')"
    )
    run(acid, *(f"INSERT INTO few VALUES ({id}, 'a')" for id in range(3)))
    acid.sql(f"ALTER TABLE few COMPACT '{kind}' AND WAIT")
    assert len(same_in_hive("few", PLAIN, insert_only=True)) == 3
