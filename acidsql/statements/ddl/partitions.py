"""TRUNCATE TABLE, ADD PARTITION and DROP PARTITION: they write directories without rows.

A directory without rows is published like any other directory, and counts after the commit. A base
hides the rows that were there before. A delta marks a new partition: so each partition in the
catalog has a directory, which no session deletes when it cleans up.
"""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import Table
from acidsql.errors import AnalysisError
from acidsql.metastore.interface import Commit, Operation
from acidsql.plan.locking import exclusive_lock, overwrite_locks
from acidsql.sql.parsed import statements as st
from acidsql.statements.context.family import Context, Family, runs
from acidsql.statements.context.partition_specs import PartitionSpec
from acidsql.statements.context.result import Receipt
from acidsql.statements.context.work import Work
from acidsql.statements.directories.places import Places
from acidsql.storage.event_records import WriteMode
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.writing.publish import PublishedWrite
from acidsql.storage.writing.save import TableWrite, write_spec
from acidsql.txn import Txn


class PartitionStatements(Family):
    """Runs TRUNCATE TABLE, ADD PARTITION and DROP PARTITION for one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._places = Places(context.metastore)

    @runs(st.TruncateTable)
    def _truncate_table(self, statement: st.TruncateTable, text: str) -> Receipt:
        """Run TRUNCATE TABLE, in the session's transaction or its own: publish a base without rows
        in each partition that PARTITION means, or in all. Old files stay for the cleaner. Return a
        receipt with the new directories, but without counts. Raise AnalysisError if there is no
        such partition, UnsupportedError if the transaction has already overwritten one of them."""
        table = self._names.require_table(statement.name, text, at_a_glance=True)
        self._matching_partitions(table, [statement.partition], text)  # a wrong text opens nothing
        with self._transactions.changing_statement("TRUNCATE TABLE", text) as (transaction, work):
            self._lock_for_truncate(transaction.txn, table, statement.partition, text)
            table = self._look_up_again(table.name)
            partitions = self._matching_partitions(table, [statement.partition], text)
            transaction.refuse_overwritten(table, partitions, overwrite=True)
            published = publish_empty_directories(transaction.txn, work, table, partitions)
            self._transactions.end_statement(transaction)
        return Receipt(text, txn_id=transaction.id, directories=published.directories)

    def _lock_for_truncate(
        self, txn: Txn, table: Table, spec: Sequence[st.PartitionItem], text: str
    ) -> None:
        """Take the locks of an overwrite (``overwrite_locks``) on the partition that TRUNCATE names
        by all of its columns, or else on the whole table. This may wait."""
        locked_partitions = None
        if spec and len(spec) == len(table.partition_columns):
            locked_partitions = self._matching_partitions(table, [spec], text)
        txn.lock(
            overwrite_locks(table.name, self._txns.settings, locked_partitions), agent_info=text
        )

    @runs(st.AddPartitions)
    def _add_partitions(self, statement: st.AddPartitions, text: str) -> Receipt | None:
        """Run ADD PARTITION in a transaction of its own: each new partition gets a delta without
        rows. Return None if all partitions exist, and the statement has IF NOT EXISTS; without it,
        raise AnalysisError if one exists.

        So the statement is an INSERT of no rows. Whatever fails, the catalog has no partition
        without a directory.
        """
        table = self._names.require_table(statement.name, text, at_a_glance=True)
        name = table.name
        self._missing_partitions(table, statement, text)
        own_transaction = self._transactions.own_transaction(text)
        with own_transaction as transaction, transaction.statement("ADD PARTITION", text) as work:
            transaction.txn.lock([exclusive_lock(name, Operation.INSERT)], agent_info=text)
            table = self._look_up_again(name)
            partitions = self._missing_partitions(table, statement, text)
            if not partitions:
                return None
            published = publish_empty_directories(
                transaction.txn, work, table, partitions, overwrite=False
            )
            transaction.commit()
        return Receipt(text, txn_id=transaction.id, directories=published.directories)

    def _missing_partitions(
        self, table: Table, statement: st.AddPartitions, text: str
    ) -> list[str]:
        """Return the directories of the partitions to add, each once: those that do not exist; []
        if all exist and the statement has IF NOT EXISTS.

        Raises:
            AnalysisError: A partition exists already or is named twice, and the statement has no IF
                NOT EXISTS; or a clause does not name all partition columns.
        """
        existing_names = set(self._catalog.partition_names(table))
        missing_names: dict[str, None] = {}
        names = self._partitions.fully_named_partitions(table, statement.specs, text)
        for spec, name in zip(statement.specs, names, strict=True):
            if name not in existing_names and name not in missing_names:
                missing_names[name] = None
            elif not statement.if_not_exists:
                raise AnalysisError(
                    f"{table.name} has the partition {name} already, or it is named twice. IF NOT "
                    "EXISTS adds only partitions that are missing.",
                    text, spec[0].span.start, spec[-1].span.end,
                    condition="PARTITIONS_ALREADY_EXIST", sqlstate="428FT",
                )  # fmt: skip
        return list(missing_names)

    @runs(st.DropPartitions)
    def _drop_partitions(self, statement: st.DropPartitions, text: str) -> Receipt | None:
        """Run DROP PARTITION in a transaction of its own. Return None if there is nothing to drop,
        and the statement has IF EXISTS; without it, raise AnalysisError.

        First each partition gets a base without rows. This base hides the old rows even if the
        partition is added again. The commit removes the partitions from the catalog, too. The files
        are deleted after the commit, the bases last.
        """
        table = self._names.require_table(statement.name, text, at_a_glance=True)
        name = table.name
        self._matching_partitions(table, statement.specs, text, statement.if_exists)
        own_transaction = self._transactions.own_transaction(text)
        with own_transaction as transaction, transaction.statement("DROP PARTITION", text) as work:
            txn = transaction.txn
            txn.lock([exclusive_lock(name, Operation.OVERWRITE)], agent_info=text)
            table = self._look_up_again(name)
            partitions = self._matching_partitions(
                table, statement.specs, text, statement.if_exists
            )
            if not partitions:
                return None
            old_directories = self._places.child_directories(table, partitions)
            published = publish_empty_directories(txn, work, table, partitions)
            dropped_values = [
                tuple(value for _, value in parse_partition_name(partition))
                for partition in partitions
            ]
            txn.commit(
                Commit(
                    dropped_partitions={name: dropped_values},
                    table_changes=transaction.table_changes(),
                )
            )
        self._places.remove(table, partitions, [*old_directories, *published.directories])
        return Receipt(text, txn_id=txn.id, directories=published.directories)

    def _matching_partitions(
        self, table: Table, specs: Sequence[PartitionSpec], text: str, may_be_missing: bool = False
    ) -> list[str]:
        """Return the existing directories that the PARTITION clauses mean, for an empty clause all;
        [""] for an unpartitioned table without clauses. Raise AnalysisError for a missing
        partition, unless ``may_be_missing``: then it is passed over."""
        if not table.partition_columns and not any(specs):
            return [""]
        return self._partitions.matching_partitions(
            table, specs, text, may_be_missing=may_be_missing
        )


def publish_empty_directories(
    txn: Txn, work: Work, table: Table, partitions: Sequence[str], *, overwrite: bool = True
) -> PublishedWrite:
    """Publish a base without rows in each partition ("": the table itself) or, without
    ``overwrite``, a delta. Note the result in ``work``, and return it. This uses up a statement id
    of the transaction; nothing is committed."""
    statement_id = txn.next_statement_id()
    mode = WriteMode.of_insert(is_overwrite=overwrite)
    spec = write_spec(table, txn.write_id(table.name), (statement_id, statement_id), mode)
    with TableWrite(filesystem_for(table.location), table, spec) as writing:
        for partition in partitions:
            writing.empty(partition)
        return work.publish(table, writing)
