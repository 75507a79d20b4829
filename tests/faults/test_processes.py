"""Real processes: some are killed in the middle of a statement, and two work on the same rows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import acidsql
from acidsql.errors import LockTimeoutError
from acidsql.metastore.interface import LockComponent, LockType

pytestmark = [pytest.mark.spark, pytest.mark.slow]
VICTIM, TESTS = Path(__file__).with_name("victim.py"), Path(__file__).parents[1]
# A killed process is noticed soon; a living one sends four heartbeats a second.
SHORT = {"hive.txn.timeout": "4s", "acidsql.lock.poll.interval": "100ms"}
BY_JOBS = {**SHORT, "acidsql.driver.max.rows": "0"}
_A_WHILE = 300  # seconds; a machine may be busy


def start(warehouse: Path | str, where: str, *statements: str, **environment: str) -> Any:
    """Start a process of its own; ``where`` says at which point it kills itself."""
    return subprocess.Popen(
        [sys.executable, str(VICTIM), str(warehouse), where, *statements],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_GATEWAY")},
            "PYTHONPATH": os.pathsep.join(map(str, [Path(acidsql.__file__).parents[1], TESTS])),
            "ACIDSQL_VICTIM_SETTINGS": json.dumps(SHORT),
            **environment,
        },
    )


def answers(process: Any) -> list[dict[str, Any]]:
    """The process's answers to its statements."""
    out, err = process.communicate(timeout=_A_WHILE)
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert "ready" in (lines or [{}])[0], err
    return lines[1:]


def rows(acid: Any, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in acid.sql(query).collect())


@pytest.fixture
def warehouse(spark: Any, tmp_path: Path) -> Path:
    """A warehouse with one table."""
    place = tmp_path / "warehouse"
    with acidsql.connect(spark, warehouse=str(place)) as acid:
        acid.sql("CREATE TABLE t (id INT, n INT)")
        acid.sql("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
    return place


@pytest.mark.parametrize(
    ("where", "happened"),
    [
        ("after open_txn", False),
        ("in the job", False),
        ("in the driver's writing", False),
        ("between two renames", False),
        ("after commit", True),
    ],
)
def test_a_killed_process_leaves_the_table_whole_and_its_locks_go(
    spark: Any, warehouse: Path, where: str, happened: bool
) -> None:
    update = "UPDATE t SET n = n + 1 WHERE id <> 3"
    settings = BY_JOBS if where == "in the job" else SHORT
    killed = start(warehouse, where, update, ACIDSQL_VICTIM_SETTINGS=json.dumps(settings))
    assert answers(killed) == []
    assert killed.returncode == -signal.SIGKILL
    after = 1 if happened else 0
    with acidsql.connect(spark, warehouse=str(warehouse), settings=SHORT) as acid:
        assert rows(acid, "SELECT * FROM t") == [(1, after), (2, after), (3, 0)]
        acid.sql(update)  # waits until the dead process's locks have timed out
        assert rows(acid, "SELECT * FROM t") == [(1, after + 1), (2, after + 1), (3, 0)]
        acid.sql("INSERT INTO t VALUES (4, 4)")
        assert rows(acid, "SELECT count(*), count(DISTINCT id) FROM t") == [(4, 4)]


@pytest.mark.parametrize(
    ("where", "happened"),
    [
        ("in the driver's writing", False),
        ("between two renames", False),
        ("before commit", False),
        ("after commit", True),
    ],
)
def test_a_killed_process_leaves_a_table_on_hdfs_whole(
    spark: Any, hdfs: str, tmp_path: Path, where: str, happened: bool
) -> None:
    update = "UPDATE t SET n = n + 1 WHERE id <> 3"
    metastore = f"sqlite:///{tmp_path}/metastore.db"
    with acidsql.connect(spark, warehouse=hdfs, metastore=metastore, settings=SHORT) as acid:
        acid.sql("CREATE TABLE t (id INT, n INT)")
        acid.sql("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
        killed = start(hdfs, where, update, ACIDSQL_METASTORE=metastore)
        assert answers(killed) == []
        assert killed.returncode == -signal.SIGKILL
        after = 1 if happened else 0
        assert rows(acid, "SELECT * FROM t") == [(1, after), (2, after), (3, 0)]
        acid.sql(update)  # waits until the dead process's locks have timed out
        assert rows(acid, "SELECT * FROM t") == [(1, after + 1), (2, after + 1), (3, 0)]


# Over two tables. The undone statement has two directories, one of them in a new partition.
TRANSACTION = (
    "BEGIN",
    "UPDATE t SET n = n + 1 WHERE id <> 3",
    "SAVEPOINT a",
    "INSERT INTO u PARTITION (k = 7) VALUES (70)",
    "DELETE FROM t WHERE id = 3",
    "ROLLBACK TO a",
    "INSERT INTO u SELECT id, n FROM t WHERE id <> 2",
    "COMMIT",
)


@pytest.mark.parametrize(
    ("where", "heard", "happened"),
    [
        ("after the first statement", 3, False),
        ("while undoing", 5, False),
        ("before commit", 7, False),
        ("after commit", 7, True),
    ],
)
def test_a_process_that_is_killed_in_a_transaction_leaves_all_of_it_or_nothing(
    spark: Any, warehouse: Path, where: str, heard: int, happened: bool
) -> None:
    with acidsql.connect(spark, warehouse=str(warehouse), settings=SHORT) as acid:
        acid.sql("CREATE TABLE u (id INT) PARTITIONED BY (k INT)")
        killed = start(warehouse, where, *TRANSACTION)
        said = answers(killed)
        assert killed.returncode == -signal.SIGKILL
        assert len(said) == heard and all("done" in one for one in said), said
        once = 1 if happened else 0
        assert rows(acid, "SELECT * FROM t") == [(1, once), (2, once), (3, 0)]
        assert rows(acid, "SELECT * FROM u") == [(1, 1)] * once + [(3, 0)] * once
        for statement in TRANSACTION:  # waits until the dead process's locks have timed out
            acid.sql(statement)
        assert rows(acid, "SELECT * FROM t") == [(1, once + 1), (2, once + 1), (3, 0)]
        expected = [(1, 1)] * once + [(1, once + 1), (3, 0)] + [(3, 0)] * once
        assert rows(acid, "SELECT * FROM u") == expected
        assert rows(acid, "SHOW LOCKS") == []


@pytest.mark.parametrize("where", ["in the job", "between two renames", "before commit"])
def test_when_a_compactor_is_killed_nothing_is_lost_and_another_takes_over(
    spark: Any, warehouse: Path, where: str
) -> None:
    with acidsql.connect(spark, warehouse=str(warehouse), settings=SHORT, compactor="off") as acid:
        acid.sql("INSERT INTO t VALUES (4, 0)")
        acid.sql("UPDATE t SET n = 7 WHERE id = 2")
        before = sorted(acid.table("t", row_id=True).collect())
        killed = start(warehouse, where, "ALTER TABLE t COMPACT 'minor' AND WAIT")
        assert answers(killed) == []
        assert killed.returncode == -signal.SIGKILL
        assert sorted(acid.table("t", row_id=True).collect()) == before
        # Waits until the dead worker's transaction has timed out.
        acid.sql("ALTER TABLE t COMPACT 'minor' AND WAIT")
        assert sorted(acid.table("t", row_id=True).collect()) == before
        visible = acid.files("t").where("state = 'visible'").select("directory").distinct()
        assert sorted(row[0] for row in visible.collect()) == [
            "delete_delta_0000001_0000003", "delta_0000001_0000003",
        ]  # fmt: skip
    with acidsql.connect(spark, warehouse=str(warehouse), compactor="off") as acid:
        assert acid.clean().count() > 0
        assert sorted(acid.table("t", row_id=True).collect()) == before
        assert acid.files("t").where("state <> 'visible'").count() == 0


@pytest.mark.parametrize("settings", [SHORT, BY_JOBS], ids=["few_by_the_driver", "by_jobs"])
def test_two_processes_lose_no_update_and_double_no_row(
    spark: Any, warehouse: Path, tmp_path: Path, settings: dict[str, str]
) -> None:
    merge = (
        "MERGE INTO t USING (SELECT explode(array(2, 3, {0})) AS id) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = t.n + 1 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1)"
    )
    now = tmp_path / "now"
    both = [
        start(
            warehouse, "nowhere",
            "UPDATE t SET n = n + 1 WHERE id < 3", merge.format(name * 100),
            f"INSERT INTO t VALUES ({name * 1000}, 0)", merge.format(777),
            "UPDATE t SET n = n + 1 WHERE id < 3", f"DELETE FROM t WHERE id = {name * 1000}",
            ACIDSQL_VICTIM_STARTS=str(now), ACIDSQL_VICTIM_SETTINGS=json.dumps(settings),
        )
        for name in (1, 2)
    ]  # fmt: skip
    now.touch()
    said = [answers(process) for process in both]
    assert all("done" in one for answer in said for one in answer), said
    assert Counter(map(len, said)) == {6: 2}
    with acidsql.connect(spark, warehouse=str(warehouse)) as acid:
        assert rows(acid, "SELECT * FROM t") == [
            (1, 4), (2, 8), (3, 4), (100, 1), (200, 1), (777, 2),
        ]  # fmt: skip


def test_a_lock_that_is_not_granted_in_time_names_who_has_it(spark: Any, warehouse: Path) -> None:
    with acidsql.connect(spark, warehouse=str(warehouse)) as acid:
        txn = acid.metastore.open_txn(user="ann", host="h7", agent_info="UPDATE t SET n = 99")
        acid.metastore.lock(txn, [LockComponent(LockType.EXCL_WRITE, "default", "t")])
        impatient = {"hive.lock.numretries": "3"}
        with acidsql.connect(spark, warehouse=str(warehouse), settings=impatient) as other:
            with pytest.raises(LockTimeoutError) as caught:
                other.sql("UPDATE t SET n = 1")
            for word in (f"Transaction {txn}", "ann", "h7", "default.t", "UPDATE t SET n = 99"):
                assert word in caught.value.message
            assert [lock.txn_id for lock in other.metastore.show_locks()] == [txn]
            other.sql("INSERT INTO t VALUES (9, 9)")  # it does not have to wait
            acid.metastore.abort_txn(txn)
            other.sql("UPDATE t SET n = 1")
            assert rows(other, "SELECT DISTINCT n FROM t") == [(1,)]
