"""Parses constraints, with Hive's and Spark's words behind them, and ALTER TABLE about them."""

from __future__ import annotations

from acidsql.acid.constraints import Kind
from acidsql.sql.cursor import Cursor
from acidsql.sql.insert import column_list
from acidsql.sql.statements import (
    AddConstraint,
    ConstraintDef,
    DropConstraint,
    Name,
    Traits,
)
from acidsql.sql.tokens import Span

# Words behind a constraint: the trait that they set, and its value.
_TRAITS = {
    ("ENABLE",): ("enforced", True), ("ENFORCED",): ("enforced", True),
    ("DISABLE",): ("enforced", False), ("NOT", "ENFORCED"): ("enforced", False),
    ("VALIDATE",): ("validated", True), ("NOVALIDATE",): ("validated", False),
    ("RELY",): ("relied", True), ("NORELY",): ("relied", False),
}  # fmt: skip
TRAIT_STARTS = tuple(" ".join(one) for one in _TRAITS)
_STARTS = (("CHECK", "("), ("PRIMARY", "KEY", "("), ("UNIQUE", "("), ("FOREIGN", "KEY", "("))
_NAMED = ("CHECK", "PRIMARY", "UNIQUE", "FOREIGN")


def at_table_constraint(c: Cursor) -> bool:
    """Whether a constraint of the table begins here. A column may have the name CHECK."""
    if c.at("CONSTRAINT"):
        return c.peek().is_name and c.peek(2).upper in _NAMED
    return any(c.at(*start) for start in _STARTS)


def table_constraint(c: Cursor) -> ConstraintDef:
    """Parse ``[CONSTRAINT name] CHECK (…) | PRIMARY KEY (…) | UNIQUE (…) | FOREIGN KEY (…) …``."""
    start = c.index
    name = constraint_name(c)
    if c.at("CHECK"):
        return check(c, start, name)
    kind = _key(c)
    columns = column_list(c) if c.at("(") else c.fail("Expected '('")
    return _keyed(c, start, name, kind, columns)


def column_constraint(c: Cursor, start: int, name: Name | None, column: Name) -> ConstraintDef:
    """Parse a CHECK or a key behind a column; ``start``: the index of the first token."""
    if c.at("CHECK"):
        return check(c, start, name)
    kind = Kind.FOREIGN_KEY if c.at("REFERENCES") else _key(c)
    return _keyed(c, start, name, kind, (column,))


def constraint_name(c: Cursor) -> Name | None:
    """Parse ``CONSTRAINT name``; None if another word comes."""
    if not c.accept("CONSTRAINT"):
        return None
    token = c.name_part("the name of a constraint")
    return Name((token.value,), token.span)


def check(c: Cursor, start: int, name: Name | None) -> ConstraintDef:
    """Parse ``CHECK (…)`` and the words behind it."""
    c.expect("CHECK")
    if not c.at("("):
        c.fail("Expected '('")
    if c.peek().text == ")":
        c.fail("Expected a condition", c.peek())
    first = c.index + 1
    c.skip_brackets()
    condition = Span(c.tokens[first].start, c.tokens[c.index - 2].end)
    found = traits(c)
    return ConstraintDef(Kind.CHECK, c.span_from(start), name, condition, traits=found)


def traits(c: Cursor) -> Traits:
    """Parse ``ENABLE | DISABLE | [NOT] ENFORCED | [NO]VALIDATE | RELY | NORELY``, in any order."""
    found: dict[str, bool] = {}
    while words := next((words for words in _TRAITS if c.at(*words)), None):
        trait, value = _TRAITS[words]
        if trait in found:
            others = (" ".join(one) for one, (other, _) in _TRAITS.items() if other == trait)
            c.fail(f"Expected one of {', '.join(others)}")
        if trait == "validated" and value and found.get("enforced") is False:
            c.refuse("VALIDATE of a constraint that is not enforced is not supported")
        found[trait] = value
        c.take(len(words))
    return Traits(**found)


def alter_constraint(c: Cursor, name: Name) -> AddConstraint | DropConstraint | None:
    """Parse the text after ``ALTER TABLE t``; None if it is not about constraints."""
    if c.at("DROP", "CONSTRAINT"):
        c.take(2)
        if_exists = c.accept("IF", "EXISTS") is not None
        token = c.name_part("the name of a constraint")
        if not c.accept("RESTRICT"):
            c.accept("CASCADE")
        c.end()
        return DropConstraint(name, Name((token.value,), token.span), if_exists)
    starts = (("ADD", "CONSTRAINT"), *(("ADD", *start) for start in _STARTS))
    if not any(c.at(*start) for start in starts):
        return None
    c.take()
    if c.at("CONSTRAINT") and c.peek(2).upper not in _NAMED:
        c.index += 2
        c.fail("Expected CHECK, PRIMARY KEY, UNIQUE or FOREIGN KEY")
    constraint = table_constraint(c)
    c.end()
    return AddConstraint(name, constraint)


def _key(c: Cursor) -> Kind:
    for kind in (Kind.PRIMARY_KEY, Kind.UNIQUE, Kind.FOREIGN_KEY):
        if c.accept(*kind.value.split()):
            return kind
    c.expect(c.token.upper, "KEY")  # PRIMARY or FOREIGN alone
    raise AssertionError("unreachable")


def _keyed(
    c: Cursor, start: int, name: Name | None, kind: Kind, columns: tuple[Name, ...]
) -> ConstraintDef:
    parent, parent_columns = None, tuple[Name, ...]()
    if kind is Kind.FOREIGN_KEY:
        c.expect("REFERENCES")
        parent = c.name("the name of a table")
        parent_columns = column_list(c) if c.at("(") else ()
    first = c.token
    found = traits(c)
    if found.enforced:
        c.refuse(
            f"{kind.value} … {first.upper} is not supported: keys are information, as in Hive. "
            "Say DISABLE NOVALIDATE, or nothing",
            first.span,
        )
    span = c.span_from(start)
    return ConstraintDef(kind, span, name, None, columns, parent, parent_columns, found)
