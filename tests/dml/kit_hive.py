"""What the tests of statements over a real Hive Metastore share, whatever its version."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import acidsql

Ask = Callable[[str], list[list[str | None]]]
_numbers = itertools.count(1)


def own_database(spark: Any, server: Any) -> Iterator[Any]:
    """For a fixture: a function that opens sessions on the server, in a database of the test's own.

    It has the attributes ``database`` and ``opened``, the sessions.
    """
    name, opened = f"db{next(_numbers)}", list[Any]()

    def again(**settings: Any) -> Any:
        opened.append(acidsql.connect(spark, metastore=server.url, settings=settings))
        return opened[-1]

    again.database, again.opened = name, opened  # type: ignore[attr-defined]
    again().sql(f"CREATE DATABASE {name}")
    opened[0].sql(f"USE {name}")
    yield again
    spark.catalog.setCurrentDatabase("default")
    for one in opened:
        one.close()
    with acidsql.connect(spark, metastore=server.url) as last:
        last.sql(f"DROP DATABASE {name} CASCADE")


def asks(server: Any, connect: Any) -> Ask:
    """Ask the server's database about tables of the test's own."""
    return lambda sql: server.query(sql.replace("$db", f"'{connect.database}'"))


def open_changes(ask: Ask) -> list[list[str | None]]:
    """What open transactions have changed."""
    return ask(
        "SELECT TC_TABLE, TC_PARTITION, TC_OPERATION_TYPE, TC_WRITEID FROM TXN_COMPONENTS "
        "WHERE TC_DATABASE = $db ORDER BY TC_TABLE, TC_PARTITION, TC_OPERATION_TYPE"
    )


def done_changes(ask: Ask) -> list[list[str | None]]:
    """What committed transactions have changed."""
    return ask(
        "SELECT DISTINCT CTC_TABLE, CTC_PARTITION, CTC_WRITEID, CTC_UPDATE_DELETE FROM "
        "COMPLETED_TXN_COMPONENTS WHERE CTC_DATABASE = $db ORDER BY CTC_TABLE, CTC_WRITEID"
    )
