"""Partitions in a Hive Metastore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acidsql.acid.layout import partition_name
from acidsql.acid.table import Partition, TableName
from acidsql.errors import UnsupportedError
from acidsql.metastore.hive.locking.locks import OPERATIONS
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.own_txns import OwnTxn
from acidsql.metastore.hive.wire.raw_tables import RawTables, chunks, keeping_statistics
from acidsql.metastore.hive.wire.server import Server
from acidsql.metastore.interface import RowChange

_ALL = -1  # as many as there are


class HivePartitions:
    """The part of the store about partitions."""

    def __init__(self, server: Server, raw_tables: RawTables) -> None:
        self._server, self._raw_tables = server, raw_tables

    def partitions(self, name: TableName) -> list[Partition]:
        """Return the partitions of a table, by values as texts, NULL first; none if the table is
        missing or unpartitioned.

        Raises:
            UnsupportedError: A partition lies outside of the table's directory, or the server's
                word for NULL is not the usual one.
        """
        raw = self._raw_tables.find(name)
        if raw is None or not raw.partitionKeys:
            return []
        self._server.need_usual_null(name)
        raws = self._server.call(
            "get_partitions", self._server.qualified_database(name.database), name.name, _ALL
        )
        partitions = sorted((convert.partition_of(raw) for raw in raws), key=_null_first_key)
        prefix = f"{convert.from_server_location(raw.sd.location)}/"
        for partition in partitions:
            # The table may have been replaced between the two calls: then our caller finds out.
            if not partition.location.startswith(prefix) and self._is_same_table(name, raw):
                raise UnsupportedError(
                    f"A partition of {name} lies in '{partition.location}', outside of the table's "
                    f"directory '{prefix}'. acidsql cannot read or change such a table.",
                    condition="UNSUPPORTED_FEATURE.PARTITION_LOCATION",
                )
        return partitions

    def _is_same_table(self, name: TableName, raw: Any) -> bool:
        """Whether the name still means the table in the struct: there is a table of the name, with
        the same identity and the same location."""
        now = self._raw_tables.find(name)
        return (
            now is not None
            and convert.identity(now) == convert.identity(raw)
            and now.sd.location == raw.sd.location
        )

    def tell(self, own: OwnTxn, table: TableName) -> None:
        """Tell the server which partitions a transaction changes, by operation, except those that
        it knows, and note in ``own`` that it knows them.

        Before, Hive 4 has recorded that the transaction changes some partition of the table. If it
        is aborted then, the cleaner looks into the directories of all partitions, known or not. If
        the server is told a partition, the cleaner asks the catalog where it lies; if the catalog
        does not know it, directory and record stay for ever. So partitions are added to the catalog
        first. Hive 3 records only what it is told here.
        """
        for operation in own.operations(table):
            told_names = own.reported_partitions.setdefault((table, operation), set())
            new = sorted(own.changed_partitions.get((table, operation), set()) - told_names)
            if not new:
                continue
            request = hive.AddDynamicPartitions(
                txnid=own.id,
                writeid=own.write_ids[table],
                dbname=table.database,
                tablename=table.name,
                partitionnames=new,
                operationType=OPERATIONS[operation],
            )
            self._server.call("add_dynamic_partitions", request)
            told_names.update(new)

    def add(
        self,
        raw: Any,
        partitions: Sequence[Partition],
        rows: Mapping[tuple[str | None, ...], RowChange],
    ) -> None:
        """Add partitions to a table on the server; those that exist stay.

        Args:
            raw: The table's struct.
            partitions: The partitions.
            rows: The change of each partition's rows, by its values; without one, the number of
                rows is not known.

        Raises:
            UnsupportedError: The server's word for NULL in names of partitions is not the usual
                one.
        """
        if partitions:
            self._server.need_usual_null(TableName(raw.dbName, raw.tableName))
        none = RowChange(None)
        raw_partitions = (
            convert.raw_partition(
                raw, partition, self._server.catalog, rows.get(partition.values, none).rows_after(0)
            )
            for partition in partitions
        )
        for chunk in chunks(list({tuple(raw.values): raw for raw in raw_partitions}.values())):
            request = hive.AddPartitionsRequest(
                dbName=raw.dbName,
                tblName=raw.tableName,
                parts=chunk,
                ifNotExists=True,
                needResult=False,
                catName=self._server.catalog,
                environmentContext=keeping_statistics(),
            )
            self._server.call("add_partitions_req", request)

    def drop(self, name: TableName, values: Sequence[tuple[str | None, ...]]) -> None:
        """Take partitions from the catalog; those that are gone are no error. Their files stay.
        Raise CatalogError if there is no such table."""
        columns = [key.name for key in self._raw_tables.need(name).partitionKeys]
        for chunk in chunks(
            [partition_name(columns, partition_values) for partition_values in values]
        ):
            request = hive.DropPartitionsRequest(
                dbName=name.database,
                tblName=name.name,
                parts=hive.RequestPartsSpec(names=list(chunk)),
                deleteData=False,
                ifExists=True,
                needResult=False,
                catName=self._server.catalog,
            )
            self._server.call("drop_partitions_req", request)


def _null_first_key(partition: Partition) -> tuple[tuple[bool, str], ...]:
    return tuple((value is not None, value or "") for value in partition.values)
