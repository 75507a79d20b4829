"""*Say*: from a statement's text to the queries of its events. No transaction is open yet."""

from __future__ import annotations

from acidsql.acid import cdc
from acidsql.acid.table import Table
from acidsql.errors import AcidSqlError, AnalysisError, UnsupportedError
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.older_versions import require_versions
from acidsql.plan.analysis import lower
from acidsql.plan.cdc.queries import plan_auto_cdc
from acidsql.plan.rewrite import PreparedStatement, plan_dml
from acidsql.plan.rows.event_query import Fields
from acidsql.plan.rows.insert import plan_create_as_select
from acidsql.plan.standins.changes_to_undo import ChangesOfVersion, ChangesSince, ChangesToUndo
from acidsql.plan.standins.names import refuse_temporary
from acidsql.plan.standins.query import Resolve, placeholders, rewrite
from acidsql.plan.undo import plan_undo
from acidsql.plan.values.sqltext import Text
from acidsql.sql.parsed import statements as st
from acidsql.sql.parser import parse
from acidsql.statements.context.family import Context
from acidsql.statements.context.statement_text import (
    StatementText,
    assignment_policy,
    is_case_sensitive,
    new_statement_text,
)
from acidsql.statements.context.time_travel import TimeTravel
from acidsql.statements.ddl.tables import TableStatements
from acidsql.statements.queries.filler import Filler

Changing = st.Dml | st.AutoCdc | st.Undo  # the statements that change rows


class Preparer:
    """Binds, analyses and rewrites the statements of one session."""

    def __init__(self, context: Context, filler: Filler, tables: TableStatements) -> None:
        self._spark, self._names = context.spark, context.names
        self._metastore, self._abilities = context.metastore, context.metastore.abilities
        self._transactions = context.transactions
        self._filler, self._tables = filler, tables
        self._travel = TimeTravel(context.spark, context.metastore)

    def prepare_at_a_glance(
        self, statement: Changing, statement_text: StatementText, peek: Resolve
    ) -> PreparedStatement:
        """Prepare a statement that changes rows, with tables as ``peek`` finds them, perhaps in a
        cache. If the preparation fails, repeat it with tables as the metastore has them now.
        Nothing is locked or written.

        ``Holder.hold`` compares these tables with the metastore's under the locks.

        Raises:
            SqlError: The text is wrong.
            UnsupportedError: The statement cannot be run on these tables.
        """
        try:
            return self._prepare(statement, statement_text, peek)
        except AcidSqlError:
            # Perhaps the metastore has other constraints than ``peek`` has found.
            return self.prepare_change(statement, statement_text)

    def prepare_change(
        self, statement: Changing, statement_text: StatementText
    ) -> PreparedStatement:
        """Prepare a statement that changes rows, with tables as the metastore has them now. Nothing
        is locked or written. Raise SqlError if the text is wrong, UnsupportedError if the statement
        cannot be run on these tables, TxnError if it would change a table's columns in an open
        transaction."""
        return self._prepare(statement, statement_text, self._names.find_readable)

    def prepare_text(self, text: str) -> tuple[Changing, StatementText, PreparedStatement]:
        """Parse and prepare a statement that acidsql itself has composed, and that changes rows of
        ACID tables. All names are taken for ACID tables. Nothing is locked or written.

        Returns:
            The parsed statement, its text, and the prepared statement.
        """
        statement_text = new_statement_text(self._spark, text, None)
        statement = parse(statement_text.text, is_ours=lambda _: True)
        assert isinstance(statement, Changing)
        return statement, statement_text, self.prepare_change(statement, statement_text)

    def _prepare(
        self, statement: Changing, statement_text: StatementText, resolve: Resolve
    ) -> PreparedStatement:
        """Prepare a statement that changes rows: AUTO CDC, RESTORE, REVERT or DML. ``resolve``
        finds tables by name. Nothing is locked or written; Spark analyses the text over empty
        tables. The result has the queries that make the events, and the tables that these queries
        read; for AUTO CDC it is a ``PreparedCdc``. Raise the errors of ``prepare_change``."""
        analyse = lower.Analysis(self._spark, statement_text.args, self._filler.empty_views).fields
        text, double_quoted = statement_text.text, statement_text.double_quoted
        case_sensitive = is_case_sensitive(self._spark)
        if isinstance(statement, st.AutoCdc):
            self._require_state_tables(statement, text)
            return plan_auto_cdc(
                text,
                statement,
                resolve,
                analyse,
                double_quoted=double_quoted,
                is_case_sensitive=case_sensitive,
            )
        if isinstance(statement, st.Undo):
            return plan_undo(text, self._tables_to_undo(statement, statement_text))
        policy = assignment_policy(self._spark)
        prepared = plan_dml(
            text, statement, resolve, analyse,
            double_quoted=double_quoted, policy=policy, is_case_sensitive=case_sensitive,
        )  # fmt: skip
        if prepared.table_before is not None:
            self._require_alterable(prepared.table_before)
        return prepared

    def _require_state_tables(self, statement: st.AutoCdc, text: str) -> None:
        """Raise UnsupportedError if AUTO CDC's target is a temporary table, or the metastore cannot
        keep the table of order values that AUTO CDC has beside its target."""
        refuse_temporary(self._names.qualify(statement.target.parts), "AUTO CDC")
        if not self._metastore.abilities.keeps_state_tables:
            raise UnsupportedError(
                "AUTO CDC needs acidsql's own metastore, or a Hive Metastore 4: this one does not "
                "tell a table from a later one of its name, so order values could get lost.",
                text, statement.target.span.start, statement.target.span.end,
                condition="UNSUPPORTED_FEATURE.AUTO_CDC",
            )  # fmt: skip

    def _require_alterable(self, table: Table) -> None:
        """Refuse WITH SCHEMA EVOLUTION that changes a table's columns: raise UnsupportedError if
        the metastore cannot change columns together with a COMMIT, TxnError if a transaction or
        ``acid.snapshot()`` is open."""
        if not self._abilities.alters_in_commit:
            raise UnsupportedError(
                f"WITH SCHEMA EVOLUTION would change the columns of {table.name}, which this "
                "metastore does not do in one step with a COMMIT. Say ALTER TABLE … ADD COLUMNS, "
                "or CHANGE COLUMN, before.",
                condition="UNSUPPORTED_FEATURE.SCHEMA_EVOLUTION",
            )
        self._transactions.require_autocommit(f"A change of the columns of {table.name}")

    def _tables_to_undo(
        self, statement: st.Undo, statement_text: StatementText
    ) -> list[tuple[Table, ChangesToUndo]]:
        """Return the tables that RESTORE or REVERT changes back, each with the changes to undo. For
        REVERT these are all tables that the transaction changed and that still exist, by name; for
        RESTORE the named table and, if there is one, its state table of AUTO CDC.

        Raises:
            AnalysisError: There is no such table, or the transaction to revert committed no change
                that is remembered.
            UnsupportedError: The metastore keeps no versions.
        """
        text = statement_text.text
        if isinstance(statement, st.Restore):
            return self._tables_to_restore(
                self._names.require_table(statement.target, text), statement, statement_text
            )
        require_versions(self._metastore, f"the tables of transaction {statement.txn_id}")
        versions_by_table = self._metastore.changed_by(statement.txn_id)
        if not versions_by_table:
            raise AnalysisError(
                f"Transaction {statement.txn_id} committed no change of a table that is still "
                "there, or its changes were forgotten (acidsql.txn.history.retention).",
                text, statement.txn_span.start, statement.txn_span.end,
                condition="VERSION_NOT_FOUND", sqlstate="22003",
            )  # fmt: skip
        return [
            (table, ChangesOfVersion(version, statement.txn_id, statement.skips_conflicts))
            for name, version in sorted(versions_by_table.items(), key=lambda entry: str(entry[0]))
            if (table := acid_table(self._metastore.find(name))) is not None
        ]

    def _tables_to_restore(
        self, table: Table, statement: st.Restore, statement_text: StatementText
    ) -> list[tuple[Table, ChangesToUndo]]:
        """Return a table to restore and, if AUTO CDC keeps a state table of order values beside it,
        that table, too; each with the changes to undo: all since the statement's version or time.

        If the state table kept the order values of later records, AUTO CDC would take records for
        stale that the restored table does not have any more.
        """
        require_versions(self._metastore, table.name)
        point_in_time = self._travel.resolve_as_of(statement.as_of, statement_text)
        restored: list[tuple[Table, ChangesToUndo]] = [
            (table, ChangesSince(point_in_time.version, point_in_time.timestamp_ms))
        ]
        state_table = acid_table(self._metastore.find(cdc.state_name(table.name)))
        if (
            state_table is not None
            and cdc.is_state(state_table)
            and cdc.belongs_to(state_table, table)
        ):
            restored.append(
                (
                    state_table,
                    ChangesSince(point_in_time.version, point_in_time.timestamp_ms, table),
                )
            )
        return restored

    def prepare_create_as_select(
        self, statement: st.CreateTable, statement_text: StatementText
    ) -> PreparedStatement:
        """Prepare CREATE TABLE … AS SELECT: derive the new table from the statement's columns, or
        else the query's, and rewrite the query that makes its rows. Nothing is created or locked.
        Raise SqlError if the text is wrong, UnsupportedError or CatalogError if there cannot be
        such a table."""
        assert statement.query is not None
        readable, double_quoted = self._names.find_readable, statement_text.double_quoted
        rewritten = rewrite(statement_text.text, statement, readable, double_quoted=double_quoted)
        edits = [*rewritten.edits, *placeholders(statement_text.text)]
        query = Text(statement_text.text, edits).verbatim(statement.query.span)
        views = self._filler.empty_views(rewritten.standins)
        fields = lower.fields(self._spark, query, views, statement_text.args)
        name = self._tables.new_name(statement, statement_text.text)
        table = self._tables.define_table(statement, statement_text.text, name, fields)
        table = table.with_zlib() if self._abilities.read_by_hive3 else table

        def analyse(analysed: Text) -> Fields:
            if analysed is query:
                return fields
            return lower.fields(self._spark, analysed, views, statement_text.args)

        event_query = plan_create_as_select(
            statement_text.text, table, query, analyse, statement.query.span,
            policy=assignment_policy(self._spark), is_case_sensitive=is_case_sensitive(self._spark),
        )  # fmt: skip
        return PreparedStatement((event_query,), rewritten.standins)
