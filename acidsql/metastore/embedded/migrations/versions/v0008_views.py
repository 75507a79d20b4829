"""Views, in columns of Hive's TBLS."""

from __future__ import annotations

from sqlalchemy import Column, Connection, MetaData, String, Table, Text, update

from acidsql.metastore.embedded.migrations.steps import add_columns, set_version

revision = "0008"
down_revision = "0007"

metadata = MetaData()

TBLS = Table(
    "TBLS",
    metadata,
    Column("TBL_TYPE", String(128)),
    Column("VIEW_ORIGINAL_TEXT", Text),
    Column("VIEW_EXPANDED_TEXT", Text),
)


def upgrade(connection: Connection, warehouse: str) -> None:
    add_columns(connection, metadata)
    unknown = TBLS.c.TBL_TYPE.is_(None)
    connection.execute(update(TBLS).where(unknown).values(TBL_TYPE="MANAGED_TABLE"))
    set_version(connection, 8)
