"""Constraints that are not enforced."""

from __future__ import annotations

from sqlalchemy import Column, Connection, Integer, MetaData, Table

from acidsql.metastore.embedded.migrations.steps import add_columns, set_version

revision = "0009"
down_revision = "0008"

added = MetaData()
Table("KEY_CONSTRAINTS", added, Column("ENABLE_VALIDATE_RELY", Integer))


def upgrade(connection: Connection, warehouse: str) -> None:
    add_columns(connection, added)
    set_version(connection, 9)
