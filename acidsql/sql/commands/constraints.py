"""Parses constraints, with Hive's and Spark's words behind them, and ALTER TABLE about them."""

from __future__ import annotations

from acidsql.acid.constraints import ConstraintKind
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import parse_column_list
from acidsql.sql.parsed.statements import (
    AddConstraint,
    ConstraintDef,
    DropConstraint,
    Name,
    Traits,
)
from acidsql.sql.text.tokens import Span

# Words behind a constraint: the trait that they set, and its value.
_TRAITS = {
    ("ENABLE",): ("enforced", True), ("ENFORCED",): ("enforced", True),
    ("DISABLE",): ("enforced", False), ("NOT", "ENFORCED"): ("enforced", False),
    ("VALIDATE",): ("validated", True), ("NOVALIDATE",): ("validated", False),
    ("RELY",): ("relied", True), ("NORELY",): ("relied", False),
}  # fmt: skip
TRAIT_STARTS = tuple(" ".join(words) for words in _TRAITS)
_STARTS = (("CHECK", "("), ("PRIMARY", "KEY", "("), ("UNIQUE", "("), ("FOREIGN", "KEY", "("))
_KIND_WORDS = ("CHECK", "PRIMARY", "UNIQUE", "FOREIGN")


def is_at_table_constraint(c: Cursor) -> bool:
    """Whether a constraint of the table begins here. A column may have the name CHECK."""
    if c.is_at("CONSTRAINT"):
        return c.peek().is_name and c.peek(2).upper in _KIND_WORDS
    return any(c.is_at(*start) for start in _STARTS)


def parse_table_constraint(c: Cursor) -> ConstraintDef:
    """Parse ``[CONSTRAINT name] CHECK (…) | PRIMARY KEY (…) | UNIQUE (…) | FOREIGN KEY (…) …``,
    with the traits behind. A key that is to be enforced raises UnsupportedError."""
    start = c.index
    name = parse_constraint_name(c)
    if c.is_at("CHECK"):
        return _parse_check(c, start, name)
    kind = _parse_key_kind(c)
    columns = parse_column_list(c) if c.is_at("(") else c.fail("Expected '('")
    return _parse_key_constraint(c, start, name, kind, columns)


def parse_column_constraint(
    c: Cursor, start: int, name: Name | None, column: Name
) -> ConstraintDef:
    """Parse a CHECK or a key behind a column's type, with the traits behind. A key that is to be
    enforced raises UnsupportedError.

    ``start``: the index of the constraint's first token. ``name``: the name behind CONSTRAINT,
    which is taken already.
    """
    if c.is_at("CHECK"):
        return _parse_check(c, start, name)
    kind = ConstraintKind.FOREIGN_KEY if c.is_at("REFERENCES") else _parse_key_kind(c)
    return _parse_key_constraint(c, start, name, kind, (column,))


def parse_constraint_name(c: Cursor) -> Name | None:
    """Parse ``CONSTRAINT name``; return None, without moving, if another word comes."""
    if not c.accept("CONSTRAINT"):
        return None
    token = c.take_name_part("the name of a constraint")
    return Name((token.value,), token.span)


def _parse_check(c: Cursor, start: int, name: Name | None) -> ConstraintDef:
    """Parse ``CHECK (condition)`` and the traits behind the bracket. The condition stays a span,
    unread; an empty one is a syntax error. ``start``, ``name``: the constraint's first token and
    its name."""
    c.expect("CHECK")
    if not c.is_at("("):
        c.fail("Expected '('")
    if c.peek().text == ")":
        c.fail("Expected a condition", c.peek())
    first = c.index + 1
    c.skip_brackets()
    condition = Span(c.tokens[first].start, c.tokens[c.index - 2].end)
    check_traits = parse_traits(c)
    return ConstraintDef(
        ConstraintKind.CHECK, c.span_from(start), name, condition, traits=check_traits
    )


def parse_traits(c: Cursor) -> Traits:
    """Parse ``ENABLE | DISABLE | [NOT] ENFORCED | [NO]VALIDATE | RELY | NORELY``, in any order,
    perhaps none. They set ``enforced``, ``validated`` and ``relied`` of the result to True or
    False; what is not named stays None. Raise UnsupportedError for VALIDATE after DISABLE or NOT
    ENFORCED, and SqlSyntaxError if two of them are about the same trait."""
    values_by_trait: dict[str, bool] = {}
    while words := next((words for words in _TRAITS if c.is_at(*words)), None):
        trait, value = _TRAITS[words]
        if trait in values_by_trait:
            alternatives = (
                " ".join(phrase)
                for phrase, (phrase_trait, _) in _TRAITS.items()
                if phrase_trait == trait
            )
            c.fail(f"Expected one of {', '.join(alternatives)}")
        if trait == "validated" and value and values_by_trait.get("enforced") is False:
            c.refuse("VALIDATE of a constraint that is not enforced is not supported")
        values_by_trait[trait] = value
        c.take(len(words))
    return Traits(**values_by_trait)


def parse_alter_constraint(c: Cursor, name: Name) -> AddConstraint | DropConstraint | None:
    """Parse the text after ``ALTER TABLE t``: ``ADD`` of a constraint, or ``DROP CONSTRAINT [IF
    EXISTS] c [RESTRICT|CASCADE]``, whose last word is ignored; return None, without moving, for any
    other words."""
    if c.is_at("DROP", "CONSTRAINT"):
        c.take(2)
        if_exists = c.accept("IF", "EXISTS") is not None
        token = c.take_name_part("the name of a constraint")
        if not c.accept("RESTRICT"):
            c.accept("CASCADE")
        c.expect_end()
        return DropConstraint(name, Name((token.value,), token.span), if_exists)
    starts = (("ADD", "CONSTRAINT"), *(("ADD", *start) for start in _STARTS))
    if not any(c.is_at(*start) for start in starts):
        return None
    c.take()
    if c.is_at("CONSTRAINT") and c.peek(2).upper not in _KIND_WORDS:
        c.index += 2
        c.fail("Expected CHECK, PRIMARY KEY, UNIQUE or FOREIGN KEY")
    constraint = parse_table_constraint(c)
    c.expect_end()
    return AddConstraint(name, constraint)


def _parse_key_kind(c: Cursor) -> ConstraintKind:
    """Take PRIMARY KEY, UNIQUE or FOREIGN KEY and return which. PRIMARY, FOREIGN or another word
    without KEY behind it raises SqlSyntaxError."""
    for kind in (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE, ConstraintKind.FOREIGN_KEY):
        if c.accept(*kind.value.split()):
            return kind
    c.expect(c.token.upper, "KEY")  # PRIMARY or FOREIGN alone
    raise AssertionError("unreachable")


def _parse_key_constraint(
    c: Cursor, start: int, name: Name | None, key_kind: ConstraintKind, columns: tuple[Name, ...]
) -> ConstraintDef:
    """Parse the text behind a key's columns: the parent table of a FOREIGN KEY, with its columns
    (() if they are not named), and the traits. ENABLE or ENFORCED raises UnsupportedError, because
    keys are not checked."""
    parent, parent_columns = None, tuple[Name, ...]()
    if key_kind is ConstraintKind.FOREIGN_KEY:
        c.expect("REFERENCES")
        parent = c.take_name("the name of a table")
        parent_columns = parse_column_list(c) if c.is_at("(") else ()
    first = c.token
    key_traits = parse_traits(c)
    if key_traits.enforced:
        c.refuse(
            f"{key_kind.value} … {first.upper} is not supported: keys are information, as in Hive. "
            "Say DISABLE NOVALIDATE, or nothing",
            first.span,
        )
    span = c.span_from(start)
    return ConstraintDef(key_kind, span, name, None, columns, parent, parent_columns, key_traits)
