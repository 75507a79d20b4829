"""``Catalog.alter_table`` in a Hive Metastore. The caller has locked the tables.

If columns change, the server itself deletes its statistics of these columns, and the constraints
that name them. Hive's CHANGE COLUMN changes CLUSTERED BY along, but neither SORTED BY nor views.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from acidsql.acid.constraints import Constraint
from acidsql.acid.table import Column, SortColumn, Table, TableName
from acidsql.errors import AcidSqlError, CatalogError, UnsupportedError
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.hive import convert
from acidsql.metastore.hive.calls import no_table
from acidsql.metastore.hive.catalog import NOTHING_KNOWN, HiveCatalog
from acidsql.metastore.hive.idl import hive


class HiveAlterations(HiveCatalog):
    """The part of the store that changes tables; ``Catalog`` describes the methods."""

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
        beside: Table | None = None,
        txn_id: int | None = None,
    ) -> None:
        self._need_open(txn_id)
        raw = self._need_raw(name)
        is_acid = convert.is_transactional(raw)
        before = self._acid_table(name, raw, NOTHING_KNOWN) if is_acid else None
        if before is None:
            raise no_table(name)
        after = replace(
            before,
            columns=(*(before.columns if columns is None else columns), *add_columns),
            constraints=before.constraints if constraints is None else tuple(constraints),
        )
        _refuse_twice(after)
        if constraints is not None:
            self._change_constraints(before, after)
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
            raw.sd.sortCols = convert.orders(sort_columns)
        convert.changed(raw, set_properties or {}, unset_properties)
        write_id = None
        if before.columns != after.columns[: len(before.columns)]:
            convert.unmark(raw)
            write_id = self._own_write_id(name, txn_id)
        with self._altered_beside(beside), self._constraints_changed(before, after):
            # Without CASCADE, partitions that exist keep their old columns.
            self._alter(name, raw, write_id, CASCADE="true")

    def _own_write_id(self, name: TableName, txn_id: int | None) -> int | None:
        """A write id without files. Without one, the server lets nobody change the marks that its
        statistics are right. It takes those of changed columns away itself, also in partitions."""
        if txn_id is None or self.features.is_hive3:
            return None
        wanted = hive.AllocateTableWriteIdsRequest(
            dbName=name.database, tableName=name.name, txnIds=[txn_id]
        )
        answer = self._call("allocate_table_write_ids", wanted)
        write_id: int = answer.txnToWriteIds[0].writeId
        return write_id

    def foreign_keys_to(self, name: TableName) -> list[tuple[TableName, Constraint]]:
        return []  # what Hive has of them, the server forgets if columns change

    @contextmanager
    def _altered_beside(self, beside: Table | None) -> Iterator[None]:
        """Change the table beside another one before it: so the same statement, after a crash, goes
        on. If the server refuses to change the other one, this change is taken back."""
        before = None if beside is None else acid_table(self.find(beside.name))
        if beside is None or before is None:
            yield
            return
        self._put_beside(beside)
        try:
            yield
        except (CatalogError, UnsupportedError):
            with suppress(AcidSqlError):  # the refusal is more important
                self._put_beside(before)
            raise

    def _put_beside(self, beside: Table) -> None:
        raw = self._need_raw(beside.name)
        raw.sd.cols = convert.fields(beside.columns)
        raw.sd.bucketCols = list(beside.bucket_columns)
        convert.changed(raw, beside.properties, ())
        self._alter(beside.name, raw, CASCADE="true")


def _refuse_twice(table: Table) -> None:
    seen: set[str] = set()
    for column in table.all_columns:
        if column.name in seen:
            raise CatalogError(
                f"{table.name} would have the column '{column.name}' twice.",
                condition="COLUMN_ALREADY_EXISTS", sqlstate="42711", column=column.name,
            )  # fmt: skip
        seen.add(column.name)
