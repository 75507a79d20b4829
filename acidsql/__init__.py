"""SQL DML for PySpark over Hive ACID tables: INSERT, UPDATE, DELETE and MERGE.

    >>> acid = acidsql.connect(spark)                                          # doctest: +SKIP
    >>> acid.sql("UPDATE sales SET price = price * 2 WHERE day = '2024-01-01'")  # doctest: +SKIP

Each statement is a transaction. Use ``acid.sql`` for these tables, never ``spark.sql`` or
``spark.read.orc``: plain Spark shows no rows or wrong ones, often without an error. ``Session`` has
all methods, ``errors`` all errors, ``settings.known_settings()`` all settings; ``docs/`` in the
repository explains them.

The idea: **a table is a fold over events, a statement is a query that yields events.** An *event*
(Hive's word) inserts or deletes one row. ``scan`` turns events into live rows, ``lower`` turns
rows into events, ``write`` turns events into files. Everything else decides which write ids are
valid, which transaction holds which lock, and when to commit.

The packages, from top to bottom. A module imports only from its own row or from below::

    terminal                         command line, shell, notebook
    api                              the public API
    streams                          sinks of streaming queries, which run statements
    statements                       runs statements: read ``statements/runner.py`` first
    compaction                       runs beside statements
    plan                             the meaning of a statement: rewrites and locks
    sql  storage  txn                language · directories · the life of a transaction
    metastore                        the store of tables and transactions
    settings  acid                   limits · the rules of the format, as pure values
    arguments                        the types of public methods' arguments
    costs  errors  java  suggestions

The four phases of a statement: *say* (parse, bind, analyse, rewrite; no transaction is open yet),
*hold* (transaction, locks, then the snapshot), *do* (one Spark job), *keep* (publish directories,
commit in the metastore; this is the only commit point).

Words: A *txn* is a transaction of this package. A *partition* is Hive's partition; Spark's unit of
work is called a *task*. A *row id* is the triple (write id, bucket property, rowId), shown in the
column ``row__id``. A *snapshot* is the list of valid write ids of each table for one txn. A *base*
is a directory. A *statement id* numbers the writes of one txn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers and editors see; ``_HOMES`` has the same names
    from acidsql.api.session import Session as Session
    from acidsql.api.session import connect as connect
    from acidsql.costs import Costs as Costs
    from acidsql.errors import AcidSqlError as AcidSqlError
    from acidsql.errors import CommitUnknownError as CommitUnknownError
    from acidsql.errors import SqlError as SqlError
    from acidsql.errors import TransientTxnError as TransientTxnError
    from acidsql.errors import TxnError as TxnError
    from acidsql.statements.context.result import Receipt as Receipt
    from acidsql.storage.reading.read import read as read
    from acidsql.streams.commit_points import CommitPoints as CommitPoints
    from acidsql.terminal.magic import load_ipython_extension as load_ipython_extension

__version__ = "0.1.0"

# The module of each public name. A name is imported only when it is used: a Python worker imports
# acidsql.storage.writing.event_writer, and must need neither pyspark's sessions nor SQLAlchemy.
_HOMES = {
    "connect": "acidsql.api.session",
    "Session": "acidsql.api.session",
    "read": "acidsql.storage.reading.read",
    "CommitPoints": "acidsql.streams.commit_points",
    "Receipt": "acidsql.statements.context.result",
    "Costs": "acidsql.costs",
    "AcidSqlError": "acidsql.errors",
    "SqlError": "acidsql.errors",
    "TxnError": "acidsql.errors",
    "TransientTxnError": "acidsql.errors",
    "CommitUnknownError": "acidsql.errors",
    "load_ipython_extension": "acidsql.terminal.magic",
}
__all__ = [
    "AcidSqlError",
    "CommitPoints",
    "CommitUnknownError",
    "Costs",
    "Receipt",
    "Session",
    "SqlError",
    "TransientTxnError",
    "TxnError",
    "__version__",
    "connect",
    "load_ipython_extension",
    "read",
]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for one of these

    def __getattr__(name: str) -> Any:
        """Import the module of a public name, and return what has the name there. Raise
        AttributeError for any other name."""
        if name not in _HOMES:
            raise AttributeError(f"module 'acidsql' has no attribute '{name}'")
        return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
