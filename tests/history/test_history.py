"""Isolation: processes run random transactions, and the history is snapshot isolation.

Several processes append to the same few lists on a real store, in real delta directories
(``worker``). Now and then one of them is killed. Then ``checker`` looks for everything that
snapshot isolation does not allow. Tests with acidsql broken on purpose show that it would find it.

``ACIDSQL_HISTORY_TXNS`` sets the number of transactions of each process, ``ACIDSQL_HISTORY_SEED``
the random numbers. Every message has both.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path

import broken
import pytest
import servers
import worker
from checker import check
from history import FAIL, INFO, OK, Append, Log, Transaction, Undo, load
from lists import Reader, define
from worker import BY_ROW, KEYS, OPTIMISTIC, PESSIMISTIC, Job

from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.settings import Settings
from acidsql.txn import TxnManager

TXNS = int(os.environ.get("ACIDSQL_HISTORY_TXNS", "30"))
SEED = int(os.environ.get("ACIDSQL_HISTORY_SEED", "1"))
PROCESSES = 4
SECONDS = 600  # the most time for a process; the machine may be busy
SETTINGS = {
    "hive.txn.timeout": "2s",  # so a killed process does not block others for long
    "hive.lock.numretries": "5",  # 3.1 s
    "acidsql.lock.poll.interval": "50ms",
    # The housekeeper forgets old transactions while others work.
    "metastore.acid.housekeeper.interval": "300ms",
    "acidsql.txn.history.retention": "1s",
}
# The ways in which a transaction may end. An aborted transaction may be forgotten before its
# session hears of it, and in an aborted transaction a failed statement cannot be undone.
FORESEEN = {
    OK, FAIL, INFO, "GivenUpError", "WRITE_CONFLICT", "TXN_ABORTED", "LOCK_ACQUIRE_TIMEDOUT",
    "TXN_NO_SUCH_TRANSACTION", "IN_FAILED_TRANSACTION",
    "UNSUPPORTED_FEATURE.CHANGE_AFTER_OVERWRITE",
}  # fmt: skip
# Processes are forked from one that has done their imports, which take longer than their work.
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    ["acidsql.metastore.embedded", "acidsql.statements.context.unit_of_work"]
)


@dataclass
class Run:
    """Running processes, and what they leave.

    Attributes:
        job: The job of all processes, without their numbers.
        jobs: The job of each process.
        killed: The names of processes that were killed, or killed themselves.
    """

    job: Job
    jobs: list[Job] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)

    def start(self, dies: int | None = None) -> BaseProcess:
        """Start one more process."""
        job = replace(self.job, number=len(self.jobs), dies=dies)
        self.jobs.append(job)
        if dies is not None:
            self.killed.append(job.name)
        process = FORKED.Process(target=worker.main, args=(job,))
        process.start()
        return process

    def history(self) -> list[Transaction]:
        """The history of all processes. A process that was killed early has left nothing."""
        return [txn for job in self.jobs if job.log.exists() for txn in load(job.log)]

    def __str__(self) -> str:
        return f"seed {self.job.seed}, {self.job.txns} transactions each, killed: {self.killed}"


def store_url(kind: str, place: Path) -> str:
    """The URL of a new store of this kind. The test is skipped if there can be none here."""
    if kind == "sqlite":
        return sqlite_url(place / "store.db")
    if reason := servers.missing(kind):
        pytest.skip(reason)
    return servers.server(kind).url(place)


def work(job: Job, processes: int, *, kill: bool = False) -> tuple[Run, list[Transaction]]:
    """Let processes run to their ends, then read everything once more.

    Args:
        job: The job of each process.
        processes: The number of processes.
        kill: One process is killed, and another takes its place. One more kills itself in a COMMIT.
    """
    store = EmbeddedMetastore(job.url, warehouse=job.warehouse)
    for table in define(Path(job.warehouse)):
        Path(table.location).mkdir(parents=True, exist_ok=True)
        store.create_table(table)
    run = Run(job)
    going = [run.start() for _ in range(processes)]
    if kill:
        going.append(run.start(dies=job.txns // 3))
        _kill_one(run, going)
    for process in going:
        process.join(SECONDS)
        dies = kill and process is going[processes]
        assert process.exitcode == (-signal.SIGKILL if dies else 0), "it says on stderr why"
    last = _read_all(job, store)
    store.close()
    return run, [*run.history(), *last]


def _kill_one(run: Run, going: list[BaseProcess]) -> None:
    """Kill a process at a random moment of its work, and start another one in its place."""
    chance = random.Random(run.job.seed)
    victim = chance.randrange(len(going) - 1)
    log, some = run.jobs[victim].log, chance.randint(1, max(1, run.job.txns // 2))
    while going[victim].is_alive() and not (log.exists() and len(load(log)) >= some):
        time.sleep(0.01)
    time.sleep(chance.uniform(0, 0.05))
    going[victim].kill()
    going[victim].join()
    run.killed.append(run.jobs[victim].name)
    going[victim] = run.start()


def _read_all(job: Job, store: EmbeddedMetastore) -> list[Transaction]:
    """Run a last transaction that reads all lists."""
    log, reader = Log(Path(job.warehouse, "last.jsonl"), "last"), Reader()
    manager = TxnManager(store, Settings.of(job.settings), user="last", host="h")
    log.begin()
    for table in define(Path(job.warehouse)):
        known = store.partitions(table.name)
        names = [one.location.removeprefix(f"{table.location}/") for one in known]
        found: dict[int, list[tuple[int, ...]]] = {key: [] for key in KEYS}
        for row in reader.rows(table, manager.snapshot([table.name]), names):
            found.setdefault(row.key, []).append(row.values)
        for key, lists in found.items():
            log.read((table.name.name, key), lists)
    log.end(OK)
    manager.close()
    return load(Path(job.warehouse, "last.jsonl"))


def outcomes(history: list[Transaction]) -> Counter[str]:
    """The conditions of errors, and the other outcomes, with their numbers."""
    return Counter(txn.why.partition(":")[0] or txn.outcome for txn in history)


# ── what holds ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mariadb"])
def test_what_processes_do_at_the_same_time_is_snapshot_isolation(kind, tmp_path):
    job = Job(store_url(kind, tmp_path), str(tmp_path), 0, SEED, TXNS, settings=SETTINGS)
    run, history = work(job, PROCESSES - 1, kill=True)
    assert check(history) == [], run
    _was_worth_checking(run, history)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [PESSIMISTIC, OPTIMISTIC, BY_ROW])
def test_each_mode_by_itself_is_snapshot_isolation(mode, tmp_path):
    url = store_url("sqlite", tmp_path)
    job = Job(url, str(tmp_path), 0, SEED, TXNS // 2, (mode,), SETTINGS)
    run, history = work(job, PROCESSES)
    assert check(history) == [], run
    _was_worth_checking(run, history)


def _was_worth_checking(run: Run, history: list[Transaction]) -> None:
    """Check that transactions have met: otherwise the history would show nothing."""
    assert outcomes(history).keys() <= FORESEEN, run
    counts = Counter(txn.outcome for txn in history)
    assert counts[OK] > len(history) / 3, (run, outcomes(history))
    assert counts[FAIL] > len(history) / 20, (run, outcomes(history))
    assert bool(counts[INFO]) == bool(run.killed), (run, outcomes(history))
    assert outcomes(history).keys() & {"WRITE_CONFLICT", "TXN_ABORTED"}, run
    done = [one for txn in history if txn.outcome == OK for one in txn.operations]
    assert sum(isinstance(one, Append) for one in done) > len(history) / 3, run
    assert any(isinstance(one, Undo) for one in done), run
    lists = [one.values for one in history[-1].operations if not isinstance(one, Undo)]  # type: ignore[union-attr]
    assert max(map(len, lists)) >= 3, run


# ── what is broken is found ──────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize(
    "layer, mode, statements, kind",
    [
        ("commits without a look at others", OPTIMISTIC, 4, "lost update"),
        ("a new snapshot for each statement", OPTIMISTIC, 10, "G-single"),
        (broken.READS_DIRT, PESSIMISTIC, 4, "G1a"),
        ("ROLLBACK TO undoes nothing", PESSIMISTIC, 4, "G1a"),
    ],
)
def test_what_is_broken_is_found(layer, mode, statements, kind, tmp_path):
    found = set()
    for seed in range(SEED, SEED + 3):  # in a random history there may be no conflict
        where = tmp_path / str(seed)
        where.mkdir()
        job = Job(
            store_url("sqlite", where), str(where), 0, seed, max(25, TXNS), (mode,), SETTINGS,
            statements=statements, pause=0.04, broken=layer,
        )  # fmt: skip
        run, history = work(job, 3)
        found |= {anomaly.kind for anomaly in check(history)}
        if kind in found:
            return
    pytest.fail(f"{layer} led to {found or 'nothing'}, last in {run}: {outcomes(history)}")
