"""Scripts: one statement of every kind, transactions of several statements, and probes after
them."""

from __future__ import annotations

from dataclasses import dataclass, field

# The first statements of every warehouse. ``t`` has delete deltas, ``p`` has two partitions.
SETUP = (
    "CREATE TABLE t (id INT, v STRING)",
    "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
    "DELETE FROM t WHERE id = 4",
    "CREATE TABLE p (id INT, v STRING) PARTITIONED BY (k INT)",
    "INSERT INTO p VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)",
    "CREATE TABLE s (id INT, v STRING)",
    "INSERT INTO s VALUES (2, 'two'), (3, 'three'), (7, 'seven')",
    "CREATE TABLE q (id INT NOT NULL)",
    "CREATE DATABASE shop",
    "CREATE TABLE shop.x (id INT)",
    "INSERT INTO shop.x VALUES (1)",
    "CREATE TABLE shop.y (id INT)",
    "ALTER TABLE shop.y RENAME TO shop.z",  # its directory keeps the name y
    "CREATE DATABASE bare",
    "CREATE TABLE m (id INT, v STRING) TBLPROPERTIES ('transactional_properties'='insert_only')",
    "INSERT INTO m VALUES (1, 'a'), (2, 'b')",
    "CREATE TABLE c (id INT, v STRING)",
    "INSERT INTO c VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO c VALUES (3, 'c')",
    "DELETE FROM c WHERE id = 2",
    "CREATE TABLE d (id INT)",  # it follows changes by AUTO CDC
    "CREATE TABLE d__acidsql_cdc (id INT, sequence BIGINT, deleted BOOLEAN, at TIMESTAMP) "
    "TBLPROPERTIES ('acidsql.cdc.order' = '')",
    "INSERT INTO d__acidsql_cdc (id, sequence, deleted) VALUES (1, 1, true)",
    "CREATE TABLE h (id INT, v STRING, __START_AT BIGINT, __END_AT BIGINT)",  # it keeps versions
    "INSERT INTO h VALUES (2, 'old', 1, NULL), (7, 'seven', 5, NULL)",
    "CREATE TABLE h__acidsql_cdc (id INT, sequence BIGINT, deleted BOOLEAN, at TIMESTAMP, "
    "v STRING) TBLPROPERTIES ('acidsql.cdc.order' = '', 'acidsql.cdc.scd.type' = '2', "
    "'acidsql.cdc.num.keys' = '1')",
    "INSERT INTO h__acidsql_cdc (id, sequence, deleted) VALUES (1, 1, true)",
)
_PROBE_M = "INSERT INTO m VALUES (99, 'probe')"
_PROBE_C = "INSERT INTO c VALUES (99, 'probe')"
_PROBE_T = "INSERT INTO t VALUES (99, 'probe')"
_PROBE_P = "INSERT INTO p VALUES (99, 'probe', 1), (98, 'probe', 55)"


@dataclass(frozen=True)
class Kind:
    """A script.

    Attributes:
        name: The name of the test.
        text: Its one statement, or its steps; ``{warehouse}`` is replaced. A comment at the end of
            a step says with which error it must fail. ``(beat)`` is a heartbeat.
        probe: Another statement on its table, which runs after it.
        block: The first and the last step are the ends of a ``with acid.transaction()`` block. If
            the last step is ROLLBACK, an exception leaves the block.
        by_jobs: Spark's jobs write few rows, too; the driver writes none itself.
        goes_on: After a first run that stopped behind the commit, a second run may succeed, because
            Spark's own database still exists: it is dropped last.
    """

    name: str
    text: str | tuple[str, ...] = field(compare=False)
    probe: str = _PROBE_T
    block: bool = False
    by_jobs: bool = False
    goes_on: bool = False

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps, in order."""
        return (self.text,) if isinstance(self.text, str) else self.text

    def endings(self, outcome: str, *, happened: bool) -> set[str]:
        """The outcomes that a second run may have, if it would have this outcome without
        faults."""
        return {outcome, "done"} if self.goes_on and happened else {outcome}

    def __str__(self) -> str:
        return self.name


def expected(step: str) -> str:
    """The outcome that a step must have."""
    return step.partition(" -- ")[2] or "done"


_MERGE = (
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.id = 3 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET v = concat(t.v, s.v) WHEN NOT MATCHED THEN INSERT *"
)

KINDS = (
    Kind("compact_minor", "ALTER TABLE c COMPACT 'minor' AND WAIT", _PROBE_C),
    Kind("compact_major", "ALTER TABLE c COMPACT 'major' AND WAIT", _PROBE_C),
    Kind(
        "rebalance",
        "ALTER TABLE c COMPACT 'rebalance' CLUSTERED INTO 2 BUCKETS AND WAIT",
        _PROBE_C,
    ),
    Kind("insert_values", "INSERT INTO t VALUES (10, 'x'), (11, 'y')"),
    Kind("insert_select", "INSERT INTO t SELECT id + 100, v FROM s"),
    Kind("insert_select_by_jobs", "INSERT INTO t SELECT id + 100, v FROM s", by_jobs=True),
    Kind("insert_static_partition", "INSERT INTO p PARTITION (k = 7) VALUES (10, 'x')", _PROBE_P),
    Kind("insert_new_partitions", "INSERT INTO p SELECT id, v, id FROM s", _PROBE_P, by_jobs=True),
    Kind("overwrite_rows", "INSERT OVERWRITE t SELECT id, upper(v) FROM s", by_jobs=True),
    Kind("overwrite_nothing", "INSERT OVERWRITE t SELECT id, v FROM s WHERE id > 100"),
    Kind(
        "overwrite_partition",
        "INSERT OVERWRITE p PARTITION (k = 1) SELECT id, v FROM s",
        _PROBE_P,
    ),
    Kind("insert_only_values", "INSERT INTO m VALUES (10, 'x'), (11, 'y')", _PROBE_M),
    Kind("insert_only_select", "INSERT INTO m SELECT id + 100, v FROM s", _PROBE_M, by_jobs=True),
    Kind("insert_only_overwrite", "INSERT OVERWRITE m SELECT id, upper(v) FROM s", _PROBE_M),
    Kind("insert_only_nothing", "INSERT OVERWRITE m SELECT id, v FROM s WHERE id > 100", _PROBE_M),
    Kind("insert_only_truncate", "TRUNCATE TABLE m", _PROBE_M),
    Kind("load", "LOAD DATA LOCAL INPATH '{warehouse}/incoming' INTO TABLE t"),
    Kind("load_overwrite", "LOAD DATA LOCAL INPATH '{warehouse}/incoming' OVERWRITE INTO TABLE t"),
    Kind(
        "load_partition",
        "LOAD DATA LOCAL INPATH '{warehouse}/incoming' INTO TABLE p PARTITION (k = 8)",
        _PROBE_P,
    ),
    Kind(
        "load_insert_only",
        "LOAD DATA LOCAL INPATH '{warehouse}/incoming/part-*' INTO TABLE m",
        _PROBE_M,
    ),
    Kind("update", "UPDATE t SET v = concat(v, '!') WHERE id <> 2"),
    Kind("update_partitions", "UPDATE p SET v = concat(v, '!')", _PROBE_P),
    Kind("update_nothing", "UPDATE t SET v = 'none' WHERE id = 1234"),
    Kind("update_by_jobs", "UPDATE t SET v = concat(v, '!') WHERE id <> 2", by_jobs=True),
    Kind("update_returning", "UPDATE t SET v = concat(v, '!') WHERE id <> 2 RETURNING old.v"),
    Kind("update_few_partitions", "UPDATE p SET v = concat(v, '!') WHERE id <> 2", _PROBE_P),
    Kind("delete", "DELETE FROM t WHERE id >= 2"),
    Kind("delete_by_jobs", "DELETE FROM t WHERE id >= 2", by_jobs=True),
    Kind("restore", "RESTORE TABLE p VERSION AS OF 0", _PROBE_P),
    Kind("revert", "REVERT TRANSACTION 3"),  # the DELETE of SETUP
    Kind("replace_where", "INSERT INTO p REPLACE WHERE k = 1 SELECT id, v, 1 FROM s", _PROBE_P),
    Kind("replace_using", "INSERT INTO t REPLACE USING (id) SELECT id, upper(v) FROM s"),
    Kind("merge", _MERGE),
    Kind(
        "merge_evolving",
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT id, id + 3000000000 AS n FROM s) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "INSERT INTO t (id, v) VALUES (99, 'probe')",
    ),
    Kind(
        "insert_evolving",
        "INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT id, v, id * 2 AS n FROM s",
        "INSERT INTO t (id, v) VALUES (99, 'probe')",
    ),
    Kind("merge_by_jobs", _MERGE, by_jobs=True),
    Kind(
        "multi_insert",
        "FROM s INSERT INTO t SELECT id + 50, v INSERT INTO p PARTITION (k = 9) SELECT id, v",
        _PROBE_P,
        by_jobs=True,
    ),
    Kind(
        "multi_overwrite",
        "FROM s INSERT OVERWRITE p PARTITION (k = 1) SELECT id, v WHERE id < 7 "
        "INSERT OVERWRITE p PARTITION (k = 9) SELECT id, upper(v) INSERT INTO t SELECT id + 50, v",
        _PROBE_P,
        by_jobs=True,
    ),
    Kind("create_table", "CREATE TABLE n (id INT)", "INSERT INTO n VALUES (1)"),
    Kind("create_temporary", "CREATE TEMPORARY TABLE IF NOT EXISTS tmp AS SELECT id FROM s"),
    Kind(
        "create_table_on_files",
        "CREATE TABLE n (id INT, v STRING) PARTITIONED BY (k INT) LOCATION '{warehouse}/found'",
        "INSERT INTO n VALUES (99, 'probe', 1), (98, 'probe', 55)",
    ),
    Kind(
        "create_table_on_sparks_files",
        "CREATE TABLE n (id INT, v STRING) LOCATION '{warehouse}/incoming'",
        "INSERT INTO n VALUES (99, 'probe')",
    ),
    Kind(
        "create_table_as_select",
        "CREATE TABLE n AS SELECT id, upper(v) AS v FROM s",
        "INSERT INTO n VALUES (99, 'probe')",
    ),
    Kind(
        "create_partitioned_as_select",
        "CREATE TABLE n PARTITIONED BY (id) AS SELECT id, upper(v) AS v FROM s",
        "INSERT INTO n VALUES ('probe', 99)",
    ),
    Kind("create_view", "CREATE VIEW n AS SELECT * FROM t", "INSERT INTO s SELECT * FROM n"),
    Kind("replace_table", "CREATE OR REPLACE TABLE p (v STRING)", "INSERT INTO p VALUES ('probe')"),
    Kind(
        "replace_as_select",
        "CREATE OR REPLACE TABLE p PARTITIONED BY (k) AS SELECT id, upper(v) AS v, id + k k FROM p",
        _PROBE_P,
        by_jobs=True,
    ),
    Kind(
        "replace_with_state_table",
        "CREATE OR REPLACE TABLE d AS SELECT id FROM d",
        "INSERT INTO d VALUES (99)",
    ),
    Kind("drop_table", "DROP TABLE t", "CREATE TABLE t (other INT)"),
    Kind("drop_partitioned_table", "DROP TABLE p", "CREATE TABLE p AS SELECT * FROM s"),
    Kind("drop_with_state_table", "DROP TABLE d", "CREATE TABLE d (other INT)"),
    Kind("rename_with_state_table", "ALTER TABLE d RENAME TO r", "INSERT INTO r VALUES (99)"),
    Kind("truncate", "TRUNCATE TABLE t"),
    Kind("truncate_partition", "TRUNCATE TABLE p PARTITION (k = 1)", _PROBE_P),
    Kind("add_columns", "ALTER TABLE t ADD COLUMNS (n INT)", "INSERT INTO t (id) VALUES (9)"),
    Kind(
        "change_column",
        "ALTER TABLE t CHANGE COLUMN id number BIGINT COMMENT 'wide'",
        "INSERT INTO t (v) VALUES ('probe')",
    ),
    Kind(
        "add_constraint",
        "ALTER TABLE t ADD CONSTRAINT known CHECK (id < 1000)",
        "INSERT INTO t VALUES (99, 'probe')",
    ),
    Kind("set_properties", "ALTER TABLE t SET TBLPROPERTIES ('made.by' = 'hand')"),
    Kind("unset_properties", "ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('made.by')"),
    Kind("analyze", "ANALYZE TABLE t COMPUTE STATISTICS NOSCAN"),
    Kind(
        "become_full_acid",
        "ALTER TABLE m SET TBLPROPERTIES ('transactional_properties' = 'default')",
        _PROBE_M,
    ),
    Kind("rename", "ALTER TABLE t RENAME TO r", "INSERT INTO r VALUES (99, 'probe')"),
    Kind(
        "create_where_a_renamed_table_lies",
        "CREATE TABLE shop.y AS SELECT id FROM s",
        "INSERT INTO shop.y VALUES (99)",
    ),
    Kind("drop_a_renamed_table", "DROP TABLE shop.z", "CREATE TABLE shop.y (id INT)"),
    Kind("add_partitions", "ALTER TABLE p ADD PARTITION (k = 55) PARTITION (k = 8)", _PROBE_P),
    Kind("drop_partition", "ALTER TABLE p DROP PARTITION (k = 1)", _PROBE_P),
    Kind(
        "rename_partition",
        "ALTER TABLE p PARTITION (k = 1) RENAME TO PARTITION (k = 77)",
        _PROBE_P,
    ),
    Kind("create_database", "CREATE DATABASE fresh", "CREATE TABLE fresh.z (id INT)"),
    Kind("drop_database", "DROP DATABASE bare", goes_on=True),
    Kind(
        "drop_database_cascade",
        "DROP DATABASE shop CASCADE",
        "CREATE DATABASE shop",
        goes_on=True,
    ),
    Kind("abort_transactions", "ABORT TRANSACTIONS {foreign}"),
)
_SAVEPOINTS = (
    "BEGIN",
    "INSERT INTO t VALUES (5, 'e'), (6, 'f')",
    "SAVEPOINT a",
    "UPDATE t SET v = 'undone' WHERE id >= 3",
    "INSERT INTO p VALUES (5, 'undone', 9)",
    "ROLLBACK TO a",
    "DELETE FROM t WHERE id IN (2, 5)",
    "COMMIT",
)
TRANSACTIONS = (
    Kind(
        "two_tables",
        (
            "BEGIN",
            "INSERT INTO t SELECT id + 100, v FROM s",
            "UPDATE t SET v = concat(v, '!') WHERE id > 1",
            "DELETE FROM p WHERE k = 2",
            "(beat)",
            "MERGE INTO p USING s ON p.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.id + 1)",
            "COMMIT",
        ),
        _PROBE_P,
    ),
    Kind("savepoints", _SAVEPOINTS),
    Kind("savepoints_by_jobs", _SAVEPOINTS, by_jobs=True),
    Kind(
        "overwrite_after_insert",
        (
            "BEGIN",
            "INSERT INTO p VALUES (10, 'hidden', 1), (11, 'y', 7)",
            "INSERT OVERWRITE p PARTITION (k = 1) SELECT id, v FROM s",
            "COMMIT",
        ),
        _PROBE_P,
    ),
    Kind(
        "truncate_inside",
        ("BEGIN", "INSERT INTO p VALUES (10, 'x', 1)", "TRUNCATE TABLE t", "COMMIT"),
    ),
    Kind(
        "insert_only_block",
        (
            "BEGIN",
            "INSERT INTO m SELECT id + 100, v FROM s",
            "SAVEPOINT a",
            "INSERT INTO m VALUES (5, 'undone')",
            "ROLLBACK TO a",
            "INSERT INTO m VALUES (6, 'f')",
            "UPDATE t SET v = 'u' WHERE id = 1",
            "COMMIT",
        ),
        _PROBE_M,
    ),
    Kind(
        "rolled_back",
        ("BEGIN", "UPDATE t SET v = 'no' WHERE id = 1", "INSERT INTO p VALUES (1, 'no', 9)",
         "ROLLBACK"),
    ),
    Kind(
        "failing_statements",
        (
            "BEGIN",
            "INSERT INTO t VALUES (5, 'e')",
            # The first branch is published before the second branch finds the null.
            "FROM s INSERT INTO t SELECT id + 50, v INSERT INTO q SELECT nullif(id, 3)"
            " -- NOT_NULL_CONSTRAINT_VIOLATION",
            "MERGE INTO t USING (SELECT 5 AS id, v FROM s) AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v -- MERGE_CARDINALITY_VIOLATION",
            "UPDATE t SET v = 'E' WHERE id = 5",
            "COMMIT",
        ),
    ),
    Kind(
        "block",
        ("BEGIN", "DELETE FROM t WHERE id = 1", "SAVEPOINT a",
         "INSERT INTO p PARTITION (k = 9) VALUES (1, 'undone')", "ROLLBACK TO a",
         "INSERT INTO p PARTITION (k = 9) VALUES (2, 'b')", "COMMIT"),
        block=True,
    ),
    Kind(
        "block_left",
        ("BEGIN", "DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (8, 'h')", "ROLLBACK"),
        block=True,
    ),
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}
