"""Refuses statements of Spark's that name ACID tables, because Spark alone would misread them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.plan.standins.query import Resolve
from acidsql.sql.commands.databases import DATABASE_WORDS
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.parsed.statements import Name
from acidsql.sql.queries.references import mentioned_tables
from acidsql.sql.text.tokens import tokenize
from acidsql.storage.columns import quoted_path


def refuse_acid_tables(
    text: str,
    resolve: Resolve,
    is_in_spark: Callable[[tuple[str, ...]], bool],
    *,
    double_quoted: bool,
) -> None:
    """Refuse a statement that Spark is to run alone, if it names an ACID table or a view of ACID
    tables, which Spark would misread.

    Args:
        text: The user's statement.
        resolve: Returns the ACID table of a name, or None.
        is_in_spark: Whether Spark knows a table or view of a name.
        double_quoted: ``"…"`` is a name in this session.

    Raises:
        AnalysisError: TABLE_OR_VIEW_NOT_FOUND: the statement names an ACID table, but the target of
            its UPDATE, DELETE or MERGE is a table that neither the metastore nor Spark has.
        UnsupportedError: The statement names an ACID table, with any other target or none.
    """
    for reference in mentioned_tables(text, double_quoted_identifiers=double_quoted):
        table = resolve(reference.parts)
        if table is None:
            continue
        target = _dml_target(text, double_quoted)
        if target is not None and not resolve(target.parts) and not is_in_spark(target.parts):
            raise _not_found_error(text, target)
        raise UnsupportedError(
            f"{table.name} is {'an ACID table' if table.view is None else 'a view of ACID tables'}"
            ", and Spark alone would misread it: this statement is not supported for it.",
            text, reference.span.start, reference.span.end,
            condition="UNSUPPORTED_FEATURE.TABLE_OPERATION",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MadeName:
    """The name that a statement gives to a table or view; ``if_not_exists``: unless it is taken."""

    parts: tuple[str, ...]
    if_not_exists: bool = False


def made_name(text: str, *, double_quoted: bool) -> MadeName | None:
    """Return the name that a table or view has after CREATE TABLE, CREATE VIEW or RENAME TO; None
    for any other statement, for a temporary view, and for IDENTIFIER(…). A new name without a
    database is in the database of the old one, as in Spark. Raise SqlSyntaxError for half a
    name."""
    c = Cursor(text, tokenize(text, double_quoted_identifiers=double_quoted))
    if c.accept("ALTER", "TABLE") or c.accept("ALTER", "VIEW"):
        old = _name_here(c)
        new = _name_here(c) if old is not None and c.accept("RENAME", "TO") else None
        if old is None or new is None:
            return None
        return MadeName(old.parts[:-1] + new.parts if len(new.parts) == 1 else new.parts)
    if not c.accept("CREATE"):
        return None
    c.accept("OR", "REPLACE")
    c.accept("EXTERNAL")
    if not c.accept("TABLE") and not c.accept("VIEW"):
        return None
    if_not_exists = c.accept("IF", "NOT", "EXISTS") is not None
    name = _name_here(c)
    return None if name is None else MadeName(name.parts, if_not_exists)


def _name_here(c: Cursor) -> Name | None:
    """Take a table's name; return None if no name comes next, or IDENTIFIER(…) does."""
    if c.is_at("IDENTIFIER", "(") or not c.token.is_name:
        return None
    return c.take_name("the name of a table")


def dropped_name(text: str, *, double_quoted: bool) -> Name | None:
    """Return the name in a DROP TABLE or DROP VIEW without IF EXISTS; None for any other statement,
    and for IDENTIFIER(…)."""
    c = Cursor(text, tokenize(text, double_quoted_identifiers=double_quoted))
    if not c.accept("DROP", "TABLE") and not c.accept("DROP", "VIEW"):
        return None
    return None if c.is_at("IF", "EXISTS") else _name_here(c)


def nothing_to_drop_error(name: Name, text: str) -> AnalysisError:
    """Return the TABLE_OR_VIEW_NOT_FOUND for DROP of a table or view that does not exist, with
    advice."""
    return AnalysisError(
        f"There is no table or view '{'.'.join(name.parts)}'. With IF EXISTS, or after SET "
        "hive.exec.drop.ignorenonexistent = true, this is no error.",
        text, name.span.start, name.span.end,
        condition="TABLE_OR_VIEW_NOT_FOUND", sqlstate="42P01",
        relationName=quoted_path(name.parts),
    )  # fmt: skip


def refuse_new_location(text: str, is_ours: Callable[[Name], bool], *, double_quoted: bool) -> None:
    """Raise UnsupportedError for ``ALTER DATABASE d SET LOCATION`` if ``is_ours`` says that
    acidsql's metastore has d: only Spark's part of it would move. Other statements pass."""
    c = Cursor(text, tokenize(text, double_quoted_identifiers=double_quoted))
    if not c.accept("ALTER") or not c.is_at_any(DATABASE_WORDS):
        return
    c.take()
    name = c.take_name("the name of a database")
    if c.is_at("SET", "LOCATION") and is_ours(name):
        raise UnsupportedError(
            "A database of ACID tables keeps its location. CREATE TABLE … LOCATION makes a table "
            "elsewhere.",
            text, name.span.start, name.span.end,
            condition="UNSUPPORTED_FEATURE.DATABASE_LOCATION",
        )  # fmt: skip


def _dml_target(text: str, double_quoted: bool) -> Name | None:
    """Return the name after UPDATE, DELETE FROM or MERGE INTO, also behind a WITH clause; None for
    any other statement, as MERGE WITH SCHEMA EVOLUTION. Raise SqlSyntaxError if no name follows."""
    c = Cursor(text, tokenize(text, double_quoted_identifiers=double_quoted))
    if c.is_at("WITH"):
        c.skip_ctes()
    if c.accept("UPDATE") or c.accept("DELETE", "FROM") or c.accept("MERGE", "INTO"):
        return c.take_name("the name of a table")
    return None


def _not_found_error(text: str, target: Name) -> AnalysisError:
    """Return the TABLE_OR_VIEW_NOT_FOUND for a statement's target."""
    return AnalysisError(
        f"There is no table '{'.'.join(target.parts)}'.",
        text, target.span.start, target.span.end,
        condition="TABLE_OR_VIEW_NOT_FOUND", sqlstate="42P01",
        relationName=quoted_path(target.parts),
    )  # fmt: skip
