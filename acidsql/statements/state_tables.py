"""Makes the state table beside a target of AUTO CDC, before the first statement needs it."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import replace

from acidsql.acid import cdc
from acidsql.acid.table import Table
from acidsql.errors import AcidSqlError
from acidsql.metastore.foreign import acid_table
from acidsql.plan.locking import drop_locks, exclusive_lock, read_lock
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
        with self._transactions.own_transaction(text) as transaction:
            transaction.txn.lock(
                [read_lock(owner.name), exclusive_lock(state.name)], agent_info=text
            )
            is_there = acid_table(self._metastore.find(state.name)) is not None
            if is_there or not self._look_up_again(owner.name).lies_as(owner):
                return False
            state = replace(state, properties={**state.properties, **cdc.new_bond(owner)})
            self._create(state, transaction, adopt=False)
        return True

    def bind(self, owner: Table, beside: Table, text: str) -> bool:
        """Give an owner its bond with a table beside it, if it has none. Hive's statements, which
        write all properties of a table back, are locked out meanwhile.

        Returns:
            Whether the owner must be looked up again. False, too, in a transaction that has its
            snapshot: a later one gives the bond.
        """
        bond, current = cdc.own_bond(beside), self._transactions.current
        if not bond or cdc.bond_of(owner, beside.name) or (current and current.txn.has_looked):
            return False
        opened = self._txns.open(agent_info=text) if current is None else nullcontext(current.txn)
        with opened as txn:
            txn.lock([exclusive_lock(owner.name), read_lock(beside.name)], agent_info=text)
            found = acid_table(self._metastore.find(beside.name))
            now = self._look_up_again(owner.name)
            if now.identity == owner.identity and found is not None and cdc.belongs(found, now):
                bound = {cdc.bond_key(beside.name): cdc.own_bond(found)}
                self._metastore.alter_table(owner.name, set_properties=bound, txn_id=txn.id)
            if current is None:
                txn.end_quietly()
        return True

    def drop_unwritten(self, state: Table, text: str) -> None:
        """Drop a state table to which nobody has written. If this fails, the table stays.

        A table that somebody uses is not waited for: it will hardly stay empty.
        """
        with (
            suppress(AcidSqlError, OSError),
            self._txns.open(agent_info=text, waits=AT_ONCE) as txn,
        ):
            txn.lock(drop_locks(state.name), agent_info=text)
            found = acid_table(self._metastore.find(state.name))
            if found is not None and found.columns == state.columns and self._is_empty(found):
                self._delete_directories(self._metastore.drop_table(state.name, txn_id=txn.id))
            txn.end_quietly()

    def _is_empty(self, state: Table) -> bool:
        """Whether the table has no files. Its write ids may be those of an older table."""
        now = snapshot_of(self._metastore, self._metastore.valid_txns(), [state.name])
        ids, fs = now.write_ids[state.name], filesystem_for(state.location)
        (listing,) = list_table(fs, state.location, [""], ids, now.valid_txns)
        return not (listing.data or listing.deletes or listing.originals)
