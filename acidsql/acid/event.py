"""The row format: the columns of an event, and the footer entries of an event file.

An ACID file is an ORC file of *events* with exactly these six columns, in this order and case::

    operation            int     0 insert, 2 delete (1, update, is never written by ACID v2)
    originalTransaction  bigint  write id that inserted the row        ┐
    bucket               int     bucket id and statement id, packed    ├ the row id
    rowId                bigint  ordinal within the two                ┘
    currentTransaction   bigint  write id of this event; of an insert, originalTransaction's value
    row                  struct  the table's columns; null in a delete event

The two columns with *Transaction* in their names hold *write ids*. Events in a file ascend strictly
by row id (I4). Source: Hive ``OrcRecordUpdater``, ``AcidStats``, ``KeyIndexBuilder``.
"""

from __future__ import annotations

from collections.abc import Iterable

OPERATION = "operation"
ORIGINAL_WRITE_ID = "originalTransaction"
BUCKET = "bucket"
ROW_ID = "rowId"
CURRENT_WRITE_ID = "currentTransaction"
ROW = "row"

EVENT_COLUMNS = (OPERATION, ORIGINAL_WRITE_ID, BUCKET, ROW_ID, CURRENT_WRITE_ID, ROW)
ROW_ID_COLUMNS = (ORIGINAL_WRITE_ID, BUCKET, ROW_ID)

INSERT = 0
DELETE = 2

# Keys of the ORC footer's user metadata.
KEY_INDEX_KEY = "hive.acid.key.index"
STATS_KEY = "hive.acid.stats"
VERSION_KEY = "hive.acid.version"
ACID_VERSION = "2"  # also the one byte of a directory's _orc_acid_version

RowId = tuple[int, int, int]


def key_index_text(last_key_of_each_stripe: Iterable[RowId]) -> str:
    """Return the value of ``hive.acid.key.index``: ``writeId,bucket,rowId;`` for each stripe.

    Args:
        last_key_of_each_stripe: The row id (originalTransaction, bucket, rowId) of its last event.
    """
    return "".join(
        f"{write_id},{bucket},{row_id};" for write_id, bucket, row_id in last_key_of_each_stripe
    )


def stats_text(inserts: int, deletes: int) -> str:
    """Return the value of ``hive.acid.stats``, such as ``5,0,2``: the numbers of inserts, updates
    (always 0) and deletes."""
    return f"{inserts},0,{deletes}"


def footer_metadata(
    last_key_of_each_stripe: Iterable[RowId], inserts: int, deletes: int
) -> dict[str, str]:
    """Return the entries that Hive's readers look for in the footer of an event file, key → text:
    ``hive.acid.key.index`` (``key_index_text``), ``hive.acid.stats`` (``stats_text``) and
    ``hive.acid.version``, which is "2"."""
    return {
        KEY_INDEX_KEY: key_index_text(last_key_of_each_stripe),
        STATS_KEY: stats_text(inserts, deletes),
        VERSION_KEY: ACID_VERSION,
    }
