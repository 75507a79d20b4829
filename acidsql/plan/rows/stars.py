"""Keeps our own columns out of ``*`` in the expressions of UPDATE, DELETE and MERGE.

The stand-ins of these statements, which are temporary views in the places of the tables, have more
columns than the tables: ``row__id`` and its fields, other virtual columns, the partition's
directory, and MERGE's mark of a source row. Without an edit ``hash(t.*) <> hash(s.*)`` would
compare these, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acidsql.errors import UnsupportedError
from acidsql.plan.rows.merge_clauses import PRESENT
from acidsql.plan.standins.query import (
    Resolve,
    expressions,
    source_virtual_columns,
    target_virtual_columns,
)
from acidsql.plan.standins.star_exceptions import except_edit
from acidsql.plan.values.sqltext import Edit
from acidsql.sql.parsed.statements import Delete, Merge, Name, Update
from acidsql.sql.queries.references import Star, StarKind, references
from acidsql.sql.text.tokens import Span, tokenize
from acidsql.storage import event_records as ew

_Qualifier = tuple[str, ...]


def star_edits(
    text: str,
    statement: Update | Delete | Merge,
    resolve: Resolve,
    hidden_columns: Sequence[str] = (),
    *,
    double_quoted: bool = False,
) -> list[Edit]:
    """Return the edits that leave the columns which acidsql added to the stand-ins out of each
    ``*`` in a statement's conditions and values. A ``*`` that multiplies gets none, nor does one
    behind any other qualifier (``c.*`` for a struct ``c``).

    A ``*`` in a subquery gets no edit: it means the columns of the subquery's FROM.

    Args:
        text: The user's statement.
        statement: The parsed statement.
        resolve: Gives the ACID table of a name, or None.
        hidden_columns: More columns that no ``*`` shows.
        double_quoted: ``"…"`` is a name in this session.

    Raises:
        UnsupportedError: A ``*`` in a MERGE has no qualifier for target or source.
    """
    if "*" not in text:
        return []
    own_columns = _hidden_columns_by_qualifier(text, statement, resolve)
    edits = []
    for span in expressions(statement):
        span_references = references(
            text, span, double_quoted_identifiers=double_quoted, is_value=True
        )
        for star in span_references.blocks[0].stars:
            if star.qualifier is None and not _is_argument(text, star, span):
                continue  # a multiplication, of a column with the name "all"
            if star.qualifier is None and isinstance(statement, Merge):
                raise _ambiguous_star_error(text, star)
            names = own_columns.get(tuple(part.lower() for part in star.qualifier or ()))
            if names is not None:
                edits.append(except_edit(star, ", ".join([names, *hidden_columns])))
    return edits


def _hidden_columns_by_qualifier(
    text: str, statement: Update | Delete | Merge, resolve: Resolve
) -> Mapping[_Qualifier, str]:
    """Return, for each qualifier in lower case that the user may write before a ``*`` (() for
    none), the columns that acidsql added to that stand-in, as SQL text ``a, b``. MERGE has
    qualifiers of the target and of the source, if the source has an alias; if both have the same,
    it is the target's."""
    target = resolve(statement.target.parts)
    virtual = () if target is None else target_virtual_columns(text, target)
    target_columns = ", ".join([*virtual, *ew.KEYS])
    own_columns: dict[_Qualifier, str] = {(): target_columns}
    if isinstance(statement, Merge) and statement.source_alias is not None:
        for qualifier in _qualifiers(statement.source_alias, statement.source_name, resolve):
            own_columns[qualifier] = ", ".join(
                [PRESENT, *source_virtual_columns(text, statement, resolve)]
            )
    target_name = statement.target if statement.alias is None else None
    for qualifier in _qualifiers(statement.qualifier, target_name, resolve):
        own_columns[qualifier] = target_columns
    return own_columns


def _qualifiers(alias: str, name: Name | None, resolve: Resolve) -> list[_Qualifier]:
    """Return the alias, in lower case, as ``(alias,)``; for an ACID table without an alias, which
    goes by its own name, also ``(database, table)``."""
    table = None if name is None or name.parts[-1] != alias else resolve(name.parts)
    plain = (alias.lower(),)
    return [plain] if table is None else [plain, (table.name.database, table.name.shown)]


def first_star(text: str, expression: Span, double_quoted: bool) -> Span | None:
    """Return the place of the first ``*`` in an expression, outside of subqueries, that stands for
    columns: it has a qualifier or is an argument by itself. None if there is none."""
    expression_references = references(
        text, expression, double_quoted_identifiers=double_quoted, is_value=True
    )
    for star in expression_references.blocks[0].stars:
        if star.qualifier is not None or _is_argument(text, star, expression):
            return star.span
    return None


def _is_argument(text: str, star: Star, expression: Span) -> bool:
    """Whether a ``*`` is an argument of a function by itself: a comma or a bracket follows."""
    tokens_after = tokenize(text, Span(star.span.end, expression.end))
    return star.kind is StarKind.ARGUMENT and tokens_after[0].text in (")", ",")


def _ambiguous_star_error(text: str, star: Star) -> UnsupportedError:
    """Return the error for a ``*`` without a qualifier in a MERGE."""
    return UnsupportedError(
        "A * cannot stand alone in a MERGE, which has columns of the target and of the source. "
        "Write the alias of one of them before it: t.*.",
        text, star.span.start, star.span.end,
        condition="UNSUPPORTED_FEATURE.STAR",
    )  # fmt: skip
