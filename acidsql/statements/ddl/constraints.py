"""Constraints in CREATE TABLE and ALTER TABLE: checks which constraints a table can have.

A condition must decide about one row alone, and in the same way in every session and at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from acidsql.acid.constraints import Constraint, ConstraintKind
from acidsql.acid.table import Table
from acidsql.errors import AnalysisError, SqlError, UnsupportedError
from acidsql.plan.analysis import lower
from acidsql.plan.locking import exclusive_lock
from acidsql.plan.standins.names import refuse_temporary
from acidsql.plan.values.checks import (
    INVALID,
    backtick_edits,
    condition_over,
    fixed_condition_over,
)
from acidsql.plan.values.sqltext import Text
from acidsql.sql.binder import require_column_of_ddl
from acidsql.sql.parsed import statements as st
from acidsql.sql.queries.conditions import has_subquery
from acidsql.sql.text.tokens import Span
from acidsql.statements.context.family import Context, Family, runs
from acidsql.statements.context.result import Receipt
from acidsql.statements.context.statement_text import has_double_quoted_names
from acidsql.statements.ddl.existing_rows import ExistingRows
from acidsql.storage.spark.session.temporary import depends_on_session
from acidsql.suggestions import names_sentence

_NAME_MAX = 128  # characters
_MANY_ROWS_CONDITIONS = (
    "INVALID_WHERE_CONDITION",
    "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
    "_LEGACY_ERROR_TEMP_1034",  # the same in Spark 4.1
)
_NAME_SUFFIXES = {
    ConstraintKind.CHECK: "chk",
    ConstraintKind.PRIMARY_KEY: "pk",
    ConstraintKind.UNIQUE: "uk",
    ConstraintKind.FOREIGN_KEY: "fk",
    ConstraintKind.NOT_NULL: "nn",
}


class ConstraintStatements(Family):
    """Runs ALTER TABLE … ADD and DROP CONSTRAINT for one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._context, self._existing = context, ExistingRows(context)

    @runs(st.AddConstraint)
    def _add_constraint(self, statement: st.AddConstraint, text: str) -> Receipt:
        """Run ADD CONSTRAINT under the table's EXCLUSIVE lock. An enforced CHECK must not be false
        for any row (ConstraintError), which a job tests, unless the statement says NOVALIDATE; for
        any other constraint no rows are read. A definition that the table cannot have raises
        AnalysisError or UnsupportedError before a transaction begins. Return a receipt without
        counts."""
        definition = statement.constraint
        table = self._names.require_table(statement.name, text)
        # An error is raised before a transaction is opened.
        extended_constraints(self._context, table, [definition], text)
        with self._locked_transaction(text, exclusive_lock(table.name)) as txn:
            table = self._look_up_again(table.name)
            constraints = extended_constraints(self._context, table, [definition], text)
            new_constraint = constraints[-1]
            if new_constraint.is_enforced and definition.traits.validated is not False:
                self._existing.require_condition(
                    table, new_constraint.name, new_constraint.condition, txn
                )
            self._metastore.alter_table(table.name, constraints=constraints, txn_id=txn.id)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id)

    @runs(st.DropConstraint)
    def _drop_constraint(self, statement: st.DropConstraint, text: str) -> Receipt | None:
        """Run DROP CONSTRAINT under the table's EXCLUSIVE lock, and return a receipt. If there is
        no such constraint at the look-up, return None with IF EXISTS, and raise AnalysisError
        without it."""
        table = self._names.require_table(statement.name, text)
        if self._remaining_constraints(table, statement, text) is None:
            return None
        with self._locked_transaction(text, exclusive_lock(table.name)) as txn:
            remaining = self._remaining_constraints(
                self._look_up_again(table.name), statement, text
            )
            if remaining is not None:
                self._metastore.alter_table(table.name, constraints=remaining, txn_id=txn.id)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id)

    def _remaining_constraints(
        self, table: Table, statement: st.DropConstraint, text: str
    ) -> list[Constraint] | None:
        """Return a table's constraints without the one that the statement drops. If there is no
        such one, return None with IF EXISTS, and raise AnalysisError without it."""
        (name,) = statement.constraint.parts
        remaining = [
            constraint for constraint in table.constraints if constraint.name != name.lower()
        ]
        if len(remaining) < len(table.constraints):
            return remaining
        if statement.if_exists:
            return None
        names = [constraint.name for constraint in table.constraints]
        others = names_sentence(name, names, "constraints") or "It has none."
        raise AnalysisError(
            f"{table.name} has no constraint '{name}'. {others} A NOT NULL that is enforced "
            "belongs to its column: ALTER COLUMN … DROP NOT NULL.",
            text, statement.constraint.span.start, statement.constraint.span.end,
            condition="CONSTRAINT_DOES_NOT_EXIST", sqlstate="42704",
        )  # fmt: skip


def extended_constraints(
    context: Context, table: Table, definitions: Sequence[st.ConstraintDef], text: str
) -> tuple[Constraint, ...]:
    """Return the constraints of a table, followed by the new ones, which ``definitions`` define. A
    new constraint without a name gets a name. Nothing is stored, and no rows are read.

    Raises:
        AnalysisError: A name is too long or taken, a column is missing or named twice, a key does
            not match its parent's, there is a PRIMARY KEY already, or a condition cannot be that of
            a CHECK.
        UnsupportedError: The metastore does not keep constraints of this kind, or the parent is a
            temporary table and the table is not.
    """
    binder = _Binder(context, table, text)
    constraints = list(table.constraints)
    for definition in definitions:
        names_to_avoid = [
            *(constraint.name for constraint in constraints),
            *_stated_names(definitions),
        ]
        name = binder.choose_name(
            definition, [constraint.name for constraint in constraints], names_to_avoid
        )
        constraints.append(binder.bind_constraint(definition, name, constraints))
    return tuple(constraints)


def require_conditions(context: Context, table: Table) -> None:
    """Check that each CHECK of a table is still a condition over its columns. The rows are not
    read.

    ``table``: the table with its new columns.

    Raises:
        UnsupportedError: Spark cannot analyse a condition any more.
    """
    for name, condition in table.checks.items():
        try:
            lower.analyse_condition(
                context.spark, condition_over(table, Text(condition).raw(condition))
            )
        except SqlError as error:
            raise UnsupportedError(
                f"The CHECK constraint '{name}' ({condition}) of {table.name} would not be a "
                f"condition any more: {error.message}",
                condition="UNSUPPORTED_FEATURE.CHECK_CONSTRAINT",
            ) from None


def _stated_names(definitions: Sequence[st.ConstraintDef]) -> list[str]:
    return [definition.name.parts[0].lower() for definition in definitions if definition.name]


@dataclass(frozen=True, slots=True)
class _Binder:
    """Binds the constraints that one statement adds to a table."""

    context: Context
    table: Table
    text: str

    def choose_name(
        self,
        definition: st.ConstraintDef,
        names_so_far: Sequence[str],
        names_to_avoid: Sequence[str],
    ) -> str:
        """Return the name of a new constraint: the stated one, in lower case, or else the first of
        ``table_pk_1``, ``table_pk_2`` … (by its kind) that is not in ``names_to_avoid``.

        Raises:
            AnalysisError: The stated name is too long, or is in ``names_so_far``.
        """
        if definition.name is None:
            stem = f"{self.table.name.shown}_{_NAME_SUFFIXES[definition.kind]}"
            names = (f"{stem}_{number}" for number in range(1, len(names_to_avoid) + 2))
            return next(name for name in names if name not in names_to_avoid)
        name = definition.name.parts[0].lower()
        if len(name) > _NAME_MAX:
            raise self._error(
                f"The name of a constraint has at most {_NAME_MAX} characters.",
                definition.name.span, "INVALID_IDENTIFIER", "42602",
            )  # fmt: skip
        if name in names_so_far:
            raise self._error(
                f"{self.table.name} has a constraint '{name}' already.", definition.name.span,
                "CONSTRAINT_ALREADY_EXISTS", "42710",
            )  # fmt: skip
        return name

    def bind_constraint(
        self, definition: st.ConstraintDef, name: str, existing_constraints: Sequence[Constraint]
    ) -> Constraint:
        """Return the constraint of a definition, with this name. Only a CHECK is enforced, unless
        its definition says NOT ENFORCED; without RELY or NORELY an enforced one is relied on.
        ``existing_constraints`` are the table's so far. Nothing is stored.

        Raises:
            AnalysisError: There is a PRIMARY KEY already, a column or the parent is missing, a
                column is named twice, a FOREIGN KEY does not match its parent's key, or the
                condition cannot be that of a CHECK.
            UnsupportedError: The metastore keeps no keys, or only the parent is temporary.
        """
        is_enforced = (
            definition.kind is ConstraintKind.CHECK and definition.traits.enforced is not False
        )
        is_relied = is_enforced if definition.traits.relied is None else definition.traits.relied
        new = Constraint(name, definition.kind, is_enforced=is_enforced, is_relied=is_relied)
        if definition.condition is not None:
            return replace(new, condition=self._bind_condition(definition.condition))
        if (
            definition.kind is not ConstraintKind.NOT_NULL
            and not self.context.metastore.abilities.keeps_keys
        ):
            raise UnsupportedError(
                f"{definition.kind.value} is not supported in a Hive Metastore: leave it out, "
                "because it is information alone.",
                self.text, definition.span.start, definition.span.end,
                condition="UNSUPPORTED_FEATURE.KEY_CONSTRAINT",
            )  # fmt: skip
        if definition.kind is ConstraintKind.PRIMARY_KEY and any(
            o.kind is ConstraintKind.PRIMARY_KEY for o in existing_constraints
        ):
            raise self._error(
                f"{self.table.name} has a PRIMARY KEY already.", definition.span,
                "CONSTRAINT_ALREADY_EXISTS", "42710",
            )  # fmt: skip
        new = replace(new, columns=self._bind_columns(definition.columns, self.table))
        return (
            new
            if definition.parent is None
            else self._bind_foreign_key(new, definition, definition.parent)
        )

    def _bind_columns(self, names: Sequence[st.Name], table: Table) -> tuple[str, ...]:
        """Return the names of a key's columns as the table has them. Raise AnalysisError if one is
        missing or named twice."""
        columns: list[str] = []
        for name in names:
            column = require_column_of_ddl(self.text, table, name).name
            if column in columns:
                raise self._error(
                    f"The key names '{column}' twice.", name.span, "COLUMN_ALREADY_EXISTS", "42711"
                )
            columns.append(column)
        return tuple(columns)

    def _bind_foreign_key(
        self, new: Constraint, definition: st.ConstraintDef, parent: st.Name
    ) -> Constraint:
        """Return a FOREIGN KEY with its parent and the parent's columns; if it names none, those of
        the parent's PRIMARY KEY. The parent may be the table itself.

        Raises:
            AnalysisError: There is no parent or no such column, a column is named twice, or the
                parent's key has another number of columns.
            UnsupportedError: The parent is temporary, and the table is not.
        """
        names = self.context.names
        # A new temporary table is not found by its name yet. Here the name means the new table.
        is_own = str(names.qualify(parent.parts)) == str(self.table.name)
        table = self.table if is_own else names.require_table(parent, self.text)
        if self.table.name.session_txn_id is None:
            refuse_temporary(table.name, "A foreign key of a table that lasts")
        columns = self._bind_columns(definition.parent_columns, table)
        if not columns:
            primary_keys = [
                constraint
                for constraint in table.constraints
                if constraint.kind is ConstraintKind.PRIMARY_KEY
            ]
            columns = primary_keys[0].columns if primary_keys else ()
        if len(columns) != len(new.columns):
            raise self._error(
                f"The key has {len(new.columns)} column(s), and refers to {len(columns)} of "
                f"{table.name}. Name them: REFERENCES {table.name} (…).", parent.span,
                "INVALID_FOREIGN_KEY", "42830",
            )  # fmt: skip
        return replace(new, parent=str(table.name), parent_columns=columns)

    # ── conditions ───────────────────────────────────────────────────────────────────────────

    def _bind_condition(self, place: Span) -> str:
        """Return the SQL of a CHECK's condition, with names in backticks. Raise AnalysisError if it
        is no BOOLEAN, has a subquery, an aggregate, a window or a generator function, or may have
        another value each time or in another session; SqlError if Spark cannot analyse it. Spark
        analyses the condition over the table's columns: its errors tell aggregate, window and
        generator functions."""
        double_quoted = has_double_quoted_names(self.context.spark, self.text)
        edits = backtick_edits(self.text, place, double_quoted=double_quoted)
        condition = Text(self.text, edits).verbatim(place)
        if has_subquery(self.text, place):
            raise self._condition_error(
                "A CHECK cannot have a subquery: it decides about one row.", place
            )
        try:
            rows = lower.analyse_condition(
                self.context.spark, condition_over(self.table, condition)
            )
        except SqlError as error:
            if error.condition == "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN":
                raise self._condition_error(
                    "A CHECK is a condition: true or false.", place
                ) from None
            if error.condition not in _MANY_ROWS_CONDITIONS and "GENERATOR" not in error.condition:
                raise
            raise self._condition_error(
                "A CHECK decides about one row, so it has no aggregate, window or generator "
                "function.",
                place,
            ) from None
        self._require_fixed_condition(rows, condition, place)
        return condition.sql

    def _require_fixed_condition(self, rows: DataFrame, condition: Text, place: Span) -> None:
        """Raise AnalysisError if a condition is no BOOLEAN, has a function that gives another value
        each time, or has a function or variable of this session. ``rows``: the analysed
        condition."""
        ((_, kind),) = lower.fields_of(rows)
        if kind.kind != "boolean":
            raise self._condition_error(f"A CHECK is a condition: true or false, no {kind}.", place)
        try:
            lower.analyse_condition(self.context.spark, fixed_condition_over(self.table, condition))
        except SqlError as error:
            if error.condition != "INVALID_NON_DETERMINISTIC_EXPRESSIONS":
                raise
            raise self._error(
                "A CHECK cannot have a function that gives another value each time.", place,
                "NON_DETERMINISTIC_CHECK_CONSTRAINT", "42621",
            ) from None  # fmt: skip
        if depends_on_session(rows):
            raise self._condition_error(
                "A CHECK cannot have a function or a variable of this session: others lack it.",
                place,
            )

    def _condition_error(self, message: str, place: Span) -> AnalysisError:
        return self._error(message, place, INVALID, "42621")

    def _error(self, message: str, place: Span, condition: str, sqlstate: str) -> AnalysisError:
        return AnalysisError(
            message, self.text, place.start, place.end, condition=condition, sqlstate=sqlstate
        )
