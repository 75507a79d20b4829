"""Partitions in a Hive Metastore, and the statistics that a commit makes wrong.

Hive answers ``count(*)`` from statistics while a table's COLUMN_STATS_ACCURATE says that they are
right. No program tells the server that rows have changed. So whoever commits takes that mark away
first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from acidsql.acid.layout import partition_name
from acidsql.acid.table import Partition, TableName
from acidsql.errors import UnsupportedError
from acidsql.metastore.hive import convert
from acidsql.metastore.hive.calls import Calls, chunks, keeping_statistics
from acidsql.metastore.hive.idl import hive

_ALL = -1  # as many as there are


class HivePartitions(Calls):
    """The part of the store about partitions."""

    def partitions(self, name: TableName) -> list[Partition]:
        """See ``Catalog``.

        Raises:
            UnsupportedError: A partition lies outside of the table's directory.
        """
        raw = self._raw(name)
        if raw is None or not raw.partitionKeys:
            return []
        self._need_usual_null(name)
        found = self._call("get_partitions", name.database, name.name, _ALL)
        known = sorted((convert.partition_of(one) for one in found), key=_order)
        prefix = f"{convert.ours(raw.sd.location)}/"
        for partition in known:
            # The table may have been replaced between the two calls: then our caller finds out.
            if not partition.location.startswith(prefix) and self._is_still(name, raw):
                raise UnsupportedError(
                    f"A partition of {name} lies in '{partition.location}', outside of the table's "
                    f"directory '{prefix}'. acidsql cannot read or change such a table.",
                    condition="UNSUPPORTED_FEATURE.PARTITION_LOCATION",
                )
        return known

    def _is_still(self, name: TableName, raw: Any) -> bool:
        now = self._raw(name)
        return (
            now is not None
            and convert.identity(now) == convert.identity(raw)
            and now.sd.location == raw.sd.location
        )

    def _add_partitions(self, raw: Any, partitions: Sequence[Partition]) -> None:
        """Add partitions to a table; those that exist stay."""
        if partitions:
            self._need_usual_null(TableName(raw.dbName, raw.tableName))
        made = (convert.raw_partition(raw, one, self._catalog) for one in partitions)
        for some in chunks(list({tuple(one.values): one for one in made}.values())):
            request = hive.AddPartitionsRequest(
                dbName=raw.dbName,
                tblName=raw.tableName,
                parts=some,
                ifNotExists=True,
                needResult=False,
                catName=self._catalog,
                environmentContext=keeping_statistics(),
            )
            self._call("add_partitions_req", request)

    def _drop_partitions(self, name: TableName, values: Sequence[tuple[str | None, ...]]) -> None:
        """Forget partitions; their files stay."""
        columns = [one.name for one in self._need_raw(name).partitionKeys]
        for some in chunks([partition_name(columns, one) for one in values]):
            request = hive.DropPartitionsRequest(
                dbName=name.database,
                tblName=name.name,
                parts=hive.RequestPartsSpec(names=list(some)),
                deleteData=False,
                ifExists=True,
                needResult=False,
                catName=self._catalog,
            )
            self._call("drop_partitions_req", request)

    def _invalidate_statistics(
        self, raw: Any, partitions: Collection[str]
    ) -> set[tuple[str | None, ...]]:
        """Take the mark away that the statistics of a table and of these partitions are right.

        Returns:
            The values of those partitions that exist.
        """
        name = TableName(raw.dbName, raw.tableName)
        if (raw.parameters or {}).pop(convert.STATS_ACCURATE, None) is not None:
            self._alter(name, raw)
        known: set[tuple[str | None, ...]] = set()
        for some in chunks(sorted(partitions)):
            found = self._call("get_partitions_by_names", name.database, name.name, list(some))
            known.update(convert.partition_of(one).values for one in found)
            marked = [
                one
                for one in found
                if (one.parameters or {}).pop(convert.STATS_ACCURATE, None) is not None
            ]
            if marked:
                self._call(
                    "alter_partitions_with_environment_context",
                    name.database,
                    name.name,
                    marked,
                    keeping_statistics(),
                )
        return known


def _order(partition: Partition) -> tuple[tuple[bool, str], ...]:
    return tuple((value is not None, value or "") for value in partition.values)
