"""The builder of MERGE."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession

from acidsql.api.dataframes.advice import advising_quotes
from acidsql.api.dataframes.text import (
    SqlOrColumn,
    assignments_sql,
    column_paths,
    expression_sql,
    table_and_alias,
    value_sql,
)
from acidsql.arguments import checked
from acidsql.errors import SettingError
from acidsql.storage.columns import quote
from acidsql.storage.spark.columns.column_sql import alias_of, column_sql
from acidsql.storage.spark.columns.writer import ColumnSql

SOURCE = "source"  # the name of a statement's DataFrame, and its alias if it has none
_RunSql = Callable[..., DataFrame]  # ``Session.sql``


class MergeIntoWriter:
    """Collects the clauses of a MERGE. ``Session.merge_into`` makes one.

    The methods have the names of PySpark's ``MergeIntoWriter`` (``whenMatched().updateAll()``,
    ``merge()``), and of Delta Lake's builder (``whenMatchedUpdateAll()``, ``execute()``). Of
    several clauses of one kind, the first whose condition is true applies.
    """

    def __init__(
        self, spark: SparkSession, run: _RunSql, source: DataFrame, table: str, on: SqlOrColumn
    ) -> None:
        """Keep what ``merge`` needs; nothing is checked or run. ``run``: ``Session.sql``."""
        self._spark, self._run = spark, run
        self._source, self._table, self._on = source, table, on
        self._clauses: dict[str, list[_Clause]] = {kind: [] for kind in _KINDS}
        self._values: list[SqlOrColumn] = []
        self._conditions: list[SqlOrColumn | None] = []
        self._evolution = ""
        self._has_run = False

    def __repr__(self) -> str:
        """Return ``<MERGE INTO t, 2 clauses, not run yet: call .merge()>``, or ``…, was run>`` once
        ``merge`` has succeeded."""
        count = sum(map(len, self._clauses.values()))
        state = "was run" if self._has_run else "not run yet: call .merge()"
        return f"<MERGE INTO {self._table}, {count} clause{'' if count == 1 else 's'}, {state}>"

    @checked
    def whenMatched(self, condition: SqlOrColumn | None = None) -> WhenMatched:  # noqa: N802
        """Begin a clause for rows of the table that a row of the source matches. A method of the
        result adds the clause with its action: ``whenMatched().delete()``."""
        return WhenMatched(self, "MATCHED", condition)

    @checked
    def whenNotMatched(self, condition: SqlOrColumn | None = None) -> WhenNotMatched:  # noqa: N802
        """Begin a clause for rows of the source that match no row of the table. A method of the
        result adds the clause with its action: ``whenNotMatched().insertAll()``."""
        return WhenNotMatched(self, "NOT MATCHED", condition)

    @checked
    def whenNotMatchedBySource(  # noqa: N802
        self, condition: SqlOrColumn | None = None
    ) -> WhenNotMatchedBySource:
        """Begin a clause for rows of the table that no row of the source matches. A method of the
        result adds the clause with its action: ``whenNotMatchedBySource().delete()``."""
        return WhenNotMatchedBySource(self, "NOT MATCHED BY SOURCE", condition)

    def withSchemaEvolution(self) -> MergeIntoWriter:  # noqa: N802
        """Let the table get columns of the source that it lacks, and wider numbers, with the MERGE.

        See docs/sql.md, "WITH SCHEMA EVOLUTION".
        """
        self._evolution = " WITH SCHEMA EVOLUTION"
        return self

    def merge(self) -> DataFrame:
        """Run the MERGE. A second call runs it again. The clauses are ordered by kind: MATCHED, NOT
        MATCHED, NOT MATCHED BY SOURCE; those of one kind stay in the order in which they were
        added.

        Returns:
            One row of counts: num_affected_rows, num_inserted_rows, num_updated_rows,
            num_deleted_rows, txn_id and write_id.

        Raises:
            MergeCardinalityError: Several rows of the source match one row of the table.
            SettingError: There is no clause.
            AcidSqlError: Any error of ``Session.sql``. The table is as it was.
        """
        alias = alias_of(self._source) or SOURCE
        with (
            column_sql(self._spark, (self._source, alias)) as columns,
            advising_quotes(self._values, [self._on, *self._conditions]),
        ):
            clauses = [clause(columns) for kind in _KINDS for clause in self._clauses[kind]]
            if not clauses:
                raise SettingError("merge() needs a clause: whenMatched, whenNotMatched, …")
            on = expression_sql(self._on, columns)
            into = f"MERGE{self._evolution} INTO {table_and_alias(self._table)}"
            text = f"{into} USING {{{SOURCE}}} AS {quote(alias)} ON {on}"
            counts = self._run("\n".join([text, *clauses]), **{SOURCE: self._source})
        self._has_run = True
        return counts

    # ── the names of Delta Lake's builder ────────────────────────────────────────────────────

    def execute(self) -> DataFrame:
        """Run the MERGE: Delta Lake's name of ``merge``."""
        return self.merge()

    @checked
    def whenMatchedUpdate(  # noqa: N802
        self,
        condition: SqlOrColumn | None = None,
        set: Mapping[str, SqlOrColumn] | None = None,
    ) -> MergeIntoWriter:
        """Delta Lake's name of ``whenMatched(condition).update(set)``."""
        return self.whenMatched(condition).update(set or {})

    @checked
    def whenMatchedUpdateAll(  # noqa: N802
        self, condition: SqlOrColumn | None = None
    ) -> MergeIntoWriter:
        """Delta Lake's name of ``whenMatched(condition).updateAll()``."""
        return self.whenMatched(condition).updateAll()

    @checked
    def whenMatchedDelete(  # noqa: N802
        self, condition: SqlOrColumn | None = None
    ) -> MergeIntoWriter:
        """Delta Lake's name of ``whenMatched(condition).delete()``."""
        return self.whenMatched(condition).delete()

    @checked
    def whenNotMatchedInsert(  # noqa: N802
        self,
        condition: SqlOrColumn | None = None,
        values: Mapping[str, SqlOrColumn] | None = None,
    ) -> MergeIntoWriter:
        """Delta Lake's name of ``whenNotMatched(condition).insert(values)``."""
        return self.whenNotMatched(condition).insert(values or {})

    @checked
    def whenNotMatchedInsertAll(  # noqa: N802
        self, condition: SqlOrColumn | None = None
    ) -> MergeIntoWriter:
        """Delta Lake's name of ``whenNotMatched(condition).insertAll()``."""
        return self.whenNotMatched(condition).insertAll()

    @checked
    def whenNotMatchedBySourceUpdate(  # noqa: N802
        self,
        condition: SqlOrColumn | None = None,
        set: Mapping[str, SqlOrColumn] | None = None,
    ) -> MergeIntoWriter:
        """Delta Lake's name of ``whenNotMatchedBySource(condition).update(set)``."""
        return self.whenNotMatchedBySource(condition).update(set or {})

    @checked
    def whenNotMatchedBySourceDelete(  # noqa: N802
        self, condition: SqlOrColumn | None = None
    ) -> MergeIntoWriter:
        """Delta Lake's name of ``whenNotMatchedBySource(condition).delete()``."""
        return self.whenNotMatchedBySource(condition).delete()

    def _add_clause(
        self,
        kind: str,
        clause: _Clause,
        values: Iterable[SqlOrColumn],
        condition: SqlOrColumn | None,
    ) -> MergeIntoWriter:
        """Add a clause behind those of its kind (a member of `_KINDS`), and return this writer.
        ``clause``: makes the SQL of the clause in ``merge``. ``values``, ``condition``: those of
        the clause, for advice in an error."""
        self._clauses[kind].append(clause)
        self._values += values
        self._conditions.append(condition)
        return self


_Clause = Callable[[ColumnSql], str]
_KINDS = ("MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE")
_ACTIONS = ("update", "updateAll", "delete", "insert", "insertAll")


class _WhenClause:
    """One WHEN of a MERGE, without its action."""

    def __init__(self, writer: MergeIntoWriter, kind: str, condition: SqlOrColumn | None) -> None:
        self._writer, self._kind, self._condition = writer, kind, condition

    def __repr__(self) -> str:
        """Return a text that this WHEN lacks its action, with the methods that add one."""
        calls = [name for name in _ACTIONS if hasattr(self, name)]
        return f"<WHEN {self._kind} of {self._writer!r} lacks its action: .{'(), .'.join(calls)}()>"

    def _add_action(self, action: _Clause, values: Iterable[SqlOrColumn] = ()) -> MergeIntoWriter:
        """Add this WHEN, with the action, to the MERGE, and return the MERGE's writer. ``action``:
        makes the SQL behind THEN in ``merge``. ``values``: its values, for advice in an error."""

        def clause(columns: ColumnSql) -> str:
            """Return ``WHEN kind [AND condition] THEN action``."""
            when = f"WHEN {self._kind}"
            if self._condition is not None:
                when += f" AND {expression_sql(self._condition, columns)}"
            return f"{when} THEN {action(columns)}"

        return self._writer._add_clause(self._kind, clause, values, self._condition)


class WhenNotMatchedBySource(_WhenClause):
    """A clause for rows of the table that no row of the source matches. Each method adds the clause
    with an action."""

    @checked
    def update(self, assignments: Mapping[str, SqlOrColumn]) -> MergeIntoWriter:
        """Add the action UPDATE SET: columns, or fields of structs, with their new values as SQL
        text or Columns. Return the writer; nothing runs yet. Raise SettingError without a
        column."""
        column_paths(assignments, "update()")

        def action(columns: ColumnSql) -> str:
            return f"UPDATE SET {assignments_sql(assignments, columns)}"

        return self._add_action(action, assignments.values())

    def delete(self) -> MergeIntoWriter:
        """Add the action DELETE. Return the writer; nothing runs yet."""
        return self._add_action(lambda _: "DELETE")


class WhenMatched(WhenNotMatchedBySource):
    """A clause for rows of the table that a row of the source matches. Each method adds the clause
    with an action."""

    def updateAll(self) -> MergeIntoWriter:  # noqa: N802
        """Add the action that sets all columns to those of the source, by name. Return the writer;
        nothing runs yet."""
        return self._add_action(lambda _: "UPDATE SET *")


class WhenNotMatched(_WhenClause):
    """A clause for rows of the source that match no row of the table. Each method adds the clause
    with an action."""

    @checked
    def insert(self, assignments: Mapping[str, SqlOrColumn]) -> MergeIntoWriter:
        """Add the action INSERT: columns with their values as SQL text or Columns. Return the
        writer; nothing runs yet. Raise SettingError without a column."""
        paths = ", ".join(column_paths(assignments, "insert()"))

        def action(columns: ColumnSql) -> str:
            values = ", ".join(value_sql(value, columns) for value in assignments.values())
            return f"INSERT ({paths}) VALUES ({values})"

        return self._add_action(action, assignments.values())

    def insertAll(self) -> MergeIntoWriter:  # noqa: N802
        """Add the action that inserts the row of the source, by the columns' names. Return the
        writer; nothing runs yet."""
        return self._add_action(lambda _: "INSERT *")
