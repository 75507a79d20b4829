"""What the worker of a compaction does now, in Hive's column for the job that it runs."""

from __future__ import annotations

from sqlalchemy import Column, Connection, MetaData, String, Table

from acidsql.metastore.embedded.migrations.steps import add_columns, set_version

revision = "0012"
down_revision = "0011"

added = MetaData()
Table("COMPACTION_QUEUE", added, Column("CQ_HADOOP_JOB_ID", String(32)))


def upgrade(connection: Connection, warehouse: str) -> None:
    add_columns(connection, added)
    set_version(connection, 12)
