"""Makes the state table beside a target of AUTO CDC, before the first statement needs it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from acidsql.acid.table import Table
from acidsql.errors import AcidSqlError
from acidsql.metastore.foreign import acid_table
from acidsql.plan.locking import exclusive, read_lock
from acidsql.sql import statements as st
from acidsql.sql.tokens import Span
from acidsql.statements.tables import TableStatements
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.listing import list_table
from acidsql.txn import AT_ONCE
from acidsql.txn.snapshot import snapshot_of


class StateTables(TableStatements):
    """The statements about tables and, without a statement, the state tables."""

    def create(self, owner: Table, state: Table, text: str) -> bool:
        """Create the state table of another table. It gets its directory here.

        Returns:
            False if the table is there already, or if its owner has gone.
        """
        place = st.CreateTable(st.Name((state.name.name,), Span(0, 0)))
        state = replace(state, location=self._location(place, state.name))
        with self._transactions.own(text) as transaction:
            transaction.txn.lock([read_lock(owner.name), exclusive(state.name)], agent_info=text)
            is_there = acid_table(self._metastore.find(state.name)) is not None
            if is_there or not self._again(owner.name).lies_as(owner):
                return False
            self._create(state, transaction, adopt=False)
        return True

    def drop_unwritten(self, state: Table, text: str) -> None:
        """Drop a state table to which nobody has written. If this fails, the table stays.

        A table that somebody uses is not waited for: it will hardly stay empty.
        """
        with (
            suppress(AcidSqlError, OSError),
            self._txns.open(agent_info=text, waits=AT_ONCE) as txn,
        ):
            txn.lock([exclusive(state.name)], agent_info=text)
            found = acid_table(self._metastore.find(state.name))
            if found is not None and found.columns == state.columns and self._is_empty(found):
                self._clean(self._metastore.drop_table(state.name, txn_id=txn.id))
            txn.end_quietly()

    def _is_empty(self, state: Table) -> bool:
        """Whether the table has no files. Its write ids may be those of an older table."""
        now = snapshot_of(self._metastore, self._metastore.valid_txns(), [state.name])
        ids, fs = now.write_ids[state.name], filesystem_for(state.location)
        (listing,) = list_table(fs, state.location, [""], ids, now.valid_txns)
        return not (listing.data or listing.deletes or listing.originals)
