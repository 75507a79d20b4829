"""``Catalog.alter_table`` in a Hive Metastore. The caller has locked the tables.

If columns change, the server itself deletes its statistics of these columns, and the constraints
that name them. Hive's CHANGE COLUMN changes CLUSTERED BY, too, but neither SORTED BY nor views.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from acidsql.acid.constraints import Constraint
from acidsql.acid.table import Column, SortColumn, Table, TableName
from acidsql.errors import AcidSqlError, CatalogError, UnsupportedError
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.hive.catalog.constraints import HiveConstraints
from acidsql.metastore.hive.catalog.tables import HiveTables
from acidsql.metastore.hive.locking.numbers import HiveNumbers
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.raw_tables import RawTables, no_table
from acidsql.metastore.hive.wire.server import Server


class HiveAlterations:
    """The part of the store that changes tables; ``Catalog`` describes the methods."""

    def __init__(
        self,
        server: Server,
        raw_tables: RawTables,
        numbers: HiveNumbers,
        constraints: HiveConstraints,
        tables: HiveTables,
    ) -> None:
        self._server, self._raw_tables, self._numbers = server, raw_tables, numbers
        self._constraints, self._tables = constraints, tables

    def alter_table(
        self,
        name: TableName,
        *,
        columns: Sequence[Column] | None = None,
        bucket_columns: Sequence[str] | None = None,
        sort_columns: Sequence[SortColumn] | None = None,
        add_columns: Sequence[Column] = (),
        set_properties: Mapping[str, str] | None = None,
        unset_properties: Sequence[str] = (),
        constraints: Sequence[Constraint] | None = None,
        cdc_table: Table | None = None,
        txn_id: int | None = None,
    ) -> None:
        """Change the parts of an ACID table that are given (its partitions get new columns, too);
        if ``constraints`` are, change only these. Properties are unset before others are set. A
        change of columns that were there has a write id of its own. Raise CatalogError if there is
        no such ACID table, or a column would be there twice; raise UnsupportedError for other
        columns of a table with a CHECK."""
        self._numbers.need_open(txn_id)
        raw = self._raw_tables.need(name)
        is_acid = convert.is_transactional(raw)
        before = self._tables.acid_table(name, raw) if is_acid else None
        if before is None:
            raise no_table(name)
        after = replace(
            before,
            columns=(*(before.columns if columns is None else columns), *add_columns),
            constraints=before.constraints if constraints is None else tuple(constraints),
        )
        _refuse_repeated_columns(after)
        if constraints is not None:
            self._constraints.change(before, after)
            return
        if before.checks and before.columns != after.columns:
            raise UnsupportedError(
                f"{name} has a CHECK constraint, which the metastore would forget. Drop it before, "
                "and add it afterwards: ALTER TABLE … DROP CONSTRAINT, ADD CONSTRAINT.",
                condition="UNSUPPORTED_FEATURE.CHECK_CONSTRAINT",
            )
        raw.sd.cols = convert.fields(after.columns)
        if bucket_columns is not None:
            raw.sd.bucketCols = list(bucket_columns)
        if sort_columns is not None:
            raw.sd.sortCols = convert.sort_orders(sort_columns)
        convert.change_properties(raw, set_properties or {}, unset_properties)
        write_id = None
        if before.columns != after.columns[: len(before.columns)]:
            convert.unmark_statistics(raw)
            write_id = self._own_write_id(name, txn_id)
        with self._alter_cdc_table_first(cdc_table), self._constraints.changed(before, after):
            # Without CASCADE, partitions that exist keep their old columns.
            self._raw_tables.alter(name, raw, write_id, CASCADE="true")

    def _own_write_id(self, name: TableName, txn_id: int | None) -> int | None:
        """Allocate a write id, which gets no files, for a change of columns. None over Hive 3 or
        without a transaction.

        The server lets a client change the marks that its statistics are right only with a write
        id. The server itself removes the marks of changed columns, also in partitions.
        """
        if txn_id is None or self._server.features.is_hive3:
            return None
        request = hive.AllocateTableWriteIdsRequest(
            dbName=name.database, tableName=name.name, txnIds=[txn_id]
        )
        answer = self._server.call("allocate_table_write_ids", request)
        write_id: int = answer.txnToWriteIds[0].writeId
        return write_id

    def foreign_keys_to(self, name: TableName) -> list[tuple[TableName, Constraint]]:
        return []  # what Hive has of them, the server forgets if columns change

    @contextmanager
    def _alter_cdc_table_first(self, cdc_table: Table | None) -> Iterator[None]:
        """Change the table of AUTO CDC before the block, which changes its target. None, or a table
        that is gone, is skipped.

        So the same statement goes on after a crash. If the server refuses to change the target, the
        change of the table of AUTO CDC is taken back.
        """
        before = None if cdc_table is None else acid_table(self._tables.find(cdc_table.name))
        if cdc_table is None or before is None:
            yield
            return
        self._write_cdc_table(cdc_table)
        try:
            yield
        except (CatalogError, UnsupportedError):
            with suppress(AcidSqlError):  # the refusal is more important
                self._write_cdc_table(before)
            raise

    def _write_cdc_table(self, cdc_table: Table) -> None:
        """Write the columns and bucketing columns of a table of AUTO CDC, and set its properties;
        properties that ``cdc_table`` lacks stay. Raise CatalogError if the table is missing."""
        raw = self._raw_tables.need(cdc_table.name)
        raw.sd.cols = convert.fields(cdc_table.columns)
        raw.sd.bucketCols = list(cdc_table.bucket_columns)
        convert.change_properties(raw, cdc_table.properties, ())
        self._raw_tables.alter(cdc_table.name, raw, CASCADE="true")


def _refuse_repeated_columns(table: Table) -> None:
    """Raise CatalogError COLUMN_ALREADY_EXISTS if a table has two columns of one name, partition
    columns included."""
    names: set[str] = set()
    for column in table.all_columns:
        if column.name in names:
            raise CatalogError(
                f"{table.name} would have the column '{column.name}' twice.",
                condition="COLUMN_ALREADY_EXISTS", sqlstate="42711", column=column.name,
            )  # fmt: skip
        names.add(column.name)
