"""The format of a table's files, in columns of Hive's SDS and SERDES."""

from __future__ import annotations

from sqlalchemy import Column, Connection, MetaData, String, Table

from acidsql.metastore.embedded.migrations.steps import add_columns, set_version

revision = "0005"
down_revision = "0004"

CLASS = String(4000)
metadata = MetaData()

Table(
    "TBLS",
    metadata,
    Column("INPUT_FORMAT", CLASS),
    Column("OUTPUT_FORMAT", CLASS),
    Column("SLIB", CLASS),
)


def upgrade(connection: Connection, warehouse: str) -> None:
    add_columns(connection, metadata)
    set_version(connection, 5)
