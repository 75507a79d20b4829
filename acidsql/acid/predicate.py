"""What must hold of a row, as far as that can be read off a query: to leave files out, no more.

A predicate is always weaker than the query's own condition, which Spark evaluates on each row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal

INTEGERS = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True, slots=True)
class Value:
    """A literal.

    Attributes:
        type: In Hive's words, ``bigint``.
        text: The value as text that casts to it.
    """

    type: str
    text: str

    @property
    def python(self) -> int | Decimal | str:
        """A whole number or a DECIMAL as such; of all other types the text."""
        if self.type in INTEGERS:
            return int(self.text)
        return Decimal(self.text) if self.type.startswith("decimal") else self.text


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column against literals.

    Attributes:
        column: Its name, in lower case.
        operator: ``=``, ``<``, ``<=``, ``>``, ``>=``, ``in`` or ``is null``.
        values: One; of ``in`` some; of ``is null`` none.
    """

    column: str
    operator: str
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class All:
    """All of these hold; of none: nothing is known."""

    terms: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    """One of these holds at least."""

    terms: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class No:
    """This does not hold (where it is NULL, this is NULL, too)."""

    term: Comparison


Predicate = Comparison | All | Some | No

ANYTHING = All()


@dataclass(frozen=True, slots=True)
class Demand:
    """What a query demands of the rows of a relation.

    Attributes:
        condition: What holds of every row that matters.
        columns: Those whose values matter, by name in lower case; None: all. To be relied on where
            one SELECT … FROM … WHERE is the only reader.
    """

    condition: Predicate = ANYTHING
    columns: frozenset[str] | None = None

    def concerns(self, column: str) -> bool:
        """Whether the values of a column matter."""
        return self.columns is None or column.lower() in self.columns

    def also(self, condition: Predicate) -> Demand:
        """The same, and this holds, too."""
        return Demand(all_of([self.condition, condition]), self.columns)


EVERYTHING = Demand()


def any_of(demands: Sequence[Demand]) -> Demand:
    """What each of some readings demands."""
    columns = frozenset[str]()
    for demand in demands:
        if demand.columns is None:
            return Demand(some_of([one.condition for one in demands]))
        columns |= demand.columns
    return Demand(some_of([one.condition for one in demands]), columns)


def all_of(terms: Sequence[Predicate]) -> Predicate:
    """AND; what is not known of a term is not known of the whole."""
    known = tuple(term for term in terms if term != ANYTHING)
    return known[0] if len(known) == 1 else All(known)


def some_of(terms: Sequence[Predicate]) -> Predicate:
    """OR; nothing is known of it if nothing is known of one of the terms."""
    if ANYTHING in terms:
        return ANYTHING
    return terms[0] if len(terms) == 1 else Some(tuple(terms))


def about(predicate: Predicate, columns: Collection[str]) -> Predicate:
    """What it says of these columns alone; weaker, where others are mentioned."""
    return weakened(predicate, lambda term: term.column in columns)


def weakened(predicate: Predicate, is_known: Callable[[Comparison], bool]) -> Predicate:
    """What is left of it when nothing is known of some comparisons."""
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
    """The columns that it mentions."""
    match predicate:
        case Comparison(column):
            return frozenset([column])
        case No(term):
            return frozenset([term.column])
        case All(terms) | Some(terms):
            return frozenset().union(*map(columns_of, terms))


def equals(predicate: Predicate, column: str) -> tuple[Value, ...] | None:
    """The only values that a column can have; None: that is not known."""
    match predicate:
        case Comparison(name, "=" | "in", values) if name == column:
            return values
        case All(terms):
            found = (equals(term, column) for term in terms)
            return next((values for values in found if values is not None), None)
        case Some(terms):
            of_each = [equals(term, column) for term in terms]
            known = [values for values in of_each if values is not None]
            return sum(known, ()) if len(known) == len(of_each) else None
    return None
