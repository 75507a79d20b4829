"""All tables of ``schema``, with their first rows.

In a new store, later revisions find what they would add: ``schema`` has it already.
"""

from __future__ import annotations

from sqlalchemy import Connection

from acidsql.metastore.embedded.database import schema
from acidsql.metastore.embedded.database.migrations.steps import claim, create, seed, set_version

revision = "0014"
down_revision = None

# Each of these tables has one row, with a number.
NUMBERS = (
    schema.NEXT_TXN_ID,
    schema.NEXT_LOCK_ID,
    schema.NEXT_COMPACTION_QUEUE_ID,
    schema.TXN_LOCK_TBL,
)


def upgrade(connection: Connection, warehouse: str) -> None:
    """Create all tables, and the first rows of those that have some; ``warehouse``: the location of
    the database ``default``."""
    claim(connection)
    create(connection, schema.metadata.sorted_tables)
    for table in NUMBERS:
        seed(connection, table, **{column.name: 1 for column in table.columns})
    seed(connection, schema.DBS, NAME="default", DB_LOCATION_URI=warehouse)
    set_version(connection, 14)
