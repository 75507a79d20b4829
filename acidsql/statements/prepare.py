"""*Say*: from a statement's text to the queries of its events. No transaction is open yet."""

from __future__ import annotations

from acidsql.acid import cdc
from acidsql.acid.table import Table
from acidsql.errors import AcidSqlError, AnalysisError, UnsupportedError
from acidsql.metastore.foreign import acid_table
from acidsql.plan import lower
from acidsql.plan.cdc import plan_auto_cdc
from acidsql.plan.changes_to_undo import ChangesOfVersion, ChangesSince, ChangesToUndo
from acidsql.plan.insert import plan_create_as_select
from acidsql.plan.names import refuse_temporary
from acidsql.plan.query import Resolve, placeholders, rewrite
from acidsql.plan.rewrite import Prepared, plan_dml
from acidsql.plan.sqltext import Text
from acidsql.plan.undo import plan_undo
from acidsql.sql import statements as st
from acidsql.sql.parser import parse
from acidsql.statements.family import Context
from acidsql.statements.reader import Reader
from acidsql.statements.statement_text import (
    StatementText,
    assignment_policy,
    is_case_sensitive,
    new_statement_text,
)
from acidsql.statements.tables import TableStatements
from acidsql.statements.time_travel import TimeTravel, need_versions

Changing = st.Dml | st.AutoCdc | st.Undo  # the statements that change rows


class Preparer:
    """Binds, analyses and rewrites the statements of one session."""

    def __init__(self, context: Context, reader: Reader, tables: TableStatements) -> None:
        self._spark, self._names = context.spark, context.names
        self._metastore, self._able = context.metastore, context.metastore.abilities
        self._transactions = context.transactions
        self._reader, self._tables = reader, tables
        self._travel = TimeTravel(context.spark, context.metastore)

    def at_a_glance(self, statement: Changing, said: StatementText, glance: Resolve) -> Prepared:
        """As ``change``, with tables at a glance: the holder compares them under the locks."""
        try:
            return self._change(statement, said, glance)
        except AcidSqlError:
            return self.change(statement, said)  # constraints may have changed

    def change(self, statement: Changing, said: StatementText) -> Prepared:
        """Prepare a statement that changes rows. Raises SqlError if the text is wrong."""
        return self._change(statement, said, self._names.find_readable)

    def of_text(self, text: str) -> tuple[Changing, StatementText, Prepared]:
        """A text of acidsql's own that changes rows of ACID tables: its statement, what is said,
        and the statement prepared."""
        said = new_statement_text(self._spark, text, None)
        statement = parse(said.text, is_acid=lambda _: True)
        assert isinstance(statement, Changing)
        return statement, said, self.change(statement, said)

    def _change(self, statement: Changing, said: StatementText, resolve: Resolve) -> Prepared:
        analyse = lower.Analysis(self._spark, said.args, self._reader.empty_views).fields
        text, quoted = said.text, said.double_quoted
        by_case = is_case_sensitive(self._spark)
        if isinstance(statement, st.AutoCdc):
            self._need_state_tables(statement, text)
            return plan_auto_cdc(
                text, statement, resolve, analyse, double_quoted=quoted, is_case_sensitive=by_case
            )
        if isinstance(statement, st.Undo):
            return plan_undo(text, self._undone(statement, said))
        policy = assignment_policy(self._spark)
        planned = plan_dml(
            text, statement, resolve, analyse,
            double_quoted=quoted, policy=policy, is_case_sensitive=by_case,
        )  # fmt: skip
        if planned.before is not None:
            self._need_to_alter(planned.before)
        return planned

    def _need_state_tables(self, statement: st.AutoCdc, text: str) -> None:
        refuse_temporary(self._names.qualify(statement.target.parts), "AUTO CDC")
        if not self._metastore.abilities.keeps_state_tables:
            raise UnsupportedError(
                "AUTO CDC needs acidsql's own metastore, or a Hive Metastore 4: this one does not "
                "tell a table from a later one of its name, so order values could get lost.",
                text, statement.target.span.start, statement.target.span.end,
                condition="UNSUPPORTED_FEATURE.AUTO_CDC",
            )  # fmt: skip

    def _need_to_alter(self, table: Table) -> None:
        """Refuse a statement that gives a table other columns, if its COMMIT could not do so."""
        if not self._able.alters_in_commit:
            raise UnsupportedError(
                f"WITH SCHEMA EVOLUTION would change the columns of {table.name}, which this "
                "metastore does not do in one step with a COMMIT. Say ALTER TABLE … ADD COLUMNS, "
                "or CHANGE COLUMN, before.",
                condition="UNSUPPORTED_FEATURE.SCHEMA_EVOLUTION",
            )
        self._transactions.need_plain(f"A change of the columns of {table.name}")

    def _undone(self, statement: st.Undo, said: StatementText) -> list[tuple[Table, ChangesToUndo]]:
        """Which changes a statement undoes, in which tables."""
        text = said.text
        if isinstance(statement, st.Restore):
            return self._restored(
                self._names.require_table(statement.target, text), statement, said
            )
        need_versions(self._metastore, f"the tables of transaction {statement.txn_id}")
        changed = self._metastore.changed_by(statement.txn_id)
        if not changed:
            raise AnalysisError(
                f"Transaction {statement.txn_id} committed no change of a table that is still "
                "there, or its changes were forgotten (acidsql.txn.history.retention).",
                text, statement.txn_span.start, statement.txn_span.end,
                condition="VERSION_NOT_FOUND", sqlstate="22003",
            )  # fmt: skip
        return [
            (table, ChangesOfVersion(version, statement.txn_id, statement.skips_conflicts))
            for name, version in sorted(changed.items(), key=lambda one: str(one[0]))
            if (table := acid_table(self._metastore.find(name))) is not None
        ]

    def _restored(
        self, table: Table, statement: st.Restore, said: StatementText
    ) -> list[tuple[Table, ChangesToUndo]]:
        """A table to restore, and its state table: with the order values of later records there,
        AUTO CDC would take records for stale that the table does not have any more."""
        need_versions(self._metastore, table.name)
        when = self._travel.when(statement.as_of, said)
        restored: list[tuple[Table, ChangesToUndo]] = [
            (table, ChangesSince(when.version, when.timestamp_ms))
        ]
        state = acid_table(self._metastore.find(cdc.state_name(table.name)))
        if state is not None and cdc.is_state(state) and cdc.belongs(state, table):
            restored.append((state, ChangesSince(when.version, when.timestamp_ms, table)))
        return restored

    def create_as_select(self, statement: st.CreateTable, said: StatementText) -> Prepared:
        """Prepare CREATE TABLE … AS SELECT: the new table, and its rows."""
        assert statement.query is not None
        readable, double_quoted = self._names.find_readable, said.double_quoted
        found = rewrite(said.text, statement, readable, double_quoted=double_quoted)
        edits = [*found.edits, *placeholders(said.text)]
        query = Text(said.text, edits).verbatim(statement.query.span)
        views = self._reader.empty_views(found.standins)
        fields = lower.fields(self._spark, query, views, said.args)
        name = self._tables.new_name(statement, said.text)
        table = self._tables.define(statement, said.text, name, fields)
        table = table.in_zlib() if self._able.read_by_hive3 else table
        planned = plan_create_as_select(
            said.text, table, query, fields, statement.query.span,
            is_case_sensitive=is_case_sensitive(self._spark),
        )  # fmt: skip
        return Prepared((planned,), found.standins)
