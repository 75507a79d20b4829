"""Makes the state table beside a target of AUTO CDC, before the first statement needs it."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import replace

from acidsql.acid import cdc
from acidsql.acid.table import Table
from acidsql.errors import AcidSqlError
from acidsql.metastore.foreign import acid_table
from acidsql.plan.locking import drop_locks, exclusive_lock, read_lock
from acidsql.sql.parsed import statements as st
from acidsql.sql.text.tokens import Span
from acidsql.statements.ddl.tables import TableStatements
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.tables.listing import list_table
from acidsql.txn import NO_WAIT_SETTINGS
from acidsql.txn.snapshot import snapshot_of


class StateTables(TableStatements):
    """Runs the statements about tables, and makes state tables, for which there is no statement.

    A *bond* is a property with the same value in the target and in a table beside it. It tells the
    two from later tables of their names.
    """

    def create(self, owner: Table, state_table: Table, text: str) -> bool:
        """Create the state table of AUTO CDC beside its owner, the target, in a transaction of its
        own, and in a directory that this method chooses. The state table gets a new bond in its
        properties; the owner is not changed. The locks: SHARED_READ on the owner, EXCLUSIVE on the
        state table.

        Returns:
            True; or False, with nothing created, if the state table exists already, or if its owner
            was replaced.

        Raises:
            CatalogError: The owner was dropped.
        """
        location_statement = st.CreateTable(st.Name((state_table.name.name,), Span(0, 0)))
        state_table = replace(
            state_table, location=self._location(location_statement, state_table.name)
        )
        with self._transactions.own_transaction(text) as transaction:
            transaction.txn.lock(
                [read_lock(owner.name), exclusive_lock(state_table.name)], agent_info=text
            )
            is_there = acid_table(self._metastore.find(state_table.name)) is not None
            if is_there or not self._look_up_again(owner.name).has_same_storage(owner):
                return False
            state_table = replace(
                state_table, properties={**state_table.properties, **cdc.new_bond(owner)}
            )
            self._commit_new_table(state_table, transaction, adopt=False)
        return True

    def note_bond(self, owner: Table, cdc_table: Table, text: str) -> bool:
        """Copy the bond of a table of AUTO CDC into its owner's properties, in the session's
        transaction or one of its own, unless the owner has the bond. Nothing is copied if one of
        the two was replaced.

        An exclusive lock keeps out Hive's statements, which write all properties of a table back.

        Returns:
            Whether the owner must be looked up again. False if nothing was to be done, also in a
            transaction that has its snapshot already: then a later transaction copies the bond.
        """
        bond, current_transaction = cdc.own_bond(cdc_table), self._transactions.current
        if (
            not bond
            or cdc.bond_of(owner, cdc_table.name)
            or (current_transaction and current_transaction.txn.has_snapshot)
        ):
            return False
        opened = (
            self._txns.open(agent_info=text)
            if current_transaction is None
            else nullcontext(current_transaction.txn)
        )
        with opened as txn:
            txn.lock([exclusive_lock(owner.name), read_lock(cdc_table.name)], agent_info=text)
            current_cdc_table = acid_table(self._metastore.find(cdc_table.name))
            current_owner = self._look_up_again(owner.name)
            if (
                current_owner.identity == owner.identity
                and current_cdc_table is not None
                and cdc.belongs_to(current_cdc_table, current_owner)
            ):
                bond_properties = {cdc.bond_key(cdc_table.name): cdc.own_bond(current_cdc_table)}
                self._metastore.alter_table(
                    owner.name, set_properties=bond_properties, txn_id=txn.id
                )
            if current_transaction is None:
                txn.end_quietly()
        return True

    def drop_unwritten(self, state_table: Table, text: str) -> None:
        """Drop a state table that has no files and still has these columns, and delete its
        directory. Errors are ignored: then the table stays.

        The method does not wait for a table that somebody uses, because the table will hardly stay
        empty.
        """
        with (
            suppress(AcidSqlError, OSError),
            self._txns.open(agent_info=text, lock_settings=NO_WAIT_SETTINGS) as txn,
        ):
            txn.lock(drop_locks(state_table.name), agent_info=text)
            current_state = acid_table(self._metastore.find(state_table.name))
            if (
                current_state is not None
                and current_state.columns == state_table.columns
                and self._is_empty(current_state)
            ):
                self._delete_directories(
                    self._metastore.drop_table(state_table.name, txn_id=txn.id)
                )
            txn.end_quietly()

    def _is_empty(self, state_table: Table) -> bool:
        """Whether a new snapshot sees no files of the table.

        The write ids do not tell, because they may be those of an older table of this name.
        """
        snapshot = snapshot_of(self._metastore, self._metastore.valid_txns(), [state_table.name])
        write_ids, fs = snapshot.write_ids[state_table.name], filesystem_for(state_table.location)
        (listing,) = list_table(fs, state_table.location, [""], write_ids, snapshot.valid_txns)
        return not (listing.data or listing.deletes or listing.originals)
