"""Hive's plain and external tables, and tables of other engines, as a query sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from acidsql.acid.table import FULL_ACID, TRANSACTIONAL, TRANSACTIONAL_PROPERTIES, TableName
from acidsql.metastore.foreign import ForeignTable, TextFormat
from acidsql.metastore.hive.locking.numbers import HiveNumbers
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.kinds import TEXT, TableKind, engine_of, format_of, kind_of
from acidsql.metastore.hive.wire.raw_tables import RawTables, chunks
from acidsql.metastore.hive.wire.server import Server

_ALL = -1
_EXTERNAL = "EXTERNAL_TABLE"
# Properties that a managed table does not have, in lower case.
_OF_EXTERNAL = {"external", "translated_to_external", "external.table.purge"}
_LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
# Properties of text tables that change what a line means → the values that change nothing.
_OF_TEXT: Mapping[str, set[str]] = {
    "escape.delim": set(), "timestamp.formats": set(), "line.delim": {"\n", "10"},
    "serialization.encoding": {"UTF-8", "utf-8"}, "skip.header.line.count": {"0"},
    "skip.footer.line.count": {"0"}, "serialization.last.column.takes.rest": {"false"},
}  # fmt: skip
_NULL = "serialization.null.format"


class HiveForeign:
    """The part of the store about tables that are neither ACID tables nor views."""

    def __init__(self, server: Server, raw_tables: RawTables, numbers: HiveNumbers) -> None:
        self._server, self._raw_tables, self._numbers = server, raw_tables, numbers

    def with_partitions(self, table: ForeignTable) -> ForeignTable:
        """Return the table with its partitions; one that is unpartitioned or cannot be read is
        returned as it is. If the format of a partition differs from the table's, the result has a
        refusal and no columns.

        Raises:
            UnsupportedError: The server's word for NULL in names of partitions is not the usual
                one.
            CatalogError: The table has gone.
        """
        name = table.name
        if table.table is None or not table.table.partition_columns:
            return table
        self._server.need_usual_null(name)
        usual = _file_format(self._raw_tables.need(name).sd)
        partitions = self._server.call(
            "get_partitions", self._server.qualified_database(name.database), name.name, _ALL
        )
        for partition in partitions:
            if _file_format(partition.sd) != usual:
                return ForeignTable(
                    name,
                    refusal=f"has a partition ({'/'.join(partition.values)}) in another "
                    "format than the table's. Read the partition's directory by Spark.",
                )
        return replace(table, partitions=tuple(map(convert.partition_of, partitions)))

    def make_transactional(
        self, name: TableName, rows: Mapping[str, int], *, txn_id: int | None = None
    ) -> None:
        """Make a full-ACID table of a plain one: change its properties (those of external tables
        go), its type to that of a managed table, and the numbers of rows to ``rows`` (by
        directory). A partition that ``rows`` lacks, and a partitioned table itself, get no number.
        The server lets the table's write ids begin above 10,000,000. Raise CatalogError if there is
        no such table.

        Hive adds to the numbers of rows of an ACID table, and believes them after its next
        compaction. Those of a plain table may be wrong or missing, because nobody has told the
        server about files that Spark, for example, has added.
        """
        self._numbers.need_open(txn_id)
        raw = self._raw_tables.need(name)
        if raw.partitionKeys:
            raws = self._server.call(
                "get_partitions", self._server.qualified_database(name.database), name.name, _ALL
            )
            for raw_of_partition in raws:
                convert.set_row_count(
                    raw_of_partition,
                    rows.get(convert.from_server_location(raw_of_partition.sd.location)),
                )
            for chunk in chunks(raws):
                self._raw_tables.alter_partitions(name, list(chunk), None)
        convert.set_row_count(
            raw, None if raw.partitionKeys else rows[convert.from_server_location(raw.sd.location)]
        )
        removed_properties = [key for key in raw.parameters if key.lower() in _OF_EXTERNAL]
        new_properties = {TRANSACTIONAL: "true", TRANSACTIONAL_PROPERTIES: FULL_ACID}
        convert.change_properties(raw, new_properties, removed_properties)
        raw.tableType = convert.MANAGED
        self._raw_tables.alter(name, raw)


def foreign_table(name: TableName, raw: Any) -> ForeignTable:
    """Make the entry of a table that is neither an ACID table nor a view, from the server's struct:
    a plain or external table, without its partitions and without NOT NULL and DEFAULT. If acidsql
    cannot read the table (a materialized view, another engine's, another format), the entry has a
    refusal and no columns."""
    if kind_of(raw) is TableKind.MATERIALIZED_VIEW:
        refusal = "is a materialized view of Hive's: query the tables that it names."
        return ForeignTable(name, refusal=refusal)
    if why := _refusal(raw):
        return ForeignTable(name, refusal=why)
    table = replace(
        convert.table_of(raw, hive.SQLAllTableConstraints()),
        file_format=format_of(raw),
        is_transactional=False,
    )
    return ForeignTable(name, table, text=_text_format(raw), is_external=_is_external(raw))


def _is_external(raw: Any) -> bool:
    """Whether a table is external. Hive 4 makes a plain table that was created as a managed one
    external, and notes that: False for such a table."""
    parameters = {key.lower(): value.lower() for key, value in (raw.parameters or {}).items()}
    is_external = raw.tableType == _EXTERNAL or parameters.get("external") == "true"
    return is_external and parameters.get("translated_to_external") != "true"


def _refusal(raw: Any) -> str:
    """Return why acidsql cannot read a table, and what to do: it is another engine's, its files are
    neither ORC, Parquet nor text, or its text is not in Hive's plain form. "" if acidsql can."""
    if engine := engine_of(raw):
        return (
            f"is a table of {engine}, whose files mean nothing without {engine}: use "
            f"{engine} for Spark."
        )
    form = format_of(raw)
    if form not in (*convert.FORMATS, TEXT):
        return (
            f"has files of the format {form}, which acidsql does not read. Read them by a Spark "
            "session with Hive support, or by Hive."
        )
    if form != TEXT:
        return ""
    if raw.sd.serdeInfo.serializationLib != _LAZY:
        return (
            f"has text files that only {raw.sd.serdeInfo.serializationLib} reads. Read them by a "
            "Spark session with Hive support, or by Hive."
        )
    serde_parameters = _text_parameters(raw)
    unusual = [
        key for key, usual in _OF_TEXT.items() if serde_parameters.get(key, "") not in {"", *usual}
    ]
    return f"has text files with {unusual[0]}, which acidsql does not read." if unusual else ""


def _text_parameters(raw: Any) -> Mapping[str, str]:
    return {**(raw.parameters or {}), **(raw.sd.serdeInfo.parameters or {})}


def _text_format(raw: Any) -> TextFormat:
    r"""Return the separator of fields and the text for NULL of a text table, by default those of
    Hive (``\x01``, ``\N``). A separator that is a number means the character with this number."""
    serde_parameters, default = _text_parameters(raw), TextFormat()
    end = (
        serde_parameters.get("field.delim")
        or serde_parameters.get("serialization.format")
        or default.field_end
    )
    return TextFormat(_character(end), serde_parameters.get(_NULL, default.null))


def _character(text: str) -> str:
    """Hive writes a delimiter as itself or as the number of its character."""
    return chr(int(text)) if text.isdecimal() else text


def _file_format(sd: Any) -> tuple[str, str, Mapping[str, str]]:
    """The classes and parameters that say how to read the files of a table or partition."""
    parameters = dict(sd.serdeInfo.parameters or {})
    return sd.inputFormat, sd.serdeInfo.serializationLib, parameters
