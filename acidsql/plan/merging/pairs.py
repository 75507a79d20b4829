"""The joined rows of a MERGE, each with the clause that applies to it, and the clause's values.

A clause sees the names of the sides that have a row in it. So each kind of clause is evaluated in a
layer of its own, in which no other names are in scope::

    target JOIN source ON …          MATCHED: the names of both sides
      └─ SELECT … AS source          NOT MATCHED: the source's names
          └─ SELECT … AS target      NOT MATCHED BY SOURCE: the target's names

Beside the side's columns, a layer has columns with a reserved prefix, which no statement can name
and no ``*`` shows. There are only the layers that the statement's clauses need.

The target's stand-in is a temporary view in the place of the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.plan.rows.event_query import (
    RewriteContext,
    key_columns,
    refuse_window,
    single_value,
    value_name,
)
from acidsql.plan.rows.merge_clauses import PRESENT, BoundClause, source_name
from acidsql.plan.standins.query import target_virtual_columns
from acidsql.plan.values.sqltext import Text
from acidsql.sql.parsed.statements import Matched, Merge
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote

CLAUSE = f"{ew.PREFIX}clause"  # the number of the clause that applies, from 1; 0: none applies
OLD = f"{ew.PREFIX}old"  # + ordinal: a column of the target row that was read
_VIRTUAL = f"{ew.PREFIX}virtual"  # + ordinal: a virtual column of that row

_JOINS = {
    (False, False): "INNER JOIN",
    (True, False): "RIGHT OUTER JOIN",
    (False, True): "LEFT OUTER JOIN",
    (True, True): "FULL OUTER JOIN",
}
# The directory is never NULL in a target row. This is less certain of the row id's fields.
_WHEN = {
    Matched.MATCHED: f"{ew.PARTITION} IS NOT NULL AND {PRESENT} IS NOT NULL",
    Matched.NOT_MATCHED: f"{ew.PARTITION} IS NULL",
    Matched.NOT_MATCHED_BY_SOURCE: f"{PRESENT} IS NULL",
}


def joined_rows(
    statement: Merge,
    context: RewriteContext,
    target: Text,
    source: Text,
    bound: Sequence[BoundClause],
) -> Text:
    """Compose the joined rows of a MERGE, one for each pair and each unpaired row that a clause is
    about, with the statement's WITH clause. The columns are the target row's key, its old values
    (`OLD` + ordinal), `PRESENT`, the number `CLAUSE` of the clause that applies (0: none), and the
    values of all clauses, NULL but for this clause (`value_name` of their number, in the order of
    the clauses). With some clauses there are more columns.

    Args:
        statement: The statement.
        context: The context of the rewrite.
        target: The relation with the target's rows, without an alias.
        source: The relation with the source's rows, with its alias.
        bound: The clauses.
    """
    layers = _Layers(statement, context, bound)
    rows = layers.join_layer(target, source)
    if Matched.NOT_MATCHED in layers.kinds:
        rows = layers.source_layer(rows)
    if Matched.NOT_MATCHED_BY_SOURCE in layers.kinds:
        rows = layers.target_layer(rows)
    # Subqueries of all layers see the WITH clause.
    return rows if statement.ctes is None else context.new(statement.ctes).add(rows)


class _Layers:
    """Composes the layers of one MERGE, from the inside out. The three layers are composed in the
    order of their methods: each notes which columns it passes on to the next.

    Args:
        statement: The statement.
        context: The context of the rewrite.
        bound: The clauses.

    Attributes:
        kinds: The kinds of the clauses.
    """

    def __init__(
        self, statement: Merge, context: RewriteContext, bound: Sequence[BoundClause]
    ) -> None:
        """Find the kinds of the clauses. The layer of the last kind gives `CLAUSE` its name."""
        self._statement, self._context = statement, context
        self._bound = list(enumerate(bound, 1))
        self.kinds = {item.clause.matched for item in bound}
        self._last = max(self.kinds, key=list(Matched).index)
        self._clause: str | None = None  # the column with the clause's number, so far
        self._ours: list[str] = []  # columns that the layers so far pass on, without PRESENT
        self._values = 0  # the number of values, so far

    def join_layer(self, target: Text, source: Text) -> Text:
        """Compose the join: inner, left, right or full, as the clauses need.

        Its columns are the keys; the target's old values (`OLD` + ordinal); with NOT MATCHED BY
        SOURCE clauses the target's virtual columns (`_VIRTUAL` + ordinal); `PRESENT`, or with NOT
        MATCHED clauses all columns of the source, of which `PRESENT` is one; and those of the WHEN
        MATCHED clauses, in which both sides are in scope.
        """
        alias, context = quote(self._statement.qualifier), self._context
        old = {f"{OLD}{i}": c.name for i, c in enumerate(context.table.all_columns)}
        if Matched.NOT_MATCHED_BY_SOURCE in self.kinds:
            old |= {f"{_VIRTUAL}{i}": name for i, name in enumerate(self._virtual())}
        columns: list[Text | str] = [*key_columns(self._statement.qualifier)]
        columns += [f"{alias}.{quote(name)} AS {passed}" for passed, name in old.items()]
        has_source = Matched.NOT_MATCHED in self.kinds
        columns.append(f"{quote(source_name(self._statement))}.*" if has_source else PRESENT)
        self._ours = [*ew.KEYS, *old]
        columns += self._clause_columns(Matched.MATCHED, context)
        join = _JOINS[has_source, Matched.NOT_MATCHED_BY_SOURCE in self.kinds]
        text = context.new().raw("SELECT\n").commas(columns)
        text.raw("\nFROM ").add(target).raw(f" AS {alias} {join} ").add(source)
        return text.raw("\nON ").user(self._statement.on)

    def source_layer(self, rows: Text) -> Text:
        """Compose the layer over ``rows``: all their columns and those of the WHEN NOT MATCHED
        clauses, in which only the source's columns are in scope."""
        context = self._context.with_hidden_columns(self._ours)
        columns = ["*", *self._clause_columns(Matched.NOT_MATCHED, context)]
        text = context.new().raw("SELECT\n").commas(columns).raw("\nFROM (").add(rows)
        return text.raw(f"\n) AS {quote(source_name(self._statement))}")

    def target_layer(self, rows: Text) -> Text:
        """Compose the layer over ``rows``: the columns that all layers pass on, the target's old
        values and virtual columns under their own names, and the columns of the WHEN NOT MATCHED BY
        SOURCE clauses, in which only the target's columns are in scope. The source's columns, but
        `PRESENT`, are dropped."""
        target_columns = [
            *(
                f"{OLD}{i} AS {quote(c.name)}"
                for i, c in enumerate(self._context.table.all_columns)
            ),
            *(f"{_VIRTUAL}{i} AS {quote(name)}" for i, name in enumerate(self._virtual())),
        ]
        passed_names = [PRESENT, *self._ours]
        context = self._context.with_hidden_columns(
            [name for name in passed_names if name not in ew.KEYS]
        )
        columns = ["*", *self._clause_columns(Matched.NOT_MATCHED_BY_SOURCE, context)]
        text = context.new().raw("SELECT\n").commas(columns)
        text.raw("\nFROM (SELECT\n").commas([*passed_names, *target_columns]).raw("\nFROM (").add(
            rows
        )
        return text.raw(f"\n)) AS {quote(self._statement.qualifier)}")

    def _virtual(self) -> tuple[str, ...]:
        """Return the virtual columns of the target's stand-in: ``row__id`` and those that the text
        names."""
        return target_virtual_columns(
            self._context.text, self._context.table_before or self._context.table
        )

    def _clause_columns(self, matched: Matched, context: RewriteContext) -> list[Text | str]:
        """Return the columns, as SQL with names, that a layer adds for the clauses of the kind
        ``matched``: the number of the clause that applies so far, then each clause's values (NULL
        unless the clause applies); [] if there are no such clauses. Their names are noted for the
        next layer.

        The clause's number is a lateral column alias, so that Spark evaluates each condition once.
        """
        bound = [(number, item) for number, item in self._bound if item.clause.matched is matched]
        if not bound:
            return []
        earlier_clause, self._clause = (
            self._clause,
            CLAUSE if matched is self._last else f"{CLAUSE}_{matched.name}",
        )
        columns: list[Text | str] = [self._which_clause(context, bound, earlier_clause)]
        self._ours.append(self._clause)
        for number, item in bound:
            for new in item.values:
                name = value_name(self._values)
                columns.append(
                    self._clause_value(context, number, new.text(context)).raw(f" AS {name}")
                )
                self._ours.append(name)
                self._values += 1
        return columns

    def _which_clause(
        self,
        context: RewriteContext,
        numbered_clauses: Sequence[tuple[int, BoundClause]],
        earlier_clause: str | None,
    ) -> Text:
        """Compose, as a column with its name, the number of the first of ``numbered_clauses``
        (clauses of one kind) whose condition is true for the pair, neither false nor NULL; else
        that of a layer below, or 0. Raise UnsupportedError for a window function in a condition."""
        text = context.new().raw("CASE")
        for number, item in numbered_clauses:
            text.raw(f" WHEN {_WHEN[item.clause.matched]}")
            if item.clause.condition is not None:
                refuse_window(context, item.clause.condition)
                # Beside AND, Spark would take a text, 'true', for a boolean.
                text.raw(" AND if(").user(item.clause.condition).raw(", true, false)")
            text.raw(f" THEN {number}")
        return text.raw(f" ELSE {earlier_clause or 0} END AS {self._clause}")

    def _clause_value(self, context: RewriteContext, number: int, value: Text) -> Text:
        """Return a value that is evaluated only if its clause applies, and else is NULL: else 1 / 0
        could fail the job. Spark refuses a generator such as explode() in it."""
        text = context.new().raw(f"CASE WHEN {self._clause} = {number} THEN ")
        return text.add(single_value(value)).raw(" END")
