"""Runs CREATE TABLE … AS SELECT. The commit creates the table together with its rows."""

from __future__ import annotations

from dataclasses import replace

from acidsql.metastore.interface import Commit
from acidsql.plan.locking import read_lock
from acidsql.sql.parsed import statements as st
from acidsql.statements.context.family import Context
from acidsql.statements.context.result import Clock, Receipt, receipt
from acidsql.statements.context.statement_text import StatementText
from acidsql.statements.ddl.tables import TableStatements
from acidsql.statements.dml.hold import LockedStatement
from acidsql.statements.dml.phases import Phases


class FilledTables:
    """Creates tables with rows, for one session."""

    def __init__(self, context: Context, tables: TableStatements, phases: Phases) -> None:
        self._context, self._tables, self._phases = context, tables, phases

    def create(
        self, statement: st.CreateTable, statement_text: StatementText, clock: Clock
    ) -> Receipt | None:
        """Run CREATE TABLE … AS SELECT in a transaction of its own, whose commit creates the table,
        or replaces it with OR REPLACE. Return the receipt; None, with nothing done, if the name is
        taken and the statement has IF NOT EXISTS. The query is prepared again if a table or view
        that it reads changed before its lock was granted. Raise CatalogError if the name is taken
        and both clauses are missing."""
        text = statement_text.text
        with clock("say"):
            prepared = self._phases.preparer.prepare_create_as_select(statement, statement_text)
            table = prepared.queries[0].table
            if self._tables.has_nothing_to_create_or_replace(statement, table.name):
                return None
        self._context.warm_workers()
        with (
            self._context.temporary.track(table.name),
            self._context.transactions.own_transaction(text) as transaction,
            transaction.statement("CREATE TABLE AS SELECT", text) as work,
        ):
            with clock("hold"):
                reads = [*map(read_lock, prepared.reads)]
                if not self._tables.lock_new(statement, table.name, reads, transaction, text):
                    return None
                prepared = self._phases.holder.prepare_under_locks(
                    transaction.txn, statement, statement_text, prepared
                )
                (query,) = prepared.queries
                table, cleanup_id = self._tables.claim_directory(query.table, transaction)
                prepared = replace(prepared, queries=(replace(query, table=table),))
                snapshot = transaction.txn.snapshot(prepared.reads)
            held = LockedStatement(prepared, (None,), snapshot)
            self._phases.writer.write(transaction, held, statement_text, clock, work)
            with clock("keep"):
                creation = Commit(
                    created_table=table,
                    is_replacement=statement.or_replace,
                    cleanup_id=cleanup_id,
                )
                transaction.commit(commit=creation)
        return receipt(text, transaction.id, work.published, clock.seconds, transaction.compaction)
