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
class Value:
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
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class All:
    """AND: all of these terms hold. Without terms it holds for every row (``ANYTHING``)."""

    terms: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    """OR: at least one of these terms holds."""

    terms: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class No:
    """NOT: this term is false. If the term is NULL, so is NOT of it, as in SQL."""

    term: Comparison


Predicate = Comparison | All | Some | No

ANYTHING = All()  # holds for every row, so no data is skipped


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

    def concerns(self, column: str) -> bool:
        """True if the query needs the values of this column."""
        return self.columns is None or column.lower() in self.columns

    def also(self, condition: Predicate) -> Demand:
        """This demand with a further condition (AND)."""
        return Demand(all_of([self.condition, condition]), self.columns)


EVERYTHING = Demand()


def any_of(demands: Sequence[Demand]) -> Demand:
    """The demand of several readers together: rows and columns that at least one of them needs."""
    columns = frozenset[str]()
    for demand in demands:
        if demand.columns is None:
            return Demand(some_of([demand.condition for demand in demands]))
        columns |= demand.columns
    return Demand(some_of([one.condition for one in demands]), columns)


def all_of(terms: Sequence[Predicate]) -> Predicate:
    """AND of these terms, each once, without those that hold for every row."""
    distinct_terms = tuple(dict.fromkeys(term for term in terms if term != ANYTHING))
    return distinct_terms[0] if len(distinct_terms) == 1 else All(distinct_terms)


def some_of(terms: Sequence[Predicate]) -> Predicate:
    """OR of these terms. It holds for every row if one of the terms does."""
    if ANYTHING in terms:
        return ANYTHING
    return terms[0] if len(terms) == 1 else Some(tuple(terms))


def about(predicate: Predicate, columns: Collection[str]) -> Predicate:
    """A weaker predicate that mentions only these columns."""
    return weakened(predicate, lambda term: term.column in columns)


def weakened(predicate: Predicate, is_known: Callable[[Comparison], bool]) -> Predicate:
    """A weaker predicate, without the comparisons for which ``is_known`` is false."""
    match predicate:
        case Comparison():
            return predicate if is_known(predicate) else ANYTHING
        case No(term):
            return predicate if is_known(term) else ANYTHING
        case All(terms):
            return all_of([weakened(term, is_known) for term in terms])
        case Some(terms):
            return some_of([weakened(term, is_known) for term in terms])


def columns_of(predicate: Predicate) -> frozenset[str]:
    """The columns that a predicate mentions."""
    match predicate:
        case Comparison(column):
            return frozenset([column])
        case No(term):
            return frozenset([term.column])
        case All(terms) | Some(terms):
            return frozenset().union(*map(columns_of, terms))


def equals(predicate: Predicate, column: str) -> tuple[Value, ...] | None:
    """The only values that the column can have if the predicate holds. None: not known."""
    match predicate:
        case Comparison(name, "=" | "in", values) if name == column:
            return values
        case All(terms):
            values_of_terms = (equals(term, column) for term in terms)
            return next((values for values in values_of_terms if values is not None), None)
        case Some(terms):
            of_each = [equals(term, column) for term in terms]
            known_values = [values for values in of_each if values is not None]
            return sum(known_values, ()) if len(known_values) == len(of_each) else None
    return None
