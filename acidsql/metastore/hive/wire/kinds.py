"""What a table of a Hive Metastore is: Hive's ACID table, a plain one, a view, or another engine's.

A metastore also keeps tables that are not Hive's. Their files mean nothing without their engine: a
reader of the files alone would show deleted rows, or rows of aborted writers.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from acidsql.acid.table import INSERT_ONLY, TRANSACTIONAL_PROPERTIES
from acidsql.metastore.hive.wire import convert


class TableKind(Enum):
    """The kind of a table. The value is a word for messages."""

    FULL_ACID = "full ACID"
    INSERT_ONLY = "insert-only"
    PLAIN = "plain"
    EXTERNAL = "external"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"
    OTHER_ENGINE = "another engine's"


# Words in the names of classes, properties and values → the engine.
_ENGINES = {
    "iceberg": "Iceberg", "hudi": "Hudi", "hoodie": "Hudi", "kudu": "Kudu", "jdbc": "JDBC",
    "delta": "Delta Lake", "hbase": "HBase", "druid": "Druid", "kafka": "Kafka",
    "paimon": "Paimon", "phoenix": "Phoenix", "accumulo": "Accumulo",
}  # fmt: skip
_HANDLER, _TYPE, _PROVIDER = "storage_handler", "table_type", "spark.sql.sources.provider"
_TEXT = "org.apache.hadoop.mapred.TextInputFormat"
TEXT = "text"


def kind_of(raw: Any) -> TableKind:
    """Return the kind of table that a struct ``Table`` of the server describes. What another engine
    reads is OTHER_ENGINE even if it says that it is transactional; a plain table that Hive does not
    manage is EXTERNAL."""
    if convert.is_view(raw):
        return TableKind.VIEW
    if raw.tableType == "MATERIALIZED_VIEW":
        return TableKind.MATERIALIZED_VIEW
    if engine_of(raw):
        return TableKind.OTHER_ENGINE
    if convert.is_transactional(raw):
        return TableKind.INSERT_ONLY if _is_insert_only(raw.parameters) else TableKind.FULL_ACID
    return TableKind.PLAIN if raw.tableType == convert.MANAGED else TableKind.EXTERNAL


def engine_of(raw: Any) -> str:
    """Return the name of the engine that alone can read the table: the first one whose word
    (`_ENGINES`) is in the table's type, storage handler, provider or input format, in any case.
    Without such a word the name of the handler's class, without its package; "" if there is no
    handler, as for Hive's own tables."""
    parameters = raw.parameters or {}
    by_key = {key.lower(): value for key, value in parameters.items()}
    handler = by_key.get(_HANDLER, "")
    clues = [by_key.get(_TYPE, ""), handler, by_key.get(_PROVIDER, ""), raw.sd.inputFormat or ""]
    for text in clues:
        for word, engine in _ENGINES.items():
            if word in text.lower():
                return engine
    return str(handler.rpartition(".")[2])


def format_of(raw: Any) -> str:
    """``orc``, ``parquet``, ``text``, or the name of another format's class."""
    name: str = raw.sd.inputFormat or ""
    return TEXT if name == _TEXT else convert.format_of(raw.sd)


def _is_insert_only(parameters: Mapping[str, str]) -> bool:
    return parameters.get(TRANSACTIONAL_PROPERTIES, "").lower() == INSERT_ONLY
