"""TRUNCATE TABLE, ADD PARTITION and DROP PARTITION: they write directories without rows.

A directory without rows is published as any other: the commit alone makes it count. A base hides
the rows that were there before. A delta keeps the place of a new partition: each partition in the
catalog has a directory, and no session that clears away deletes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import Table
from acidsql.errors import AnalysisError
from acidsql.metastore.interface import Operation
from acidsql.plan.locking import exclusive, overwriting
from acidsql.sql import statements as st
from acidsql.statements.family import Context, Family, runs
from acidsql.statements.partition_specs import Spec
from acidsql.statements.places import Places
from acidsql.statements.result import Receipt
from acidsql.statements.work import Work
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.writing.publish import Published
from acidsql.storage.writing.save import Save, Writing
from acidsql.txn import Txn


class PartitionStatements(Family):
    """Runs these statements for one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._places = Places(context.metastore)

    @runs(st.TruncateTable)
    def _truncate(self, statement: st.TruncateTable, text: str) -> Receipt:
        table = self._names.require_table(statement.name, text, at_a_glance=True)
        self._matching(table, [statement.partition], text)  # a wrong text opens nothing
        with self._transactions.statement("TRUNCATE TABLE", text) as (transaction, work):
            self._lock_rows(transaction.txn, table, statement.partition, text)
            table = self._again(table.name)
            partitions = self._matching(table, [statement.partition], text)
            transaction.refuse_overwritten(table, partitions, overwrite=True)
            published = publish_empty(transaction.txn, work, table, partitions)
            self._transactions.end_of_statement(transaction)
        return Receipt(text, txn_id=transaction.id, directories=published.directories)

    def _lock_rows(
        self, txn: Txn, table: Table, spec: Sequence[st.PartitionItem], text: str
    ) -> None:
        """Lock the partition of which TRUNCATE names all columns, or else the table."""
        chosen = None
        if spec and len(spec) == len(table.partition_columns):
            chosen = self._matching(table, [spec], text)
        txn.lock(overwriting(table.name, self._txns.settings, chosen), agent_info=text)

    @runs(st.AddPartitions)
    def _add_partitions(self, statement: st.AddPartitions, text: str) -> Receipt | None:
        """Add partitions. Each gets a delta without rows, and so the statement is an INSERT of no
        rows: whatever fails, the catalog has no partition without a directory."""
        table = self._names.require_table(statement.name, text, at_a_glance=True)
        name = table.name
        self._missing(table, statement, text)
        own = self._transactions.own(text)
        with own as transaction, transaction.statement("ADD PARTITION", text) as work:
            transaction.txn.lock([exclusive(name, Operation.INSERT)], agent_info=text)
            table = self._again(name)
            partitions = self._missing(table, statement, text)
            if not partitions:
                return None
            published = publish_empty(transaction.txn, work, table, partitions, overwrite=False)
            transaction.commit()
        return Receipt(text, txn_id=transaction.id, directories=published.directories)

    def _missing(self, table: Table, statement: st.AddPartitions, text: str) -> list[str]:
        """The directories of the partitions to add. Without IF NOT EXISTS, none may exist."""
        known = set(self._transactions.partition_names(table))
        found: dict[str, None] = {}
        named = self._partitions.wholly_named(table, statement.specs, text)
        for spec, name in zip(statement.specs, named, strict=True):
            if name not in known and name not in found:
                found[name] = None
            elif not statement.if_not_exists:
                raise AnalysisError(
                    f"{table.name} has the partition {name} already, or it is named twice. IF NOT "
                    "EXISTS adds only partitions that are missing.",
                    text, spec[0].span.start, spec[-1].span.end,
                    condition="PARTITIONS_ALREADY_EXIST", sqlstate="428FT",
                )  # fmt: skip
        return list(found)

    @runs(st.DropPartitions)
    def _drop_partitions(self, statement: st.DropPartitions, text: str) -> Receipt | None:
        """Drop partitions. First each gets a base without rows, which hides the old rows even if
        the partition is added again. The commit also removes the partition from the catalog. The
        files are deleted after the commit, the base last."""
        table = self._names.require_table(statement.name, text, at_a_glance=True)
        name = table.name
        self._matching(table, statement.specs, text, statement.if_exists)
        own = self._transactions.own(text)
        with own as transaction, transaction.statement("DROP PARTITION", text) as work:
            txn = transaction.txn
            txn.lock([exclusive(name, Operation.OVERWRITE)], agent_info=text)
            table = self._again(name)
            partitions = self._matching(table, statement.specs, text, statement.if_exists)
            if not partitions:
                return None
            old = self._places.directories(table, partitions)
            published = publish_empty(txn, work, table, partitions)
            gone = [tuple(value for _, value in parse_partition_name(one)) for one in partitions]
            txn.commit(drop_partitions={name: gone}, changed=transaction.changed())
        self._places.remove(table, partitions, [*old, *published.directories])
        return Receipt(text, txn_id=txn.id, directories=published.directories)

    def _matching(
        self, table: Table, specs: Sequence[Spec], text: str, may_be_missing: bool = False
    ) -> list[str]:
        """The directories that the PARTITION clauses name; [""] for an unpartitioned table."""
        if not table.partition_columns and not any(specs):
            return [""]
        return self._partitions.matching(table, specs, text, may_be_missing=may_be_missing)


def publish_empty(
    txn: Txn, work: Work, table: Table, partitions: Sequence[str], *, overwrite: bool = True
) -> Published:
    """Put a base without rows into each directory, or without ``overwrite`` a delta."""
    number = txn.next_statement_id()
    save = Save(table, txn.write_id(table.name), (number, number), overwrite=overwrite)
    with Writing(filesystem_for(table.location), save) as writing:
        for partition in partitions:
            writing.empty(partition)
        return work.publish(table, writing)
