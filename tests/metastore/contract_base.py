"""Fixtures and small helpers of the contract suite."""

from pathlib import Path

import pytest
from over_hive import needs

from acidsql.acid.table import Column, Table, TableName, ViewText
from acidsql.metastore.interface import LockComponent, LockType, Metastore, Operation

T = TableName("default", "t")
U = TableName("default", "u")
SELECT, INSERT, UPDATE = Operation.SELECT, Operation.INSERT, Operation.UPDATE


def every_day(contract):
    """Mark the tests of a class, which other classes inherit, as tests of each day: a mark of the
    class would be one of all that inherit from it."""
    for name, method in vars(contract).items():
        if name.startswith("test"):
            pytest.mark.every_day(method)
    return contract


class Clock:
    """The store's clock, moved by hand; milliseconds."""

    def __init__(self, now: int = 1_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def each_needs(what):
    """Mark each test of a class. A mark of the class itself would be inherited, and be one of all
    other parts of the contract, too."""

    def mark(part):
        for name, test in list(vars(part).items()):
            if name.startswith("test_"):
                setattr(part, name, needs(what)(test))
        return part

    return mark


class ContractBase:
    """Subclass it and say how a store is opened; the same path is the same store."""

    lacks: frozenset[str] = frozenset()

    @pytest.fixture(autouse=True)
    def _skip_what_is_lacking(self, request):
        for mark in request.node.iter_markers("needs"):
            if mark.args[0] in self.lacks:
                pytest.skip(f"this store lacks {mark.args[0]}")

    def open(self, path: Path, clock: Clock) -> Metastore:
        raise NotImplementedError

    @pytest.fixture
    def clock(self):
        return Clock()

    @pytest.fixture
    def store(self, tmp_path, clock):
        store = self.open(tmp_path, clock)
        yield store
        store.close()

    @pytest.fixture
    def reopen(self, tmp_path, clock):
        """Another session on the same store."""
        opened = []

        def again():
            opened.append(self.open(tmp_path, clock))
            return opened[-1]

        yield again
        for store in opened:
            store.close()


ACID = {"transactional": "true"}


def table(name=T, location=None, *, partitioned=False, properties=None, **fields):
    """A small table: ``a int, b string`` and perhaps ``p int``."""
    return Table(
        name=name,
        location=location or f"/wh/{name.name}",
        columns=(Column("a", "int"), Column("b", "string")),
        partition_columns=(Column("p", "int"),) if partitioned else (),
        properties={**ACID, **(properties or {})},
        **fields,
    )


def view(name, expanded="SELECT `a` FROM `default`.`t`", **fields):
    """A small view: ``a int``."""
    return Table(
        name, "", (Column("a", "int"),), is_transactional=False,
        view=ViewText("SELECT a FROM t", expanded), **fields,
    )  # fmt: skip


def begin(store, agent_info=""):
    return store.open_txn(user="ann", host="h1", agent_info=agent_info)


def on(lock_type, name=T, partition=None, operation=Operation.NO_TXN):
    return LockComponent(lock_type, name.database, name.name, partition, operation)


def shared_read(name=T, operation=SELECT):
    return on(LockType.SHARED_READ, name, operation=operation)


def exclusive(name=T):
    return on(LockType.EXCLUSIVE, name)


def seen(store, name=T, txn_id=0):
    """The valid write ids of one table now."""
    return store.valid_write_ids(store.valid_txns(txn_id), [name])[name]


def write(store, name=T, *, commit=True):
    """One whole transaction; returns its write id."""
    txn = begin(store)
    store.lock(txn, [shared_read(name, INSERT)])
    write_id = store.allocate_write_id(txn, name)
    if commit:
        store.commit_txn(txn)
    else:
        store.abort_txn(txn)
    return write_id
