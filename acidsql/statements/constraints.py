"""Constraints in CREATE TABLE and ALTER TABLE: which constraints a table can have.

A condition decides about one row, in every session and at any time in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from acidsql.acid.constraints import Constraint, Kind
from acidsql.acid.table import Table
from acidsql.errors import AnalysisError, SqlError, UnsupportedError
from acidsql.plan import lower
from acidsql.plan.checks import (
    INVALID,
    condition_over,
    fixed_condition_over,
    quoted_in_backticks,
)
from acidsql.plan.locking import exclusive
from acidsql.plan.names import refuse_temporary
from acidsql.plan.sqltext import Text
from acidsql.sql import statements as st
from acidsql.sql.binder import column_of
from acidsql.sql.conditions import has_subquery
from acidsql.sql.tokens import Span
from acidsql.statements.existing_rows import ExistingRows
from acidsql.statements.family import Context, Family, runs
from acidsql.statements.result import Receipt
from acidsql.statements.statement_text import has_double_quoted_names
from acidsql.storage.spark.temporary import is_of_session

_NAME_MAX = 128  # characters
_MANY_ROWS = (
    "INVALID_WHERE_CONDITION", "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
    "_LEGACY_ERROR_TEMP_1034",  # the same in Spark 4.1
)  # fmt: skip
_SHORT = {
    Kind.CHECK: "chk", Kind.PRIMARY_KEY: "pk", Kind.UNIQUE: "uk", Kind.FOREIGN_KEY: "fk",
    Kind.NOT_NULL: "nn",
}  # fmt: skip


class ConstraintStatements(Family):
    """Runs ALTER TABLE … ADD and DROP CONSTRAINT for one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._context, self._existing = context, ExistingRows(context)

    @runs(st.AddConstraint)
    def _add(self, statement: st.AddConstraint, text: str) -> Receipt:
        given = statement.constraint
        table = self._names.require_table(statement.name, text)
        bound(self._context, table, [given], text)  # raises before a transaction is opened
        with self._locked(text, exclusive(table.name)) as txn:
            table = self._again(table.name)
            constraints = bound(self._context, table, [given], text)
            new = constraints[-1]
            if new.is_enforced and given.traits.validated is not False:
                self._existing.need_condition(table, new.name, new.condition, txn)
            self._metastore.alter_table(table.name, constraints=constraints, txn_id=txn.id)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id)

    @runs(st.DropConstraint)
    def _drop(self, statement: st.DropConstraint, text: str) -> Receipt | None:
        table = self._names.require_table(statement.name, text)
        if self._left(table, statement, text) is None:
            return None
        with self._locked(text, exclusive(table.name)) as txn:
            left = self._left(self._again(table.name), statement, text)
            if left is not None:
                self._metastore.alter_table(table.name, constraints=left, txn_id=txn.id)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id)

    def _left(
        self, table: Table, statement: st.DropConstraint, text: str
    ) -> list[Constraint] | None:
        """The other constraints; None if the constraint is not there, and IF EXISTS is said."""
        (name,) = statement.constraint.parts
        left = [one for one in table.constraints if one.name != name.lower()]
        if len(left) < len(table.constraints):
            return left
        if statement.if_exists:
            return None
        known = ", ".join(one.name for one in table.constraints) or "none"
        raise AnalysisError(
            f"{table.name} has no constraint '{name}', but: {known}. A NOT NULL that is enforced "
            "belongs to its column: ALTER COLUMN … DROP NOT NULL.",
            text, statement.constraint.span.start, statement.constraint.span.end,
            condition="CONSTRAINT_DOES_NOT_EXIST", sqlstate="42704",
        )  # fmt: skip


def bound(
    context: Context, table: Table, given: Sequence[st.ConstraintDef], text: str
) -> tuple[Constraint, ...]:
    """The constraints of a table, with these ones behind.

    Raises:
        AnalysisError: A name is taken, a column is not there, or a condition cannot be that of a
            constraint.
        UnsupportedError: The metastore has no such constraints.
    """
    binder = _Binder(context, table, text)
    found = list(table.constraints)
    for one in given:
        taken = [*(other.name for other in found), *_names(given)]
        name = binder.name(one, [other.name for other in found], taken)
        found.append(binder.constraint(one, name, found))
    return tuple(found)


def need_conditions(context: Context, table: Table) -> None:
    """Refuse a change of columns after which a CHECK is no condition any more.

    ``table``: the table with its new columns.
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


def _names(given: Sequence[st.ConstraintDef]) -> list[str]:
    return [one.name.parts[0].lower() for one in given if one.name]


@dataclass(frozen=True, slots=True)
class _Binder:
    """Binds the constraints that one statement gives a table."""

    context: Context
    table: Table
    text: str

    def name(self, given: st.ConstraintDef, known: Sequence[str], taken: Sequence[str]) -> str:
        if given.name is None:
            stem = f"{self.table.name.shown}_{_SHORT[given.kind]}"
            names = (f"{stem}_{number}" for number in range(1, len(taken) + 2))
            return next(name for name in names if name not in taken)
        name = given.name.parts[0].lower()
        if len(name) > _NAME_MAX:
            raise self._error(
                f"The name of a constraint has at most {_NAME_MAX} characters.", given.name.span,
                "INVALID_IDENTIFIER", "42602",
            )  # fmt: skip
        if name in known:
            raise self._error(
                f"{self.table.name} has a constraint '{name}' already.", given.name.span,
                "CONSTRAINT_ALREADY_EXISTS", "42710",
            )  # fmt: skip
        return name

    def constraint(
        self, given: st.ConstraintDef, name: str, others: Sequence[Constraint]
    ) -> Constraint:
        enforced = given.kind is Kind.CHECK and given.traits.enforced is not False
        relied = enforced if given.traits.relied is None else given.traits.relied
        made = Constraint(name, given.kind, is_enforced=enforced, is_relied=relied)
        if given.condition is not None:
            return replace(made, condition=self._condition(given.condition))
        if given.kind is not Kind.NOT_NULL and not self.context.metastore.abilities.keeps_keys:
            raise UnsupportedError(
                f"{given.kind.value} is not supported in a Hive Metastore: leave it out, because "
                "it is information alone.",
                self.text, given.span.start, given.span.end,
                condition="UNSUPPORTED_FEATURE.KEY_CONSTRAINT",
            )  # fmt: skip
        if given.kind is Kind.PRIMARY_KEY and any(o.kind is Kind.PRIMARY_KEY for o in others):
            raise self._error(
                f"{self.table.name} has a PRIMARY KEY already.", given.span,
                "CONSTRAINT_ALREADY_EXISTS", "42710",
            )  # fmt: skip
        made = replace(made, columns=self._columns(given.columns, self.table))
        return made if given.parent is None else self._foreign(made, given, given.parent)

    def _columns(self, names: Sequence[st.Name], table: Table) -> tuple[str, ...]:
        found: list[str] = []
        for name in names:
            column = column_of(self.text, table, name).name
            if column in found:
                raise self._error(
                    f"The key names '{column}' twice.", name.span, "COLUMN_ALREADY_EXISTS", "42711"
                )
            found.append(column)
        return tuple(found)

    def _foreign(self, made: Constraint, given: st.ConstraintDef, parent: st.Name) -> Constraint:
        names = self.context.names
        # A new temporary table is not found under its name yet; by it, people mean the new one.
        is_own = str(names.qualify(parent.parts)) == str(self.table.name)
        table = self.table if is_own else names.require_table(parent, self.text)
        if self.table.name.holder is None:
            refuse_temporary(table.name, "A foreign key of a table that lasts")
        columns = self._columns(given.parent_columns, table)
        if not columns:
            keys = [one for one in table.constraints if one.kind is Kind.PRIMARY_KEY]
            columns = keys[0].columns if keys else ()
        if len(columns) != len(made.columns):
            raise self._error(
                f"The key has {len(made.columns)} column(s), and refers to {len(columns)} of "
                f"{table.name}. Name them: REFERENCES {table.name} (…).", parent.span,
                "INVALID_FOREIGN_KEY", "42830",
            )  # fmt: skip
        return replace(made, parent=str(table.name), parent_columns=columns)

    # ── conditions ───────────────────────────────────────────────────────────────────────────

    def _condition(self, place: Span) -> str:
        """The text of a condition that is about one row alone, and the same for all sessions."""
        double_quoted = has_double_quoted_names(self.context.spark, self.text)
        edits = quoted_in_backticks(self.text, place, double_quoted=double_quoted)
        condition = Text(self.text, edits).verbatim(place)
        if has_subquery(self.text, place):
            raise self._invalid("A CHECK cannot have a subquery: it decides about one row.", place)
        try:
            found = lower.analyse_condition(
                self.context.spark, condition_over(self.table, condition)
            )
        except SqlError as error:
            if error.condition == "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN":
                raise self._invalid("A CHECK is a condition: true or false.", place) from None
            if error.condition not in _MANY_ROWS and "GENERATOR" not in error.condition:
                raise
            raise self._invalid(
                "A CHECK decides about one row, so it has no aggregate, window or generator "
                "function.", place,
            ) from None  # fmt: skip
        self._need_fixed(found, condition, place)
        return condition.sql

    def _need_fixed(self, found: DataFrame, condition: Text, place: Span) -> None:
        ((_, kind),) = lower.fields_of(found)
        if kind.kind != "boolean":
            raise self._invalid(f"A CHECK is a condition: true or false, no {kind}.", place)
        try:
            lower.analyse_condition(self.context.spark, fixed_condition_over(self.table, condition))
        except SqlError as error:
            if error.condition != "INVALID_NON_DETERMINISTIC_EXPRESSIONS":
                raise
            raise self._error(
                "A CHECK cannot have a function that gives another value each time.", place,
                "NON_DETERMINISTIC_CHECK_CONSTRAINT", "42621",
            ) from None  # fmt: skip
        if is_of_session(found):
            raise self._invalid(
                "A CHECK cannot have a function or a variable of this session: others lack it.",
                place,
            )

    def _invalid(self, message: str, place: Span) -> AnalysisError:
        return self._error(message, place, INVALID, "42621")

    def _error(self, message: str, place: Span, condition: str, sqlstate: str) -> AnalysisError:
        return AnalysisError(
            message, self.text, place.start, place.end, condition=condition, sqlstate=sqlstate
        )
