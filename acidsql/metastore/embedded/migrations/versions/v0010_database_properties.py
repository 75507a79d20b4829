"""DBPROPERTIES, in Hive's DATABASE_PARAMS."""

from __future__ import annotations

from sqlalchemy import Column, Connection, ForeignKey, MetaData, String, Table, Text

from acidsql.metastore.embedded.migrations.steps import ID, create, set_version

revision = "0010"
down_revision = "0009"

metadata = MetaData()

Table("DBS", metadata, Column("DB_ID", ID, primary_key=True))  # exists; the foreign key needs it
Table(
    "DATABASE_PARAMS",
    metadata,
    Column("DB_ID", ID, ForeignKey("DBS.DB_ID", ondelete="CASCADE"), primary_key=True),
    Column("PARAM_KEY", String(256), primary_key=True),
    Column("PARAM_VALUE", Text, nullable=False),
)


def upgrade(connection: Connection, warehouse: str) -> None:
    create(connection, metadata)
    set_version(connection, 10)
