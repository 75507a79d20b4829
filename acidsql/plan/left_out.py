"""Keeps virtual columns, which a stand-in has beside a table's columns, out of each ``*``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from acidsql.errors import UnsupportedError
from acidsql.plan.sqltext import Edit
from acidsql.sql.references import Obstacle, Reference, References, Star, StarKind
from acidsql.sql.tokens import tokenize
from acidsql.storage.columns import quote

Shown = Sequence[tuple[Reference, Sequence[str]]]  # with the virtual columns of its stand-in


def without_virtual(text: str, found: References, visible: Mapping[int, Shown]) -> Iterator[Edit]:
    """The edits that leave virtual columns out of each ``*``.

    Args:
        text: The user's statement.
        found: What the text names.
        visible: The references whose stand-ins have virtual columns, by block.

    Raises:
        UnsupportedError: A virtual column stands beside something from which it cannot be left out.
    """
    for doubt in found.doubts:
        if doubt.block in visible and doubt.obstacle is not Obstacle.IDENTIFIER:
            name = visible[doubt.block][0][1][0]
            raise UnsupportedError(
                f"{name} cannot be kept out of the table's columns beside "
                f"{doubt.obstacle.value}. Name the columns instead.",
                text, doubt.span.start, doubt.span.end,
                condition="UNSUPPORTED_FEATURE.ROW_ID",
            )  # fmt: skip
    for block in found.blocks:
        for star in block.stars:
            if block.id in visible and star.kind is not StarKind.ARGUMENT:
                yield from _without_virtual(text, star, visible[block.id])


def _without_virtual(text: str, star: Star, tables: Shown) -> list[Edit]:
    if star.excepted is not None:  # Spark takes no column twice
        excepted = {one.value.lower() for one in tokenize(star.excepted.of(text)) if one.is_name}
        tables = [(one, [name for name in own if name not in excepted]) for one, own in tables]
    if star.qualifier is None:
        names = [
            f"{quote(one.alias or one.parts[-1])}.{name}"
            for one, own in tables
            for name in own
            if not _only_filters(text, one)
        ]
    else:
        said = star.qualifier[-1].lower()
        named = [own for one, own in tables if said in _names(one)]
        names = list(dict.fromkeys(name for own in named for name in own))
    return [left_out(star, ", ".join(names))] if names else []


def _only_filters(text: str, reference: Reference) -> bool:
    """Whether a relation is the right side of SEMI or ANTI JOIN: it adds no columns to a ``*``."""
    before = [one.upper for one in tokenize(text[: reference.span.start])[-2:]]
    return before in (["SEMI", "JOIN"], ["ANTI", "JOIN"])


def _names(reference: Reference) -> set[str]:
    return {name.lower() for name in (reference.alias or "", reference.parts[-1])}


def left_out(star: Star, names: str) -> Edit:
    """The edit that adds columns to a ``*``'s EXCEPT list, or adds the list."""
    if star.excepted is not None:
        return Edit(star.excepted.end, star.excepted.end, f", {names}")
    return Edit(star.span.end, star.span.end, f" EXCEPT ({names})")
