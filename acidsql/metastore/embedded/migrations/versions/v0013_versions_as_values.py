"""The transaction that each REVERT TRANSACTION has undone, and the version that made a table.

Before, the first was read from the statement, which is kept for display and cut if it is long. The
second stays unknown for older tables.
"""

from __future__ import annotations

import re

from sqlalchemy import BigInteger, Column, Connection, MetaData, String, Table, select, update

from acidsql.metastore.embedded.migrations.steps import ID, add_columns, set_version

revision = "0013"
down_revision = "0012"

_WIDTH = 1024  # of TV_STATEMENT

known = MetaData()
VERSIONS = Table(
    "TABLE_VERSIONS",
    known,
    Column("TV_ID", ID, primary_key=True),
    Column("TV_OPERATION", String(64)),
    Column("TV_STATEMENT", String(_WIDTH)),
    Column("TV_REVERTED", BigInteger),
)

added = MetaData()
Table("TABLE_VERSIONS", added, Column("TV_REVERTED", BigInteger))
Table("TBLS", added, Column("FIRST_VERSION", BigInteger))

_GAP = r"(?:\s|--[^\n]*\n|/\*.*?\*/)"
_REVERT = re.compile(rf"{_GAP}*REVERT{_GAP}+TRANSACTION{_GAP}+(\d+)", re.IGNORECASE | re.DOTALL)


def upgrade(connection: Connection, warehouse: str) -> None:
    add_columns(connection, added)
    noted = select(VERSIONS.c.TV_ID, VERSIONS.c.TV_STATEMENT)
    reverts = noted.where(VERSIONS.c.TV_OPERATION == "REVERT TRANSACTION")
    for number, statement in connection.execute(reverts).all():
        version = update(VERSIONS).where(VERSIONS.c.TV_ID == number)
        connection.execute(version.values(TV_REVERTED=_reverted(statement)))
    set_version(connection, 13)


def _reverted(statement: str) -> int | None:
    """The number in a statement; None if it is not there, or may be cut."""
    found = _REVERT.match(statement)
    return int(found[1]) if found and found.end() < _WIDTH else None
