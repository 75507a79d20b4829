"""The versions of tables."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Index,
    MetaData,
    String,
    Table,
    func,
    select,
    update,
)

from acidsql.metastore.embedded.migrations.steps import ID, add_columns, create, set_version

revision = "0007"
down_revision = "0006"

PERSON, AGENT = String(128), String(1024)

known = MetaData()
TBLS = Table(
    "TBLS",
    known,
    Column("TBL_ID", ID, primary_key=True),
    Column("DB_ID", BigInteger),
    Column("TBL_NAME", String(256)),
    Column("OLDEST_VERSION", BigInteger),
)
DBS = Table("DBS", known, Column("DB_ID", BigInteger), Column("NAME", String(256)))
NEXT_WRITE_ID = Table(
    "NEXT_WRITE_ID",
    known,
    Column("NWI_DATABASE", String(256)),
    Column("NWI_TABLE", String(256)),
    Column("NWI_NEXT", BigInteger),
)

added = MetaData()
Table("TBLS", added, Column("OLDEST_VERSION", BigInteger))

made = MetaData()
Table("TBLS", made, Column("TBL_ID", ID, primary_key=True))
Table(
    "TABLE_VERSIONS",
    made,
    Column("TV_ID", ID, primary_key=True),
    Column("TBL_ID", ForeignKey("TBLS.TBL_ID", ondelete="CASCADE"), nullable=False),
    Column("TV_WRITEID", BigInteger, nullable=False),
    Column("TV_TXNID", BigInteger, nullable=False, index=True),
    Column("TV_COMMITTED_AT", BigInteger, nullable=False),
    Column("TV_USER", PERSON, nullable=False),
    Column("TV_HOST", PERSON, nullable=False),
    Column("TV_OPERATION", String(64), nullable=False),
    Column("TV_STATEMENT", AGENT, nullable=False),
    Column("TV_INSERTED", BigInteger, nullable=False),
    Column("TV_UPDATED", BigInteger, nullable=False),
    Column("TV_DELETED", BigInteger, nullable=False),
    Column("TV_FILES", BigInteger, nullable=False),
    Column("TV_BYTES", BigInteger, nullable=False),
    Column("TV_PARTITIONS", BigInteger, nullable=False),
    Index("TABLE_VERSIONS_INDEX", "TBL_ID", "TV_ID"),
)


def upgrade(connection: Connection, warehouse: str) -> None:
    add_columns(connection, added)
    create(connection, made)
    _begin_now(connection)
    set_version(connection, 7)


def _begin_now(connection: Connection) -> None:
    """Nobody noted which files were deleted before. So the history of each table begins now."""
    last = (
        select(NEXT_WRITE_ID.c.NWI_NEXT - 1)
        .join_from(NEXT_WRITE_ID, DBS, DBS.c.NAME == NEXT_WRITE_ID.c.NWI_DATABASE)
        .where(DBS.c.DB_ID == TBLS.c.DB_ID, NEXT_WRITE_ID.c.NWI_TABLE == TBLS.c.TBL_NAME)
        .scalar_subquery()
    )
    unknown = TBLS.c.OLDEST_VERSION.is_(None)
    connection.execute(update(TBLS).where(unknown).values(OLDEST_VERSION=func.coalesce(last, 0)))
