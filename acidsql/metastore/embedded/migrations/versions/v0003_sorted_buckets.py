"""SORTED BY of insert-only tables, in Hive's SORT_COLS."""

from __future__ import annotations

from sqlalchemy import Column, Connection, ForeignKey, Integer, MetaData, String, Table

from acidsql.metastore.embedded.migrations.steps import ID, create, set_version

revision = "0003"
down_revision = "0002"

metadata = MetaData()

Table("TBLS", metadata, Column("TBL_ID", ID, primary_key=True))  # exists; the foreign key needs it
Table(
    "SORT_COLS",
    metadata,
    Column("TBL_ID", ID, ForeignKey("TBLS.TBL_ID", ondelete="CASCADE"), primary_key=True),
    Column("INTEGER_IDX", Integer, primary_key=True),
    Column("COLUMN_NAME", String(767), nullable=False),
    Column("ORDER", Integer, nullable=False),
)


def upgrade(connection: Connection, warehouse: str) -> None:
    create(connection, metadata)
    set_version(connection, 3)
