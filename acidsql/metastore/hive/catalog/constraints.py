"""The constraints of a table in a Hive Metastore, which are changed by calls of their own.

The lock of the table, which is EXCLUSIVE, protects a change of several calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from acidsql.acid.table import Table, TableName
from acidsql.errors import AcidSqlError, CatalogError, UnsupportedError
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.server import Server


class HiveConstraints:
    """The part of the catalog about NOT NULL, DEFAULT and CHECK."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def fetch(self, name: TableName) -> Any:
        """Fetch a table's constraints, as the server's ``SQLAllTableConstraints``."""
        request = hive.AllTableConstraintsRequest(
            dbName=name.database, tblName=name.name, catName=self._server.catalog
        )
        return self._server.call("get_all_table_constraints", request).allTableConstraints

    def change(self, before: Table, after: Table) -> None:
        """Drop the constraints that ``after`` lacks, and add those that ``before`` lacks: CHECK and
        NOT NULL that nobody enforces. Columns' own NOT NULL and DEFAULT stay."""
        for constraint in before.constraints:
            if constraint not in after.constraints:
                self._drop_constraint(before.name, constraint.name)
        new = [
            constraint for constraint in after.constraints if constraint not in before.constraints
        ]
        if raw_constraints := convert.check_constraints(after.name, new, self._server.catalog):
            checks = hive.AddCheckConstraintRequest(checkConstraintCols=raw_constraints)
            self._server.call("add_check_constraint", checks)
        if raw_constraints := convert.unenforced_constraints(after.name, new, self._server.catalog):
            not_null = hive.AddNotNullConstraintRequest(notNullConstraintCols=raw_constraints)
            self._server.call("add_not_null_constraint", not_null)

    @contextmanager
    def changed(self, before: Table, after: Table) -> Iterator[None]:
        """Before the block, which changes the columns, drop NOT NULL and DEFAULT of those data
        columns that are new or gone, or have another NOT NULL or DEFAULT. After it, add all NOT
        NULL and DEFAULT that are missing, if columns differ at all: the server forgets the
        constraints of a table then. If the server refuses the change, the dropped ones are added
        again."""
        old, new = (
            {(c.name, c.nullable, c.default) for c in table.columns} for table in (before, after)
        )
        self._drop_constraints(before.name, {column for column, *_ in old ^ new})
        try:
            yield
        except (CatalogError, UnsupportedError):
            with suppress(AcidSqlError):  # the refusal is more important
                self._add_missing_constraints(before)
            raise
        if before.columns != after.columns:
            self._add_missing_constraints(after)

    def _drop_constraints(self, name: TableName, columns: set[str]) -> None:
        """Drop the NOT NULL and DEFAULT constraints that the server has of these columns, in a call
        for each. Without columns nothing is asked."""
        constraints = self.fetch(name) if columns else None
        required = [] if constraints is None else constraints.notNullConstraints or []
        filled = [] if constraints is None else constraints.defaultConstraints or []
        names_to_drop = [raw.nn_name for raw in required if raw.column_name in columns]
        names_to_drop += [raw.dc_name for raw in filled if raw.column_name in columns]
        for constraint in sorted(names_to_drop):
            self._drop_constraint(name, constraint)

    def _drop_constraint(self, name: TableName, constraint: str) -> None:
        """Drop a constraint by its name."""
        request = hive.DropConstraintRequest(
            dbname=name.database,
            tablename=name.name,
            constraintname=constraint,
            catName=self._server.catalog,
        )
        self._server.call("drop_constraint", request)

    def _add_missing_constraints(self, table: Table) -> None:
        """Add NOT NULL to those columns of a table that shall have it and have none on the server,
        and likewise DEFAULT. A constraint that is there stays as it is."""
        constraints = self.fetch(table.name)
        required = {raw.column_name for raw in constraints.notNullConstraints or ()}
        filled = {raw.column_name for raw in constraints.defaultConstraints or ()}
        columns = [column for column in table.all_columns if column.name not in required]
        if raw_constraints := convert.not_null_constraints(
            table.name, columns, self._server.catalog
        ):
            request = hive.AddNotNullConstraintRequest(notNullConstraintCols=raw_constraints)
            self._server.call("add_not_null_constraint", request)
        columns = [column for column in table.all_columns if column.name not in filled]
        if raw_constraints := convert.default_constraints(
            table.name, columns, self._server.catalog
        ):
            request = hive.AddDefaultConstraintRequest(defaultConstraintCols=raw_constraints)
            self._server.call("add_default_constraint", request)
