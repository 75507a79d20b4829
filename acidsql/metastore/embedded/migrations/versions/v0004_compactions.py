"""Hive 4's columns of the queue of compactions, and the history of compactions."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    select,
    update,
)

from acidsql.metastore.embedded.migrations.steps import add_columns, create, set_version

revision = "0004"
down_revision = "0003"

NAME, PARTITION, PERSON, LETTER = String(256), String(767), String(128), String(1)
# 256 + 256 + 767 characters are too long for a key in MySQL. The index is not unique, so a prefix
# of the partition is enough.
OF_PARTITION = {"CC_PARTITION": 255}

queue, history = MetaData(), MetaData()

COMPACTION_QUEUE = Table(
    "COMPACTION_QUEUE",
    queue,
    Column("CQ_ID", BigInteger, primary_key=True, autoincrement=False),  # exists, as the next does
    Column("CQ_TBLPROPERTIES", Text),
    Column("CQ_START", BigInteger),
    Column("CQ_WORKER_ID", PERSON),
    Column("CQ_INITIATOR_ID", PERSON),
    Column("CQ_HIGHEST_WRITE_ID", BigInteger),
    Column("CQ_TXN_ID", BigInteger),
    Column("CQ_NEXT_TXN_ID", BigInteger),
    Column("CQ_COMMIT_TIME", BigInteger),
    Column("CQ_ERROR_MESSAGE", Text),
    Column("CQ_POOL_NAME", PERSON),
    Column("CQ_NUMBER_OF_BUCKETS", Integer),
    Column("CQ_ORDER_BY", Text),
    Column("CQ_CLEANER_START", BigInteger),
    Column("CQ_RETRY_RETENTION", BigInteger, nullable=False, server_default="0"),
)

Table(
    "COMPLETED_COMPACTIONS",
    history,
    Column("CC_ID", BigInteger, primary_key=True, autoincrement=False),
    Column("CC_DATABASE", NAME, nullable=False),
    Column("CC_TABLE", NAME, nullable=False),
    Column("CC_PARTITION", PARTITION),
    Column("CC_STATE", LETTER, nullable=False),
    Column("CC_TYPE", LETTER, nullable=False),
    Column("CC_TBLPROPERTIES", Text),
    Column("CC_ENQUEUE_TIME", BigInteger),
    Column("CC_START", BigInteger),
    Column("CC_WORKER_ID", PERSON),
    Column("CC_INITIATOR_ID", PERSON),
    Column("CC_HIGHEST_WRITE_ID", BigInteger),
    Column("CC_TXN_ID", BigInteger),
    Column("CC_NEXT_TXN_ID", BigInteger),
    Column("CC_COMMIT_TIME", BigInteger),
    Column("CC_ERROR_MESSAGE", Text),
    Column("CC_POOL_NAME", PERSON),
    Column("CC_NUMBER_OF_BUCKETS", Integer),
    Column("CC_ORDER_BY", Text),
    Column("CC_END", BigInteger),
    Index(
        "COMPLETED_COMPACTIONS_IDX",
        "CC_DATABASE",
        "CC_TABLE",
        "CC_PARTITION",
        mysql_length=OF_PARTITION,
        mariadb_length=OF_PARTITION,
    ),
)

BEFORE_LOCATION = "1:8:location"


def upgrade(connection: Connection, warehouse: str) -> None:
    add_columns(connection, queue)
    create(connection, history)
    _measure_as_hive_does(connection)
    set_version(connection, 4)


def _measure_as_hive_does(connection: Connection) -> None:
    """Correct the lengths of locations: they were characters, and Hive counts UTF-16 code units.

    The two differ if a location has, for example, an emoji. The location ends with the text.
    """
    number, properties = COMPACTION_QUEUE.c.CQ_ID, COMPACTION_QUEUE.c.CQ_TBLPROPERTIES
    found = select(number, properties).where(properties.startswith(BEFORE_LOCATION))
    for key, text in connection.execute(found).all():
        location = text.removeprefix(BEFORE_LOCATION).partition(":")[2]
        new = f"{BEFORE_LOCATION}{len(location.encode('utf-16-le')) // 2}:{location}"
        if new != text:
            again = update(COMPACTION_QUEUE).where(number == key)
            connection.execute(again.values(CQ_TBLPROPERTIES=new))
