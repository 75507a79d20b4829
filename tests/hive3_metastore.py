"""A real Hive Metastore 3.1.3 over Derby. It has jars of its own, which ``hms3`` names; the program
around the server is that of ``hms``.
"""

from __future__ import annotations

import functools
from pathlib import Path
from types import MappingProxyType

import hive_jars
import hive_metastore
from hive_jars import built

SOURCES = Path(__file__).with_name("hms3")
SCHEMA = "hive-schema-3.1.0.derby.sql"
_PACKAGE = "org.apache.hadoop.hive.metastore"


class HiveMetastoreServer(hive_metastore.HiveMetastoreServer):
    """A running server. The arguments are those of the server of 4.0.1."""

    defaults = MappingProxyType({
        "metastore.txn.store.impl": f"{_PACKAGE}.txn.CompactionTxnHandler",
        # The classes that Hive has by default are in hive-exec, which is not here.
        "metastore.task.threads.always": f"{_PACKAGE}.events.EventCleanerTask",
        "metastore.expression.proxy": f"{_PACKAGE}.DefaultPartitionExpressionProxy",
    })  # fmt: skip

    def schema(self) -> Path:
        return build() / "jars" / SCHEMA

    def classpath(self) -> list[Path]:
        programs = hive_metastore.build() / "classes"  # last: Hive's own listener is in the jars
        return [hive_metastore.SOURCES / "conf", build() / "jars" / "*", programs]


@functools.cache
def missing() -> str | None:
    """Why there can be no server here; None if there can be one."""
    return hive_metastore.missing() or hive_jars.missing("Hive Metastore 3.1.3", build)


def build() -> Path:
    """The folder with the jars."""
    fetch = functools.partial(hive_metastore.fetch, SOURCES, SCHEMA)
    return built("hive3-metastore", SOURCES, fetch)
