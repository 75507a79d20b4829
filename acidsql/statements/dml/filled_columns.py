"""Runs ALTER TABLE … ADD COLUMNS … WITH VALUES: existing rows get the DEFAULTs of the new columns.

An UPDATE changes the rows, and its COMMIT adds the columns to the table, as with WITH SCHEMA
EVOLUTION. So nobody sees the columns without their values.
"""

from __future__ import annotations

from dataclasses import replace

from acidsql.acid.table import Column, Table
from acidsql.errors import UnsupportedError
from acidsql.plan.rewrite import PreparedStatement
from acidsql.sql.parsed import statements as st
from acidsql.sql.parser import parse
from acidsql.statements.context.family import Context, Family, runs
from acidsql.statements.context.result import Clock, Receipt, receipt
from acidsql.statements.context.statement_text import StatementText, new_statement_text
from acidsql.statements.ddl.columns import added_columns, has_default
from acidsql.statements.ddl.tables import TableStatements
from acidsql.statements.dml.phases import Phases
from acidsql.storage.columns import quote, quoted_path


class FilledColumns(Family):
    """Runs ADD COLUMNS … WITH VALUES for one session."""

    def __init__(self, context: Context, tables: TableStatements, phases: Phases) -> None:
        super().__init__(context)
        self._tables, self._phases = tables, phases

    @runs(st.AddFilledColumns)
    def _add_filled_columns(self, statement: st.AddFilledColumns, text: str) -> Receipt:
        """Run ADD COLUMNS … WITH VALUES in a transaction of its own: an UPDATE of all rows, whose
        commit adds the columns. Return the receipt, which counts the updated rows. Raise
        UnsupportedError for an insert-only table, on a Hive Metastore, or if a new column has no
        DEFAULT other than NULL."""
        clock = Clock()
        with clock("say"):
            table = self._names.require_table(statement.name, text)
            self._check_table(table, statement, text)
            columns = added_columns(table, statement, text, self._tables.type_of(text))
            _require_defaults(columns, statement, text)
            update, statement_text, prepared = self._prepare_update(table, columns)
        own_transaction = self._transactions.own_transaction(text)
        with own_transaction as transaction, transaction.statement("ADD COLUMNS", text) as work:
            with clock("hold"):
                locked = self._phases.holder.hold(transaction.txn, update, statement_text, prepared)
            self._phases.writer.write(transaction, locked, statement_text, clock, work)
            with clock("keep"):
                transaction.commit()
        return receipt(text, transaction.id, work.published, clock.seconds, transaction.compaction)

    def _check_table(self, table: Table, statement: st.AddFilledColumns, text: str) -> None:
        """Raise UnsupportedError if the table is insert-only, or the metastore cannot change
        columns in the same step as a COMMIT."""
        if table.is_insert_only:
            raise _unsupported_error(
                f"{table.name} is insert-only, so its rows cannot be changed (Hive 10414)",
                statement,
                text,
            )
        if not self._metastore.abilities.alters_in_commit:
            raise _unsupported_error(
                "A Hive Metastore does not change columns in one step with a COMMIT. Leave WITH "
                "VALUES out, then say UPDATE … SET … = DEFAULT", statement, text,
            )  # fmt: skip

    def _prepare_update(
        self, table: Table, columns: list[Column]
    ) -> tuple[st.Update, StatementText, PreparedStatement]:
        """Compose the UPDATE of all rows that sets the new columns to their DEFAULTs, and whose
        commit will add the columns. Return the parsed UPDATE, its text, and the prepared
        statement; nothing is locked or written."""
        path = quoted_path((table.name.database, table.name.name))
        sets = ", ".join(f"{quote(column.name)} = DEFAULT" for column in columns)
        statement_text = new_statement_text(self._spark, f"UPDATE {path}\nSET {sets}", None)
        statement = parse(statement_text.text, is_ours=lambda _: True)
        assert isinstance(statement, st.Update)
        update = replace(statement, new_columns=tuple(columns))
        return update, statement_text, self._phases.preparer.prepare_change(update, statement_text)


def _require_defaults(columns: list[Column], statement: st.AddFilledColumns, text: str) -> None:
    """Raise UnsupportedError if a column has no DEFAULT other than NULL."""
    for column in columns:
        if not has_default(column):
            raise _unsupported_error(
                f"Column '{column.name}' has no DEFAULT other than NULL, so there are no values",
                statement,
                text,
            )


def _unsupported_error(message: str, statement: st.AddFilledColumns, text: str) -> UnsupportedError:
    """Return an UnsupportedError that points to WITH VALUES in the statement."""
    place = statement.place
    return UnsupportedError(
        f"{message}.", text, place.start, place.end,
        condition="UNSUPPORTED_FEATURE.ADD_COLUMNS_WITH_VALUES",
    )  # fmt: skip
