"""The store's tables, with Hive's names and letters (``hive-schema-3.1.0``, ``4.0.0``).

The transaction tables are Hive's. The catalog is Hive's without SDS and CDS: rows that belong to a
storage descriptor in Hive (TBLS → SDS → CDS → COLUMNS_V2) belong to the table here. acidsql adds
TXN_TIMEOUT, HL_SESSION, FIRST_WRITE_ID, OLDEST_VERSION, FIRST_VERSION, DROPPED_WRITE_IDS
(``write_ids``), TABLE_VERSIONS (``versions``), STREAMS (``streams``), and its own text in VERSION.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
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

SCHEMA_VERSION = 14  # the last revision in ``migrations``
FIRST_SCHEMA_VERSION = 14  # of the first release
VERSION_COMMENT = "acidsql embedded metastore"

metadata = MetaData()

NAME = String(256)
PARTITION, LOCATION = String(767), String(4000)
PERSON = String(128)  # users and hosts
AGENT = String(1024)  # Hive: 128. Messages should show more of a statement's beginning.
CLASS = String(1024)  # Hive: 4000. MySQL has 65,535 bytes in a row, four for each character.
LETTER = String(1)
# Two names and a partition are too long for a key in MySQL, so an index has a prefix of the last.
# It needs no more, because it is not unique.
PARTITION_IN_INDEX = 255
# SQLite numbers rows itself only in a column whose type is exactly INTEGER.
NUMBER = BigInteger().with_variant(Integer, "sqlite")


def _id(name: str, *, primary_key: bool = False, nullable: bool = False) -> Column[int]:
    """Make a column for a number of a database object."""
    return Column(name, NUMBER, primary_key=primary_key, nullable=nullable)


def _counter(table: str, column: str) -> Table:
    """Make a table with one column, whose one row holds the next number."""
    return Table(table, metadata, Column(column, BigInteger, nullable=False))


def _owner_column(of: str, name: str) -> Column[int]:
    """Make a column of the primary key that refers to the column ``name`` of the table ``of``; rows
    are deleted with the row that they refer to."""
    return Column(name, NUMBER, ForeignKey(f"{of}.{name}", ondelete="CASCADE"), primary_key=True)


def _partition_index(name: str, prefix: str) -> Index:
    """Make an index of the columns <prefix>_DATABASE, _TABLE and _PARTITION."""
    columns = [f"{prefix}_{part}" for part in ("DATABASE", "TABLE", "PARTITION")]
    lengths = {columns[-1]: PARTITION_IN_INDEX}
    return Index(name, *columns, mysql_length=lengths, mariadb_length=lengths)


# ── catalog ──────────────────────────────────────────────────────────────────────────────────

# This table says that the database belongs to acidsql, so its definition never changes.
VERSION = Table(
    "VERSION",
    metadata,
    _id("VER_ID", primary_key=True),
    Column("SCHEMA_VERSION", Integer, nullable=False),
    Column("VERSION_COMMENT", String(256), nullable=False),
)

DBS = Table(
    "DBS",
    metadata,
    _id("DB_ID", primary_key=True),
    Column("NAME", NAME, nullable=False, unique=True),
    Column("DB_LOCATION_URI", LOCATION, nullable=False),
    Column("DESC", Text),
)

DATABASE_PARAMS = Table(
    "DATABASE_PARAMS",
    metadata,
    _owner_column("DBS", "DB_ID"),
    Column("PARAM_KEY", NAME, primary_key=True),
    Column("PARAM_VALUE", Text, nullable=False),
)

TBLS = Table(
    "TBLS",
    metadata,
    _id("TBL_ID", primary_key=True),
    Column("DB_ID", ForeignKey("DBS.DB_ID"), nullable=False),
    Column("TBL_NAME", NAME, nullable=False),
    Column("LOCATION", LOCATION, nullable=False),
    Column("NUM_BUCKETS", Integer, nullable=False),
    Column("COMMENT", Text),
    Column("FIRST_WRITE_ID", BigInteger, nullable=False),
    # From Hive's SDS and SERDES. NULL: a view.
    Column("INPUT_FORMAT", CLASS),
    Column("OUTPUT_FORMAT", CLASS),
    Column("SLIB", CLASS),
    Column("OLDEST_VERSION", BigInteger),
    Column("FIRST_VERSION", BigInteger),
    Column("TBL_TYPE", String(128)),
    Column("VIEW_ORIGINAL_TEXT", Text),
    Column("VIEW_EXPANDED_TEXT", Text),
    UniqueConstraint("DB_ID", "TBL_NAME"),
)

MANAGED_TABLE, VIRTUAL_VIEW = "MANAGED_TABLE", "VIRTUAL_VIEW"  # TBLS.TBL_TYPE

COLUMNS_V2 = Table(
    "COLUMNS_V2",
    metadata,
    _owner_column("TBLS", "TBL_ID"),
    Column("COLUMN_NAME", String(767), primary_key=True),
    Column("TYPE_NAME", Text, nullable=False),
    Column("COMMENT", Text),
    Column("INTEGER_IDX", Integer, nullable=False),
    Column("IS_NULLABLE", Boolean, nullable=False),
    Column("DEFAULT_VALUE", Text),
)

PARTITION_KEYS = Table(
    "PARTITION_KEYS",
    metadata,
    _owner_column("TBLS", "TBL_ID"),
    Column("PKEY_NAME", String(128), primary_key=True),
    Column("PKEY_TYPE", Text, nullable=False),
    Column("PKEY_COMMENT", Text),
    Column("INTEGER_IDX", Integer, nullable=False),
    Column("IS_NULLABLE", Boolean, nullable=False),
    Column("DEFAULT_VALUE", Text),
)

BUCKETING_COLS = Table(
    "BUCKETING_COLS",
    metadata,
    _owner_column("TBLS", "TBL_ID"),
    Column("INTEGER_IDX", Integer, primary_key=True),
    Column("BUCKET_COL_NAME", NAME, nullable=False),
)

ASCENDING, DESCENDING = 1, 0  # SORT_COLS.ORDER

SORT_COLS = Table(
    "SORT_COLS",
    metadata,
    _owner_column("TBLS", "TBL_ID"),
    Column("INTEGER_IDX", Integer, primary_key=True),
    Column("COLUMN_NAME", String(767), nullable=False),
    Column("ORDER", Integer, nullable=False),
)

TABLE_PARAMS = Table(
    "TABLE_PARAMS",
    metadata,
    _owner_column("TBLS", "TBL_ID"),
    Column("PARAM_KEY", NAME, primary_key=True),
    Column("PARAM_VALUE", Text, nullable=False),
)

KEY_CONSTRAINTS = Table(
    "KEY_CONSTRAINTS",
    metadata,
    _owner_column("TBLS", "TBL_ID"),
    Column("CONSTRAINT_NAME", NAME, primary_key=True),
    Column("CONSTRAINT_TYPE", Integer, nullable=False),
    Column("POSITION", Integer, nullable=False),
    Column("DEFAULT_VALUE", Text, nullable=False),
    Column("ENABLE_VALIDATE_RELY", Integer),  # a sum of Hive's bits; NULL: enabled
)

PARTITIONS = Table(
    "PARTITIONS",
    metadata,
    _id("PART_ID", primary_key=True),
    Column("TBL_ID", ForeignKey("TBLS.TBL_ID", ondelete="CASCADE"), nullable=False),
    Column("PART_NAME", PARTITION, nullable=False),
    Column("LOCATION", LOCATION, nullable=False),
    UniqueConstraint("TBL_ID", "PART_NAME"),
)

PARTITION_KEY_VALS = Table(
    "PARTITION_KEY_VALS",
    metadata,
    Column("PART_ID", ForeignKey("PARTITIONS.PART_ID", ondelete="CASCADE"), primary_key=True),
    Column("INTEGER_IDX", Integer, primary_key=True),
    Column("PART_KEY_VAL", Text),
)

TABLE_VERSIONS = Table(
    "TABLE_VERSIONS",
    metadata,
    _id("TV_ID", primary_key=True),  # in the order of the commits
    Column("TBL_ID", ForeignKey("TBLS.TBL_ID", ondelete="CASCADE"), nullable=False),
    Column("TV_WRITEID", BigInteger, nullable=False),
    Column("TV_TXNID", BigInteger, nullable=False, index=True),
    Column("TV_COMMITTED_AT", BigInteger, nullable=False),
    Column("TV_USER", PERSON, nullable=False),
    Column("TV_HOST", PERSON, nullable=False),
    Column("TV_OPERATION", String(64), nullable=False),
    Column("TV_STATEMENT", AGENT, nullable=False),
    *(
        Column(f"TV_{count}", BigInteger, nullable=False)
        for count in ("INSERTED", "UPDATED", "DELETED", "FILES", "BYTES", "PARTITIONS")
    ),
    Column("TV_REVERTED", BigInteger),  # the transaction that REVERT TRANSACTION has undone
    Index("TABLE_VERSIONS_INDEX", "TBL_ID", "TV_ID"),
)

# ── transactions ─────────────────────────────────────────────────────────────────────────────

TXNS = Table(
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
    Column("TXN_TIMEOUT", BigInteger),  # ours: milliseconds
    # Most rows are committed ones, but most queries ask for open or aborted ones.
    Index("TXNS_STATE_INDEX", "TXN_STATE", "TXN_ID"),
)

TXN_COMPONENTS = Table(
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

COMPLETED_TXN_COMPONENTS = Table(
    "COMPLETED_TXN_COMPONENTS",
    metadata,
    Column("CTC_TXNID", BigInteger, nullable=False),
    Column("CTC_DATABASE", NAME, nullable=False),
    Column("CTC_TABLE", NAME),
    Column("CTC_PARTITION", PARTITION),
    Column("CTC_TIMESTAMP", DateTime, nullable=False, server_default=func.current_timestamp()),
    Column("CTC_WRITEID", BigInteger),
    Column("CTC_UPDATE_DELETE", LETTER, nullable=False),
    _partition_index("COMPLETED_TXN_COMPONENTS_IDX", "CTC"),
)

NEXT_TXN_ID = _counter("NEXT_TXN_ID", "NTXN_NEXT")

TXN_TO_WRITE_ID = Table(
    "TXN_TO_WRITE_ID",
    metadata,
    Column("T2W_TXNID", BigInteger, nullable=False),
    Column("T2W_DATABASE", NAME, nullable=False),
    Column("T2W_TABLE", NAME, nullable=False),
    Column("T2W_WRITEID", BigInteger, nullable=False),
    UniqueConstraint("T2W_DATABASE", "T2W_TABLE", "T2W_TXNID"),
    UniqueConstraint("T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID"),
)

NEXT_WRITE_ID = Table(
    "NEXT_WRITE_ID",
    metadata,
    Column("NWI_DATABASE", NAME, primary_key=True),
    Column("NWI_TABLE", NAME, primary_key=True),
    Column("NWI_NEXT", BigInteger, nullable=False),
)

DROPPED_WRITE_IDS = Table(
    "DROPPED_WRITE_IDS",
    metadata,
    Column("DWI_DATABASE", NAME, primary_key=True),
    Column("DWI_TABLE", NAME, primary_key=True),
    Column("DWI_WRITEID", BigInteger, primary_key=True, autoincrement=False),
)

WRITE_SET = Table(
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

# For each open transaction, the lowest one that was open when it began (see ``housekeeping``).
MIN_HISTORY_LEVEL = Table(
    "MIN_HISTORY_LEVEL",
    metadata,
    Column("MHL_TXNID", BigInteger, primary_key=True, autoincrement=False),
    Column("MHL_MIN_OPEN_TXNID", BigInteger, nullable=False, index=True),
)

# ── locks ────────────────────────────────────────────────────────────────────────────────────

HIVE_LOCKS = Table(
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
    Column("HL_SESSION", BigInteger),  # ours: the transaction with the locks of the same session
)

NEXT_LOCK_ID = _counter("NEXT_LOCK_ID", "NL_NEXT")

# ── mutexes ──────────────────────────────────────────────────────────────────────────────────

# A store transaction that writes first locks the one row of this table (not on SQLite).
STREAMS = Table(
    "STREAMS",
    metadata,
    Column("TXN_APP_ID", String(250), primary_key=True),
    Column("SINK", String(513), primary_key=True),  # database.table, or empty
    Column("TXN_VERSION", BigInteger, nullable=False),
    Column("TXN_ID", BigInteger, nullable=False),
    Column("QUERY_ID", String(128), nullable=False),
    Column("RUN_ID", String(128), nullable=False),
    Column("FINGERPRINT", String(128), nullable=False),
    Column("NUM_ROWS", BigInteger, nullable=False),
    Column("COMMITTED_AT", BigInteger, nullable=False),
    Column("TXN_USER", PERSON, nullable=False),
    Column("TXN_HOST", PERSON, nullable=False),
)

TXN_LOCK_TBL = _counter("TXN_LOCK_TBL", "TXN_LOCK")

# MT_KEY1 names a service, MT_KEY2 is when it last ran, in milliseconds since the epoch.
AUX_TABLE = Table(
    "AUX_TABLE",
    metadata,
    Column("MT_KEY1", String(128), primary_key=True),
    Column("MT_KEY2", BigInteger, nullable=False),
    Column("MT_COMMENT", String(255)),
)

# ── compactions, and directories of dropped tables ───────────────────────────────────────────


def _compaction_columns(prefix: str) -> list[Column[Any]]:
    """Make the columns that the queue (``prefix`` CQ) and its history (CC) have in common."""
    return [
        Column(f"{prefix}_ID", BigInteger, primary_key=True, autoincrement=False),
        Column(f"{prefix}_DATABASE", NAME, nullable=False),
        Column(f"{prefix}_TABLE", NAME, nullable=False),
        Column(f"{prefix}_PARTITION", PARTITION),
        Column(f"{prefix}_STATE", LETTER, nullable=False),
        Column(f"{prefix}_TYPE", LETTER, nullable=False),
        Column(f"{prefix}_TBLPROPERTIES", Text),  # see ``stringable_map``
        Column(f"{prefix}_ENQUEUE_TIME", BigInteger),
        Column(f"{prefix}_START", BigInteger),
        Column(f"{prefix}_WORKER_ID", PERSON),
        Column(f"{prefix}_INITIATOR_ID", PERSON),
        Column(f"{prefix}_HIGHEST_WRITE_ID", BigInteger),
        Column(f"{prefix}_TXN_ID", BigInteger),
        Column(f"{prefix}_NEXT_TXN_ID", BigInteger),
        Column(f"{prefix}_COMMIT_TIME", BigInteger),
        Column(f"{prefix}_ERROR_MESSAGE", Text),
        Column(f"{prefix}_POOL_NAME", PERSON),
        Column(f"{prefix}_NUMBER_OF_BUCKETS", Integer),
        Column(f"{prefix}_ORDER_BY", Text),  # Hive: 4000. A cut text would sort differently.
    ]


COMPACTION_QUEUE = Table(
    "COMPACTION_QUEUE",
    metadata,
    *_compaction_columns("CQ"),
    Column("CQ_HADOOP_JOB_ID", String(32)),  # what the worker does now; Hive: its job
    Column("CQ_CLEANER_START", BigInteger),  # when the cleaner last failed
    Column("CQ_RETRY_RETENTION", BigInteger, nullable=False, server_default="0"),
)

COMPLETED_COMPACTIONS = Table(
    "COMPLETED_COMPACTIONS",
    metadata,
    *_compaction_columns("CC"),
    Column("CC_END", BigInteger),
    _partition_index("COMPLETED_COMPACTIONS_IDX", "CC"),
)

NEXT_COMPACTION_QUEUE_ID = _counter("NEXT_COMPACTION_QUEUE_ID", "NCQ_NEXT")
