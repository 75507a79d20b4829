"""SQL DML for Spark sessions over Hive ACID tables.

    >>> acid = acidsql.connect(spark)                                          # doctest: +SKIP
    >>> acid.sql("UPDATE sales SET price = price * 2 WHERE day = '2024-01-01'")  # doctest: +SKIP

The idea: **a table is a fold over events, a statement is a query that yields events.** An *event*
(Hive's word) inserts or deletes one row. ``scan`` turns events into live rows, ``lower`` turns
rows into events, ``write`` turns events into files. All else decides which write ids are valid,
who holds which lock, and when to commit.

The packages, from the user's hand down; imports go down only::

    session  result  magic  cli      what a person touches
    runner                           one statement, start to finish: read this first
    commands  transactions           statements without events · BEGIN … COMMIT
    plan                             what a statement means
    sql  storage  txn                language · directories · transactions
    metastore                        tables and transactions, kept
    acid                             the rules of the format: pure values
    errors  settings

How a statement flows: *say* (parse, bind, analyse, rewrite: nothing is open yet), *hold*
(transaction, locks, then the snapshot), *do* (one Spark job), *keep* (publish directories, commit
in the store: the only commit point).

Words: a *txn* is ours; a *partition* is Hive's, Spark's is a *task*; a *row id* is the triple
(write id, bucket property, rowId), ``row__id`` its column; a *snapshot* is the valid write ids of
each table under one txn; a *base* is a directory; a *statement id* numbers the writes of one txn.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Workers import acidsql.storage.event_writer without pyspark's sessions or SQLAlchemy, so that the
# public names are looked up when they are asked for.
_HOMES = {
    "connect": "acidsql.session",
    "Session": "acidsql.session",
    "read": "acidsql.storage.read",
    "Receipt": "acidsql.result",
    "AcidSqlError": "acidsql.errors",
    "SqlError": "acidsql.errors",
    "TxnError": "acidsql.errors",
    "TransientTxnError": "acidsql.errors",
    "CommitUnknownError": "acidsql.errors",
    "load_ipython_extension": "acidsql.magic",
}
__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'acidsql' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
