"""The ledger of streams."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Connection, MetaData, String, Table

from acidsql.metastore.embedded.migrations.steps import create, set_version

revision = "0006"
down_revision = "0005"

PERSON, ID = String(128), String(128)
metadata = MetaData()

Table(
    "STREAMS",
    metadata,
    Column("TXN_APP_ID", String(250), primary_key=True),
    Column("SINK", String(513), primary_key=True),
    Column("TXN_VERSION", BigInteger, nullable=False),
    Column("TXN_ID", BigInteger, nullable=False),
    Column("QUERY_ID", ID, nullable=False),
    Column("RUN_ID", ID, nullable=False),
    Column("FINGERPRINT", ID, nullable=False),
    Column("NUM_ROWS", BigInteger, nullable=False),
    Column("COMMITTED_AT", BigInteger, nullable=False),
    Column("TXN_USER", PERSON, nullable=False),
    Column("TXN_HOST", PERSON, nullable=False),
)


def upgrade(connection: Connection, warehouse: str) -> None:
    create(connection, metadata)
    set_version(connection, 6)
