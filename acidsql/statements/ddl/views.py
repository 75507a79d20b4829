"""CREATE, ALTER and DROP VIEW of views over ACID tables."""

from __future__ import annotations

from acidsql.acid.table import TableName
from acidsql.metastore.foreign import view_of
from acidsql.plan.locking import exclusive_lock
from acidsql.plan.standins.view_text import need_view
from acidsql.sql.parsed import statements as st
from acidsql.statements.context.family import Context, Family, runs
from acidsql.statements.context.result import Receipt
from acidsql.statements.ddl.view_definition import ViewDefinitions


class ViewStatements(Family):
    """Runs the statements about views for one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._define_view = ViewDefinitions(context).define_view

    @runs(st.CreateView)
    def _create_view(self, statement: st.CreateView, text: str) -> Receipt | None:
        """Run CREATE VIEW. OR REPLACE replaces a view, but no table. Return None if the name is
        taken and the statement has IF NOT EXISTS; raise CatalogError if the name is taken
        otherwise."""
        name = self._names.new_table_name(statement.name, text)
        if self._has_nothing_to_create_or_replace(statement, name):
            return None
        view = self._define_view(statement, text, name)
        with self._locked_transaction(text, exclusive_lock(name)) as txn:
            if self._has_nothing_to_create_or_replace(statement, name):
                return None
            self._metastore.create_view(view, replace=statement.or_replace, txn_id=txn.id)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id)

    @runs(st.AlterView)
    def _alter_view(self, statement: st.AlterView, text: str) -> Receipt:
        """Run ALTER VIEW … AS: replace a view's query, and keep its comment and properties, under
        an EXCLUSIVE lock on the view. Raise AnalysisError if there is no such view, SqlError if the
        query cannot be that of a view."""
        name = self._require_view(statement.name, text)
        self._define_view(statement, text, name)  # raises before a transaction is opened
        with self._locked_transaction(text, exclusive_lock(name)) as txn:
            view = self._define_view(statement, text, self._require_view(statement.name, text))
            self._metastore.create_view(view, replace=True, txn_id=txn.id)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id)

    @runs(st.RenameView)
    def _rename_view(self, statement: st.RenameView, text: str) -> Receipt:
        """Run ALTER VIEW … RENAME TO, under EXCLUSIVE locks on both names. Raise CatalogError if
        the new name is taken, and AnalysisError if the old name is no view's."""
        name = self._require_view(statement.name, text)
        new_name = self._names.new_table_name(statement.new_name, text)
        self._names.require_free_name(statement.new_name, new_name)
        with self._locked_transaction(text, exclusive_lock(name), exclusive_lock(new_name)) as txn:
            self._metastore.rename_view(name, new_name, txn_id=txn.id)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id)

    @runs(st.DropView)
    def _drop_view(self, statement: st.DropView, text: str) -> Receipt | None:
        """Run DROP VIEW. Return None if the statement has IF EXISTS and the view was dropped
        between the look-up and the lock. Raise AnalysisError if there is no such view at the
        look-up, or the name is that of a table."""
        name = self._require_view(statement.name, text)
        with self._locked_transaction(text, exclusive_lock(name)) as txn:
            if statement.if_exists and view_of(self._metastore.find(name)) is None:
                return None
            self._metastore.drop_view(name, txn_id=txn.id)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id)

    def _require_view(self, name: st.Name, text: str) -> TableName:
        """Return the full name of a view. Raise AnalysisError if there is none, or it is a
        table."""
        view = self._names.require_table_or_view(name, text)
        need_view(view, name, text)
        return view.name

    def _has_nothing_to_create_or_replace(self, statement: st.CreateView, name: TableName) -> bool:
        """Whether IF NOT EXISTS leaves nothing to do, because the name is taken. False: the name is
        free, or OR REPLACE replaces a view. Raise CatalogError if the name is taken otherwise."""
        entry = self._metastore.find(name)
        if view_of(entry) and statement.or_replace:
            return False
        kind = "a view" if view_of(entry) else "a table" if entry else None
        return self._has_nothing_to_create(statement, name, kind)
