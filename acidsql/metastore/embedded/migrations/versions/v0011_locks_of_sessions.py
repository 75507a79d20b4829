"""Which session a lock belongs to."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Connection, MetaData, Table

from acidsql.metastore.embedded.migrations.steps import add_columns, set_version

revision = "0011"
down_revision = "0010"

added = MetaData()
Table("HIVE_LOCKS", added, Column("HL_SESSION", BigInteger))


def upgrade(connection: Connection, warehouse: str) -> None:
    add_columns(connection, added)
    set_version(connection, 11)
