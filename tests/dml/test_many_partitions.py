"""Of a table with many partitions only the needed ones are listed: counted, not timed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from kit import calls_of, ordered, rows
from over_hive import needs

from acidsql.acid.table import Column, Partition, Table, TableName
from acidsql.costs import FastPath
from acidsql.errors import TransientTxnError
from acidsql.plan import locking
from acidsql.statements.context.current_txn import Transactions
from acidsql.statements.context.snapshot_catalog import SnapshotCatalog
from acidsql.statements.queries import statement_demands
from acidsql.storage.reading.pruning import partition_columns, source_partitions


@pytest.fixture
def t(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), 'a', CAST(id AS INT) FROM range(0, 60, 1, 2)")
    return acid


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET v = 'b' WHERE p = 7",
        "DELETE FROM t WHERE p IN (7, 1000) AND v = 'a'",
        "MERGE INTO t USING (VALUES (7), (8)) AS s(id) ON t.id = s.id AND t.p = 7 "
        "WHEN MATCHED THEN DELETE",
    ],
)
def test_only_the_partitions_that_a_statement_can_change_are_listed(t, statement):
    t.sql(statement)
    assert t.last.costs.listed_directories == 1
    assert rows(t, "SELECT count(*) FROM t WHERE v = 'a'") == [(59,)]


MERGE = (
    "MERGE INTO t USING {} s ON t.id = s.id AND t.p = s.p WHEN MATCHED THEN UPDATE SET v = 'new' "
    "WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'in', s.p)"
)


@pytest.mark.classic
def test_a_merge_lists_the_partitions_that_its_source_has_rows_for(t):
    t.sql("CREATE TABLE u (id INT, p INT)")
    t.sql("INSERT INTO u VALUES (3, 3), (50, 50), (3, 50), (77, 77), (9, NULL)")
    t.sql(MERGE.format("u"))
    assert t.last.costs.listed_directories == 2 + 1  # those of 3 and 50, and the source
    assert FastPath.SOURCE_PARTITIONS in t.last.costs.fast_paths
    changed = "SELECT id, v, p FROM t WHERE v <> 'a'"
    assert rows(t, changed) == ordered(
        [(3, "new", 3), (50, "new", 50), (3, "in", 50), (77, "in", 77), (9, "in", None)]
    )


@pytest.mark.parametrize(
    "source",
    [
        "(SELECT id, id AS p FROM range(3, 5))",  # of another type
        # Are they the same twice?.
        "(SELECT INT(id), INT(id) AS p FROM range(3, 9) ORDER BY id LIMIT 2)",
        "(SELECT INT(id), INT(id) AS p FROM range(3, 2000))",  # too many
    ],
)
def test_a_source_that_cannot_tell_leaves_all_partitions_in(t, source):
    t.sql(MERGE.format(source).partition("WHEN NOT")[0])
    assert t.last.costs.listed_directories == 60
    assert rows(t, "SELECT id, v FROM t WHERE id < 4 AND v = 'new'") == [(3, "new")]


@pytest.mark.parametrize("columns", ["id, 4 AS p, id AS P", "id, id AS P"])
def test_a_session_may_tell_names_by_case(t, spark, columns):
    source = f"(SELECT {columns} FROM (SELECT INT(id) AS id FROM range(3, 4)))"
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        t.sql(MERGE.format(source).replace("s.p", "s.P"))
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert rows(t, "SELECT id, p FROM t WHERE v <> 'a'") == [(3, 3)]


def test_where_the_target_alone_matters_no_partition_is_left_out(t):
    t.sql(
        "MERGE INTO t USING (SELECT 3 AS id, 3 AS p) s ON t.id = s.id AND t.p = s.p "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert t.last.costs.listed_directories == 60
    assert rows(t, "SELECT id FROM t") == [(3,)]


def test_a_source_without_rows_changes_nothing(t):
    t.sql(MERGE.format("(SELECT id, p FROM t WHERE p > 100)"))
    assert rows(t, "SELECT count(*) FROM t WHERE v = 'a'") == [(60,)]


@pytest.mark.classic
def test_a_source_that_changes_after_it_was_asked_for_partitions_is_refused(
    t, spark, tmp_path, monkeypatch
):
    path = str(tmp_path / "source")
    spark.sql("SELECT 3 AS id, 3 AS p").write.parquet(path)
    asked = source_partitions.source_predicate

    def ask(*args):
        found = asked(*args)
        spark.sql("SELECT 4 AS id, 4 AS p").write.mode("overwrite").parquet(path)
        spark.catalog.refreshByPath(path)
        return found

    monkeypatch.setattr(statement_demands, "source_predicate", ask)
    with pytest.raises(TransientTxnError, match="was changed while"):
        t.sql(MERGE.format(f"(SELECT * FROM parquet.`{path}`)"))
    assert rows(t, "SELECT count(*) FROM t WHERE v = 'a'") == [(60,)]


@pytest.mark.parametrize(
    ("more", "is_asked"),
    [
        ("t.p = 3", False),
        ("t.p IN (3, 7)", False),
        ("s.p IN (3, 7)", False),
        ("t.p IN (1, 2, 3, 4, 5, 6, 7, 8, 9)", True),
        ("t.p < 20", True),
        ("t.id = 3", True),
    ],
)
@pytest.mark.classic
def test_a_source_is_not_asked_for_partitions_that_the_text_names(t, more, is_asked):
    # Spark does not know its value as a constant.
    source = "(SELECT INT(id), INT(id) AS p FROM range(3, 4))"
    merge = MERGE.format(source).partition("WHEN NOT")[0]
    t.sql(merge.replace("t.p = s.p", f"t.p = s.p AND {more}"))
    costs = t.last.costs
    assert (FastPath.SOURCE_PARTITIONS in costs.fast_paths) is is_asked
    assert costs.listed_directories == (1 if is_asked else more.count(",") + 1)
    assert rows(t, "SELECT id FROM t WHERE v = 'new'") == [(3,)]


def test_a_partition_that_comes_between_is_seen(t):
    t.sql("INSERT INTO t VALUES (100, 'a', 100)")
    t.sql("UPDATE t SET v = 'b' WHERE p >= 58")
    assert t.last.costs.listed_directories == 3
    assert rows(t, "SELECT id FROM t WHERE v = 'b'") == [(100,), (58,), (59,)]


def test_one_footer_tells_the_names_of_columns_for_all_that_a_statement_wrote(t):
    t.sql("INSERT INTO t SELECT id + 100, v, p FROM t")
    assert rows(t, "SELECT count(*) FROM t") == [(120,)]
    assert t.costs.opened_files == 2


@pytest.mark.parametrize(
    "values", [["a", "b"], ["a b", "c%d", "e=f", "g/h", "ü+&", "", None], ["x'y", 'z"', "\\", "#?"]]
)
def test_rows_show_the_partition_of_their_files_path(acid, values):
    acid.sql("CREATE TABLE u (id INT) PARTITIONED BY (p STRING, d DATE)")
    for number, value in enumerate(values):
        acid.sql(f"INSERT INTO u VALUES ({number}, ?, DATE'2024-01-0{number + 1}')", [value])
    acid.sql("INSERT INTO u SELECT id + 100, p, d FROM u")
    acid.sql("DELETE FROM u WHERE id = 100")
    assert rows(acid, "SELECT id, p, CAST(d AS STRING) FROM u") == ordered(
        (number + more, value or None, f"2024-01-0{number + 1}")
        for number, value in enumerate(values)
        for more in (0, 100)
        if number + more != 100
    )
    assert rows(acid, "SELECT id FROM u WHERE d = DATE'2024-01-02'") == [(1,), (101,)]


def test_files_of_one_size_are_told_apart_by_their_paths(acid):
    acid.sql("CREATE TABLE u (id INT) PARTITIONED BY (p INT)")
    for partition in range(1, 5):
        acid.sql(f"INSERT INTO u VALUES (1, {partition})")
    acid.sql("INSERT INTO u SELECT id, 4 FROM range(2, 500, 1, 1)")
    sizes = [Path(row.path).stat().st_size for row in acid.files("u").collect() if row.rows]
    assert len(sizes) == 5 > len(set(sizes)) > 1
    assert rows(acid, "SELECT p, count(*) FROM u GROUP BY p") == [(1, 1), (2, 1), (3, 1), (4, 499)]
    acid.sql("DELETE FROM u WHERE id = 1 AND p = 2 OR id > 2")
    assert rows(acid, "SELECT * FROM u") == [(1, 1), (1, 3), (1, 4), (2, 4)]
    assert rows(acid, "SELECT id FROM u WHERE p = 1") == [(1,)]


@pytest.mark.parametrize("checksum", [None, lambda name: 7])
def test_deletes_meet_the_rows_of_their_own_partition_however_many_there_are(
    acid, monkeypatch, checksum
):
    monkeypatch.setattr(partition_columns, "_FEW_PARTITIONS", 0)
    if checksum is not None:  # two partitions have the same checksum, so they are numbered
        monkeypatch.setattr(partition_columns, "_checksum", checksum)
    acid.sql("CREATE TABLE u (id INT) PARTITIONED BY (p STRING)")
    acid.sql("INSERT INTO u SELECT CAST(id AS INT), concat('ü ', id % 4) FROM range(0, 40, 1, 1)")
    # All partitions have rows with the same row ids, and each loses other rows.
    for rest in range(3):
        acid.sql(f"DELETE FROM u WHERE p = 'ü {rest}' AND id % 3 = {rest}")
    left = [(i, f"ü {i % 4}") for i in range(40) if i % 4 == 3 or i % 3 != i % 4]
    assert rows(acid, "SELECT id, p FROM u") == ordered(left)


def test_the_number_of_one_of_many_partitions_is_made_of_its_name():
    numbers = partition_columns.partition_numbers([f"p={n}" for n in range(1000)])
    assert len(set(numbers.values())) == 1000
    assert partition_columns.partition_number_sql("d", numbers) == "crc32(d)"


@pytest.mark.parametrize(("most", "locked"), [(60, 60), (59, 1)])
def test_of_many_partitions_a_statement_locks_the_table(t, monkeypatch, most, locked):
    monkeypatch.setattr(locking, "PARTITION_LOCKS_MAX", most)
    t.sql("BEGIN")
    t.sql("UPDATE t SET v = 'b' WHERE p >= 0 AND id = 3")
    locks = [row for row in rows(t, "SHOW LOCKS t") if row[6] != "SHARED_READ"]
    assert len(locks) == locked
    assert {row[3] is None for row in locks} == {locked == 1}
    t.sql("COMMIT")
    assert rows(t, "SELECT id FROM t WHERE v = 'b'") == [(3,)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM t",
        "INSERT INTO t VALUES (1, 'a', 1)",
        "UPDATE t SET v = 'b' WHERE id = 3",
        "DELETE FROM t WHERE id = 3",
    ],
)
def test_each_statement_asks_the_store_for_the_partitions_once(t, monkeypatch, statement):
    asked = calls_of(monkeypatch, t.metastore, "partitions")
    t.sql(statement)
    assert len(asked) == 1


def test_known_partitions_and_changed_ones_are_not_compared_one_by_one(monkeypatch):
    name, compared, equal = TableName("d", "t"), [0], Partition.__eq__

    def compare(one, other):
        compared[0] += 1
        return equal(one, other)

    monkeypatch.setattr(Partition, "__eq__", compare)
    known = [Partition((str(n),), f"/t/p={n}") for n in range(3000)]
    own = [Partition((str(n),), f"/t/p={n}") for n in range(2500, 3500)]
    store = SimpleNamespace(partitions=lambda _: list(known))
    transactions = Transactions(None, None)
    txn = SimpleNamespace(catalog_changes=lambda _: [])
    transactions.current = SimpleNamespace(txn=txn, partitions=lambda: {name: own})
    catalog = SnapshotCatalog(store, None, transactions)
    found = catalog.partitions(Table(name, "/t", (), (Column("p", "int"),)))
    assert [one.values for one in found] == [(str(n),) for n in range(3500)]
    assert compared[0] <= 1000


OF_ONE = "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id "
OF_CHANGES = (
    "MERGE INTO t USING (SELECT u.id FROM u JOIN table_changes('u', 1) c ON u.id = c.id "
    "WHERE u.id = 1) s ON t.id = s.id "
)


@pytest.mark.parametrize(
    "merge",
    [
        OF_ONE + "AND t.v IN (SELECT v FROM u) WHEN MATCHED THEN UPDATE SET v = 'b'",
        OF_ONE + "WHEN MATCHED AND EXISTS (SELECT 1 FROM u) THEN UPDATE SET v = 'b'",
        OF_ONE + "WHEN MATCHED THEN UPDATE SET v = (SELECT max(w) FROM u)",
        pytest.param(
            OF_CHANGES + "WHEN MATCHED THEN UPDATE SET v = 'b'", marks=needs("keeps_versions")
        ),
    ],
)
def test_merge_reads_a_table_of_many_partitions_beside_its_source(acid, merge):
    """The listing of u asks for the queries' demands before the source is filled."""
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("INSERT INTO t VALUES (1, 'a'), (20, 'a')")
    acid.sql("CREATE TABLE u (id INT, v STRING, w STRING) PARTITIONED BY (p STRING)")
    acid.sql("INSERT INTO u SELECT CAST(id AS INT), 'a', 'b', concat('p', id) FROM range(12)")
    acid.sql(merge)
    assert sorted(rows(acid, "SELECT * FROM t")) == [(1, "b"), (20, "a")]
