"""Keeps the virtual columns of stand-ins out of each ``*``, by ``* EXCEPT (…)``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from acidsql.errors import UnsupportedError
from acidsql.plan.values.sqltext import Edit
from acidsql.sql.queries.references import Obstacle, Reference, References, Star, StarKind
from acidsql.sql.text.tokens import tokenize, words_before
from acidsql.storage.columns import quote

# References to tables, each with the virtual columns of the table's stand-in.
ReferencesWithVirtual = Sequence[tuple[Reference, Sequence[str]]]


def virtual_column_exceptions(
    text: str, query_references: References, virtual_by_block: Mapping[int, ReferencesWithVirtual]
) -> Iterator[Edit]:
    """Yield the edits that leave virtual columns out of each ``*``. The ``*`` of a function's
    arguments gets none.

    Args:
        text: The user's statement.
        query_references: The result of the scan of the text.
        virtual_by_block: The references whose stand-ins have virtual columns, by block.

    Raises:
        UnsupportedError: In the block of a virtual column stands a construct from which the column
            cannot be left out, as NATURAL JOIN.
    """
    for doubt in query_references.doubts:
        if doubt.block in virtual_by_block and doubt.obstacle is not Obstacle.IDENTIFIER:
            name = virtual_by_block[doubt.block][0][1][0]
            raise UnsupportedError(
                f"{name} cannot be kept out of the table's columns beside "
                f"{doubt.obstacle.value}. Name the columns instead.",
                text, doubt.span.start, doubt.span.end,
                condition="UNSUPPORTED_FEATURE.ROW_ID",
            )  # fmt: skip
    for block in query_references.blocks:
        for star in block.stars:
            if block.id in virtual_by_block and star.kind is not StarKind.ARGUMENT:
                yield from _star_exceptions(text, star, virtual_by_block[block.id])


def _star_exceptions(text: str, star: Star, tables: ReferencesWithVirtual) -> list[Edit]:
    """Return the edits (one or none) that leave the virtual columns of ``tables`` out of a ``*``,
    each with its table's alias before it; out of ``x.*`` those of x, without a qualifier. Columns
    that its EXCEPT names already are not repeated, and the right side of a SEMI or ANTI JOIN does
    not count for ``*``."""
    if star.excepted is not None:  # Spark takes no column twice
        excepted = {token.value.lower() for token in tokenize(text, star.excepted) if token.is_name}
        tables = [
            (reference, [name for name in virtual if name not in excepted])
            for reference, virtual in tables
        ]
    if star.qualifier is None:
        names = [
            f"{quote(reference.alias or reference.parts[-1])}.{name}"
            for reference, virtual in tables
            for name in virtual
            if not _is_filter_only(text, reference)
        ]
    else:
        qualifier = star.qualifier[-1].lower()
        virtual_by_table = [
            virtual for reference, virtual in tables if qualifier in _names(reference)
        ]
        names = list(dict.fromkeys(name for virtual in virtual_by_table for name in virtual))
    return [except_edit(star, ", ".join(names))] if names else []


def _is_filter_only(text: str, reference: Reference) -> bool:
    """Whether a relation is the right side of SEMI or ANTI JOIN: it adds no columns to a ``*``."""
    return words_before(text, reference.span.start, 2) in (["SEMI", "JOIN"], ["ANTI", "JOIN"])


def _names(reference: Reference) -> set[str]:
    """Return the alias ("" if there is none) and the last part of the name, in lower case."""
    return {name.lower() for name in (reference.alias or "", reference.parts[-1])}


def except_edit(star: Star, names: str) -> Edit:
    """Return the edit that adds columns (SQL text ``a, b``) to a ``*``'s EXCEPT list, or adds such
    a list."""
    if star.excepted is not None:
        return Edit(star.excepted.end, star.excepted.end, f", {names}")
    return Edit(star.span.end, star.span.end, f" EXCEPT ({names})")
