"""Hive's tables: the schema of acidsql 0.1, which made SQLite files without Alembic.

A revision repeats tables of ``schema`` on purpose: ``schema`` goes on changing, and a revision must
make for ever the tables that it made when it was released.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
)

from acidsql.metastore.embedded.migrations.steps import ID, claim, create, seed, set_version

revision = "0001"
down_revision = None

NAME, PARTITION, LOCATION = String(256), String(767), String(4000)
PERSON, AGENT, LETTER = String(128), String(1024), String(1)
# 256 + 256 + 767 characters are too long for a key in MySQL. The index is not unique, so a prefix
# of the partition is enough.
OF_PARTITION = {"CTC_PARTITION": 255}

metadata = MetaData()


def upgrade(connection: Connection, warehouse: str) -> None:
    claim(connection)
    create(connection, metadata)
    for counter in COUNTERS:
        seed(connection, counter, **{column.name: 1 for column in counter.columns})
    seed(connection, DBS, NAME="default", DB_LOCATION_URI=warehouse)
    set_version(connection, 1)


def _counter(table: str, column: str) -> Table:
    return Table(table, metadata, Column(column, BigInteger, nullable=False))


def _table_id() -> Column[int]:
    return Column("TBL_ID", ID, ForeignKey("TBLS.TBL_ID", ondelete="CASCADE"), primary_key=True)


DBS = Table(
    "DBS",
    metadata,
    Column("DB_ID", ID, primary_key=True),
    Column("NAME", NAME, nullable=False, unique=True),
    Column("DB_LOCATION_URI", LOCATION, nullable=False),
    Column("DESC", Text),
)

Table(
    "TBLS",
    metadata,
    Column("TBL_ID", ID, primary_key=True),
    Column("DB_ID", ForeignKey("DBS.DB_ID"), nullable=False),
    Column("TBL_NAME", NAME, nullable=False),
    Column("LOCATION", LOCATION, nullable=False),
    Column("NUM_BUCKETS", Integer, nullable=False),
    Column("COMMENT", Text),
    Column("FIRST_WRITE_ID", BigInteger, nullable=False),
    UniqueConstraint("DB_ID", "TBL_NAME"),
)

Table(
    "COLUMNS_V2",
    metadata,
    _table_id(),
    Column("COLUMN_NAME", String(767), primary_key=True),
    Column("TYPE_NAME", Text, nullable=False),
    Column("COMMENT", Text),
    Column("INTEGER_IDX", Integer, nullable=False),
    Column("IS_NULLABLE", Boolean, nullable=False),
    Column("DEFAULT_VALUE", Text),
)

Table(
    "PARTITION_KEYS",
    metadata,
    _table_id(),
    Column("PKEY_NAME", String(128), primary_key=True),
    Column("PKEY_TYPE", Text, nullable=False),
    Column("PKEY_COMMENT", Text),
    Column("INTEGER_IDX", Integer, nullable=False),
    Column("IS_NULLABLE", Boolean, nullable=False),
    Column("DEFAULT_VALUE", Text),
)

Table(
    "BUCKETING_COLS",
    metadata,
    _table_id(),
    Column("INTEGER_IDX", Integer, primary_key=True),
    Column("BUCKET_COL_NAME", NAME, nullable=False),
)

Table(
    "TABLE_PARAMS",
    metadata,
    _table_id(),
    Column("PARAM_KEY", NAME, primary_key=True),
    Column("PARAM_VALUE", Text, nullable=False),
)

Table(
    "KEY_CONSTRAINTS",
    metadata,
    _table_id(),
    Column("CONSTRAINT_NAME", NAME, primary_key=True),
    Column("CONSTRAINT_TYPE", Integer, nullable=False),
    Column("POSITION", Integer, nullable=False),
    Column("DEFAULT_VALUE", Text, nullable=False),
)

Table(
    "PARTITIONS",
    metadata,
    Column("PART_ID", ID, primary_key=True),
    Column("TBL_ID", ForeignKey("TBLS.TBL_ID", ondelete="CASCADE"), nullable=False),
    Column("PART_NAME", PARTITION, nullable=False),
    Column("LOCATION", LOCATION, nullable=False),
    UniqueConstraint("TBL_ID", "PART_NAME"),
)

Table(
    "PARTITION_KEY_VALS",
    metadata,
    Column("PART_ID", ForeignKey("PARTITIONS.PART_ID", ondelete="CASCADE"), primary_key=True),
    Column("INTEGER_IDX", Integer, primary_key=True),
    Column("PART_KEY_VAL", Text),
)

Table(
    "TXNS",
    metadata,
    Column("TXN_ID", BigInteger, primary_key=True, autoincrement=False),
    Column("TXN_STATE", LETTER, nullable=False),
    Column("TXN_STARTED", BigInteger, nullable=False),
    Column("TXN_LAST_HEARTBEAT", BigInteger, nullable=False),
    Column("TXN_USER", PERSON, nullable=False),
    Column("TXN_HOST", PERSON, nullable=False),
    Column("TXN_AGENT_INFO", AGENT),
    Column("TXN_META_INFO", AGENT),
    Column("TXN_TYPE", Integer, nullable=False),
    Column("TXN_TIMEOUT", BigInteger),
    Index("TXNS_STATE_INDEX", "TXN_STATE", "TXN_ID"),
)

Table(
    "TXN_COMPONENTS",
    metadata,
    Column("TC_TXNID", ForeignKey("TXNS.TXN_ID"), nullable=False, index=True),
    Column("TC_DATABASE", NAME, nullable=False),
    Column("TC_TABLE", NAME),
    Column("TC_PARTITION", PARTITION),
    Column("TC_OPERATION_TYPE", LETTER, nullable=False),
    Column("TC_WRITEID", BigInteger),
    Index("TXN_COMPONENTS_TABLE_INDEX", "TC_DATABASE", "TC_TABLE"),
)

Table(
    "COMPLETED_TXN_COMPONENTS",
    metadata,
    Column("CTC_TXNID", BigInteger, nullable=False),
    Column("CTC_DATABASE", NAME, nullable=False),
    Column("CTC_TABLE", NAME),
    Column("CTC_PARTITION", PARTITION),
    Column("CTC_TIMESTAMP", DateTime, nullable=False, server_default=func.current_timestamp()),
    Column("CTC_WRITEID", BigInteger),
    Column("CTC_UPDATE_DELETE", LETTER, nullable=False),
    Index(
        "COMPLETED_TXN_COMPONENTS_IDX",
        "CTC_DATABASE",
        "CTC_TABLE",
        "CTC_PARTITION",
        mysql_length=OF_PARTITION,
        mariadb_length=OF_PARTITION,
    ),
)

Table(
    "TXN_TO_WRITE_ID",
    metadata,
    Column("T2W_TXNID", BigInteger, nullable=False),
    Column("T2W_DATABASE", NAME, nullable=False),
    Column("T2W_TABLE", NAME, nullable=False),
    Column("T2W_WRITEID", BigInteger, nullable=False),
    UniqueConstraint("T2W_DATABASE", "T2W_TABLE", "T2W_TXNID"),
    UniqueConstraint("T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID"),
)

Table(
    "NEXT_WRITE_ID",
    metadata,
    Column("NWI_DATABASE", NAME, primary_key=True),
    Column("NWI_TABLE", NAME, primary_key=True),
    Column("NWI_NEXT", BigInteger, nullable=False),
)

Table(
    "DROPPED_WRITE_IDS",
    metadata,
    Column("DWI_DATABASE", NAME, primary_key=True),
    Column("DWI_TABLE", NAME, primary_key=True),
    Column("DWI_WRITEID", BigInteger, primary_key=True, autoincrement=False),
)

Table(
    "WRITE_SET",
    metadata,
    Column("WS_DATABASE", NAME, nullable=False),
    Column("WS_TABLE", NAME, nullable=False),
    Column("WS_PARTITION", PARTITION),
    Column("WS_TXNID", BigInteger, nullable=False),
    Column("WS_COMMIT_ID", BigInteger, nullable=False),
    Column("WS_OPERATION_TYPE", LETTER, nullable=False),
    Index("WRITE_SET_INDEX", "WS_DATABASE", "WS_TABLE", "WS_COMMIT_ID"),
)

Table(
    "HIVE_LOCKS",
    metadata,
    Column("HL_LOCK_EXT_ID", BigInteger, primary_key=True, autoincrement=False),
    Column("HL_LOCK_INT_ID", BigInteger, primary_key=True, autoincrement=False),
    Column("HL_TXNID", BigInteger, nullable=False, index=True),
    Column("HL_DB", NAME, nullable=False),
    Column("HL_TABLE", NAME),
    Column("HL_PARTITION", PARTITION),
    Column("HL_LOCK_STATE", LETTER, nullable=False),
    Column("HL_LOCK_TYPE", LETTER, nullable=False),
    Column("HL_LAST_HEARTBEAT", BigInteger, nullable=False),
    Column("HL_ACQUIRED_AT", BigInteger),
    Column("HL_USER", PERSON, nullable=False),
    Column("HL_HOST", PERSON, nullable=False),
    Column("HL_AGENT_INFO", AGENT),
    Column("HL_BLOCKEDBY_EXT_ID", BigInteger),
    Column("HL_BLOCKEDBY_INT_ID", BigInteger),
)

Table(
    "COMPACTION_QUEUE",
    metadata,
    Column("CQ_ID", BigInteger, primary_key=True, autoincrement=False),
    Column("CQ_DATABASE", NAME, nullable=False),
    Column("CQ_TABLE", NAME, nullable=False),
    Column("CQ_PARTITION", PARTITION),
    Column("CQ_STATE", LETTER, nullable=False),
    Column("CQ_TYPE", LETTER, nullable=False),
    Column("CQ_TBLPROPERTIES", Text),
    Column("CQ_ENQUEUE_TIME", BigInteger),
)

COUNTERS = (
    _counter("NEXT_TXN_ID", "NTXN_NEXT"),
    _counter("NEXT_LOCK_ID", "NL_NEXT"),
    _counter("NEXT_COMPACTION_QUEUE_ID", "NCQ_NEXT"),
)
