"""Tests of acidsql's own metastore that run over a Hive Metastore, too, with
``ACIDSQL_OVER_HIVE=4``, ``4.2`` or ``3``, its version; and tests of statements that run on an
object store, too, with ``ACIDSQL_ON_S3=1``, or on HDFS, with ``ACIDSQL_ON_HDFS=1``.

A test of something that a Hive Metastore lacks says ``needs("…")``: the name of an ability
(``acidsql/metastore/abilities.py``), or words of ``LACKS``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

_VERSION = os.environ.get("ACIDSQL_OVER_HIVE", "")
OVER_HIVE, OVER_HIVE_3 = bool(_VERSION), _VERSION == "3"
ON_S3 = bool(os.environ.get("ACIDSQL_ON_S3"))
ON_HDFS = bool(os.environ.get("ACIDSQL_ON_HDFS"))
# A test that looks at its warehouse's files itself.
on_a_disk = pytest.mark.skipif(ON_S3 or ON_HDFS, reason="looks at files on a disk")

# What only the embedded metastore has, besides the abilities.
LACKS = frozenset({
    "a metastore of its own",  # the test opens SQLite, or starts a process that does
    "tables anywhere",  # the server refuses a LOCATION outside of its warehouse
    "any text",  # its database takes "a" and "a " for one name, and some names are too long for it
    "a warehouse of its own",  # here, all tests have one
    "old directories",  # the server moves a renamed table's directory, and deletes a dropped one's
    "compactions of some deltas",  # a worker of Hive's may compact all of them at any time
    "a memory for single reads",  # only transactions of several statements ask for changes
    "its own time-out",  # the server's time-out is not the session's
    "reasons of aborts",
    "who won a conflict",
    "overwrites beside inserts",  # an overwrite locks inserts out, as by Hive's default
    "how a transaction ended",  # the server forgets it
    "the statement of a transaction",  # the server does not keep it
    "changed columns beside a CHECK",  # the server would forget the constraint
})  # fmt: skip

# What a Hive Metastore 3.1 lacks besides.
LACKS_3 = frozenset({
    "given write ids",  # a new table's first one is 1
    "full ACID in place",  # a table that somebody has written to stays insert-only
    "writers side by side",  # its SHARED_WRITE excludes itself
})  # fmt: skip

# The state of files that only older versions need: a Hive Metastore keeps no versions.
HISTORY = "obsolete" if OVER_HIVE else "history"
_SERVERS = {"hive_metastore", "hive42_metastore", "hive3_metastore", "hive"}  # fixtures
_SERVER_OF_VERSION = {"3": "hive3_metastore", "4.2": "hive42_metastore"}


def needs(what: str) -> pytest.MarkDecorator:
    """Mark a test of something that not every metastore has."""
    return pytest.mark.needs(what)


@functools.cache
def hive_lacks() -> frozenset[str]:
    """What the Hive Metastore of this run lacks."""
    from acidsql.metastore.hive.store import ABILITIES, ABILITIES_OF_3

    abilities = ABILITIES_OF_3 if OVER_HIVE_3 else ABILITIES
    names = (one.name for one in fields(abilities))
    lacks = LACKS | LACKS_3 if OVER_HIVE_3 else LACKS
    return lacks.union(name for name in names if getattr(abilities, name) is False)


def skip_what_hive_lacks(item: pytest.Item) -> None:
    """Skip a test whose need a Hive Metastore does not meet, with that need as the reason; and one
    that asks for a server itself, because it is the same test without ``ACIDSQL_OVER_HIVE``."""
    names = getattr(item, "fixturenames", ())
    asked = _SERVERS.intersection(names)
    if asked:
        item.add_marker(pytest.mark.skip(f"runs in every run of the tests: {min(asked)}"))
    for mark in item.iter_markers("needs") if "acid" in names else ():
        if mark.args[0] in hive_lacks():
            item.add_marker(pytest.mark.skip(f"a Hive Metastore lacks: {mark.args[0]}"))


def beside(acid: Any, spark: Any = None, **options: Any) -> Any:
    """Another session on the same tables, and on the same Spark session unless ``spark`` is one;
    ``options`` are those of ``connect``."""
    import acidsql

    spark = acid.spark if spark is None else spark
    if OVER_HIVE:
        return acidsql.connect(spark, metastore=acid.metastore.url, **options)
    as_there = {"acidsql.history.retention": "0s"} | options.pop("settings", {})
    return acidsql.connect(
        spark, warehouse=acid.warehouse, metastore=acid.metastore.url, settings=as_there,
        **options,
    )  # fmt: skip


@contextmanager
def session_over_hive(spark: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session on the Hive Metastore of a run of ``ACIDSQL_OVER_HIVE``. At its end, what the tests
    made is dropped."""
    import acidsql

    server = request.getfixturevalue(_SERVER_OF_VERSION.get(_VERSION, "hive_metastore"))
    with acidsql.connect(spark, metastore=server.url) as session:
        yield session
    spark.catalog.setCurrentDatabase("default")
    with acidsql.connect(spark, metastore=server.url) as last:  # the test may have closed its
        _drop_all(last, server.warehouse)


def _drop_all(session: Any, warehouse: Path) -> None:
    """Leave nothing to the next test in a metastore that all tests share."""
    for table in session.metastore.tables("default"):
        session.sql(f"DROP TABLE IF EXISTS default.`{table}`")  # it may have gone with another
    for view in session.metastore.views("default"):
        session.sql(f"DROP VIEW default.`{view}`")
    for database in session.metastore.databases():
        if database.name != "default":
            session.sql(f"DROP DATABASE `{database.name}` CASCADE")
    for left in warehouse.iterdir():
        if left.is_symlink() and not left.name.endswith("current"):  # those are pytest's
            left.unlink()
