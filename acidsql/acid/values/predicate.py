"""Conditions on a table's rows by which a reader may skip data: partitions, buckets, files, rows.

Such a predicate is never stronger than the query's own condition: every row that the query needs
satisfies it. Other rows may satisfy it, too. So the query still evaluates its own condition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal

VALUES_MAX = 1000  # of a list that pays; AUTO CDC, which has its keys at hand, takes longer ones
INTEGERS = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A literal.

    Attributes:
        type: Hive's name of the type, such as ``bigint``.
        text: The value as text; a CAST to ``type`` gives the value.
    """

    type: str
    text: str

    @property
    def python(self) -> int | Decimal | str:
        """The value as int or Decimal; for all other types the text."""
        if self.type in INTEGERS:
            return int(self.text)
        return Decimal(self.text) if self.type.startswith("decimal") else self.text


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of a column with literals.

    Attributes:
        column: The column's name, in lower case.
        operator: ``=``, ``<``, ``<=``, ``>``, ``>=``, ``in`` or ``is null``.
        values: The literals: any number for ``in``, none for ``is null``, otherwise one.
    """

    column: str
    operator: str
    values: tuple[TypedValue, ...] = ()


@dataclass(frozen=True, slots=True)
class And:
    """AND: all of these terms hold. An AND without terms holds for every row (``ANYTHING``)."""

    terms: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class Or:
    """OR: at least one of these terms holds."""

    terms: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """NOT: this term is false. If the term is NULL, NOT of the term is NULL, too, as in SQL."""

    term: Comparison


Predicate = Comparison | And | Or | Not

ANYTHING = And()  # holds for every row, so no data is skipped


@dataclass(frozen=True, slots=True)
class Demand:
    """What a query needs of a relation: which rows, and which columns.

    Attributes:
        condition: A predicate that every row that the query needs satisfies.
        columns: Names, in lower case, of the columns whose values the query needs. None: all
            columns. The set is reliable only if a single SELECT … FROM … WHERE reads the relation.
    """

    condition: Predicate = ANYTHING
    columns: frozenset[str] | None = None

    def needs_column(self, column: str) -> bool:
        """True if the query needs the values of this column."""
        return self.columns is None or column.lower() in self.columns

    def with_condition(self, condition: Predicate) -> Demand:
        """This demand with a further condition (AND)."""
        return Demand(conjunction([self.condition, condition]), self.columns)


EVERYTHING = Demand()


def merge_demands(demands: Sequence[Demand]) -> Demand:
    """Return the demand of several readers together: the OR of their conditions, and the columns
    that at least one of them needs; None (all columns) if one of them needs all. No demands at all
    give a condition that holds for no row."""
    columns = frozenset[str]()
    for demand in demands:
        if demand.columns is None:
            return Demand(disjunction([demand.condition for demand in demands]))
        columns |= demand.columns
    return Demand(disjunction([demand.condition for demand in demands]), columns)


def conjunction(terms: Sequence[Predicate]) -> Predicate:
    """Return the AND of some terms, each once. Terms that are ``ANYTHING`` are left out. A single
    term that is left is returned as it is; ``ANYTHING`` if none is left."""
    distinct_terms = tuple(dict.fromkeys(term for term in terms if term != ANYTHING))
    return distinct_terms[0] if len(distinct_terms) == 1 else And(distinct_terms)


def disjunction(terms: Sequence[Predicate]) -> Predicate:
    """Return the OR of some terms; ``ANYTHING`` if one of the terms is ``ANYTHING``. A single term
    is returned as it is. An OR without terms holds for no row."""
    if ANYTHING in terms:
        return ANYTHING
    return terms[0] if len(terms) == 1 else Or(tuple(terms))


def restrict_to_columns(predicate: Predicate, columns: Collection[str]) -> Predicate:
    """Weaken a predicate, so that it mentions only these columns (``weaken``)."""
    return weaken(predicate, lambda term: term.column in columns)


def weaken(predicate: Predicate, keeps: Callable[[Comparison], bool]) -> Predicate:
    """Return the predicate with ``ANYTHING`` in place of the comparisons for which ``keeps`` is
    false, with the NOT before them: it holds at least for all rows for which the given one does."""
    match predicate:
        case Comparison():
            return predicate if keeps(predicate) else ANYTHING
        case Not(term):
            return predicate if keeps(term) else ANYTHING
        case And(terms):
            return conjunction([weaken(term, keeps) for term in terms])
        case Or(terms):
            return disjunction([weaken(term, keeps) for term in terms])


def columns_of(predicate: Predicate) -> frozenset[str]:
    """Return the names of the columns that a predicate mentions, in lower case."""
    match predicate:
        case Comparison(column):
            return frozenset([column])
        case Not(term):
            return frozenset([term.column])
        case And(terms) | Or(terms):
            return frozenset().union(*map(columns_of, terms))


def possible_values(predicate: Predicate, column: str) -> tuple[TypedValue, ...] | None:
    """Return the only values that the column can have if the predicate holds, from ``=`` and IN;
    None: not known. NOT, ``<`` and IS NULL tell nothing. Of the terms of an AND only the first that
    tells values counts. The values of an OR's terms are strung together, if all terms tell some.
    ``column`` is in lower case."""
    match predicate:
        case Comparison(name, "=" | "in", values) if name == column:
            return values
        case And(terms):
            values_of_terms = (possible_values(term, column) for term in terms)
            return next((values for values in values_of_terms if values is not None), None)
        case Or(terms):
            values_by_term = [possible_values(term, column) for term in terms]
            known_values = [values for values in values_by_term if values is not None]
            return sum(known_values, ()) if len(known_values) == len(values_by_term) else None
    return None
