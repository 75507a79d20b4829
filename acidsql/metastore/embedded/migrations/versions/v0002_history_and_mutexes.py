"""Tables for housekeeping, and the row that writers lock."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    MetaData,
    String,
    Table,
    column,
    insert,
    literal,
    select,
    table,
)

from acidsql.metastore.embedded.migrations.steps import create, seed, set_version

revision = "0002"
down_revision = "0001"

metadata = MetaData()

MIN_HISTORY_LEVEL = Table(
    "MIN_HISTORY_LEVEL",
    metadata,
    Column("MHL_TXNID", BigInteger, primary_key=True, autoincrement=False),
    Column("MHL_MIN_OPEN_TXNID", BigInteger, nullable=False, index=True),
)

TXN_LOCK_TBL = Table("TXN_LOCK_TBL", metadata, Column("TXN_LOCK", BigInteger, nullable=False))

Table(
    "AUX_TABLE",
    metadata,
    Column("MT_KEY1", String(128), primary_key=True),
    Column("MT_KEY2", BigInteger, nullable=False),
    Column("MT_COMMENT", String(255)),
)

TXNS = table("TXNS", column("TXN_ID"), column("TXN_STATE"))


def upgrade(connection: Connection, warehouse: str) -> None:
    create(connection, metadata)
    seed(connection, TXN_LOCK_TBL, TXN_LOCK=1)
    _keep_history_of_the_open(connection)
    set_version(connection, 2)


def _keep_history_of_the_open(connection: Connection) -> None:
    """Give open transactions a row. Nobody knows which transactions were open when they began, so
    the lowest possible number, 1, stands there."""
    known = select(MIN_HISTORY_LEVEL.c.MHL_TXNID)
    still_open = select(TXNS.c.TXN_ID, literal(1, BigInteger)).where(
        TXNS.c.TXN_STATE == "o", TXNS.c.TXN_ID.not_in(known)
    )
    columns = ["MHL_TXNID", "MHL_MIN_OPEN_TXNID"]
    connection.execute(insert(MIN_HISTORY_LEVEL).from_select(columns, still_open))
