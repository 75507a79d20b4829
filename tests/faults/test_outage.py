"""The metastore does not answer: the statement raises an error, and nothing has happened."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fault_points import FaultyStore, Line, What
from fault_state import leftovers, rows_of, state_of

import acidsql
from acidsql.api.session import Session
from acidsql.errors import CommitUnknownError, MetastoreError
from acidsql.metastore.interface import TxnState
from acidsql.settings import Settings
from acidsql.storage.writing import save

pytestmark = pytest.mark.spark
_HOLD = (
    "import sqlite3, sys\n"
    "held = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
    "held.execute('BEGIN EXCLUSIVE')\n"
    "print('held', flush=True)\n"
    "sys.stdin.read()\n"
)


@contextmanager
def locked_by_another_process(file: Path) -> Iterator[None]:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(file)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    try:
        yield
    finally:
        holder.communicate("")


@pytest.fixture
def hurried(spark: Any, tmp_path: Path) -> Iterator[Any]:
    """A session that waits a tenth of a second for the metastore. Its table has two rows."""
    settings = {"acidsql.metastore.busy.timeout": "100ms"}
    place = str(tmp_path / "warehouse")
    with acidsql.connect(spark, warehouse=place, settings=settings) as acid:
        acid.sql("CREATE TABLE t (id INT)")
        acid.sql("INSERT INTO t VALUES (1), (2)")
        yield acid


def file_of(acid: Any) -> Path:
    return Path(acid.warehouse) / ".acidsql" / "metastore.db"


@pytest.mark.parametrize(
    "text",
    ["INSERT INTO t VALUES (3)", "DROP TABLE t", "CREATE TABLE u (id INT)", "TRUNCATE TABLE t"],
)
def test_a_metastore_that_another_process_keeps_is_a_clear_error(hurried: Any, text: str) -> None:
    before = state_of(hurried.metastore)
    with locked_by_another_process(file_of(hurried)), pytest.raises(MetastoreError) as caught:
        hurried.sql(text)
    assert "busy.timeout" in caught.value.message
    assert state_of(hurried.metastore) == before
    hurried.sql(text)
    assert state_of(hurried.metastore) != before


def test_an_outage_while_the_job_runs_aborts_by_time_out(
    hurried: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither COMMIT nor ABORT reaches the store: the transaction stays open until it times out."""
    write, held = save.write_rows, []

    def write_rows(*args: Any) -> Any:
        held.append(sqlite3.connect(file_of(hurried), isolation_level=None))
        held[0].execute("BEGIN IMMEDIATE")
        return write(*args)

    monkeypatch.setattr(save, "write_rows", write_rows)
    with pytest.raises(MetastoreError):
        hurried.sql("INSERT INTO t VALUES (3)")
    monkeypatch.undo()
    held[0].close()
    assert rows_of(state_of(hurried.metastore), "t") == [(1,), (2,)]
    assert leftovers(hurried.warehouse) == []
    hurried.sql("INSERT INTO t VALUES (4)")
    assert rows_of(state_of(hurried.metastore), "t") == [(1,), (2,), (4,)]


def test_a_commit_of_which_nobody_can_tell_is_an_error_of_its_own(
    spark: Any, tmp_path: Path
) -> None:
    """COMMIT happened, its reply was lost, and so are all later ones: no file may be deleted."""

    class Gone(Line):
        """A store that cannot be reached any more after COMMIT."""

        gone = False

        def call(self, name: str, do: Any, *, sql: bool = False) -> Any:
            if self.gone:
                raise MetastoreError("gone")
            done = do()
            self.gone = name == "store.commit_txn"
            if self.gone:
                raise MetastoreError("gone")
            return done

    with acidsql.connect(spark, warehouse=str(tmp_path / "warehouse")) as acid:
        acid.sql("CREATE TABLE t (id INT)")
        store = FaultyStore(acid.metastore, Gone(what=What.ERROR))
        victim = Session(spark, acid.warehouse, store, Settings(), 0)
        with pytest.raises(CommitUnknownError) as caught:
            victim.sql("INSERT INTO t VALUES (1)")
        txn_id = int(caught.value.parameters["txnId"])
        assert acid.metastore.txn_state(txn_id) is TxnState.COMMITTED
        assert [row.id for row in acid.sql("SELECT id FROM t").collect()] == [1]
