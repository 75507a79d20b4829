"""Keeps ``row__id``, which a stand-in has beside a table's columns, out of each ``*``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from acidsql.errors import UnsupportedError
from acidsql.plan.sqltext import Edit
from acidsql.sql.references import Obstacle, Reference, References, Star, StarKind
from acidsql.storage.columns import quote


def without_row_ids(
    text: str, found: References, visible: Mapping[int, Sequence[Reference]]
) -> Iterator[Edit]:
    """The edits that leave ``row__id`` out of each ``*``.

    Args:
        text: The user's statement.
        found: What the text names.
        visible: The references whose stand-ins have the column, by block.

    Raises:
        UnsupportedError: ``row__id`` stands beside something from which it cannot be left out.
    """
    for doubt in found.doubts:
        if doubt.block in visible and doubt.obstacle is not Obstacle.IDENTIFIER:
            raise UnsupportedError(
                f"row__id cannot be kept out of the table's columns beside "
                f"{doubt.obstacle.value}. Name the columns instead.",
                text, doubt.span.start, doubt.span.end,
                condition="UNSUPPORTED_FEATURE.ROW_ID",
            )  # fmt: skip
    for block in found.blocks:
        for star in block.stars:
            if block.id in visible and star.kind is not StarKind.ARGUMENT:
                yield from _without_row_id(star, visible[block.id])


def _without_row_id(star: Star, tables: Sequence[Reference]) -> list[Edit]:
    aliases = [reference.alias or reference.parts[-1] for reference in tables]
    if star.qualifier is not None:
        known = {name.lower() for one in tables for name in (one.alias or "", one.parts[-1])}
        if star.qualifier[-1].lower() not in known:
            return []
        names = ["row__id"]
    else:
        names = [f"{quote(alias)}.row__id" for alias in aliases]
    return [left_out(star, ", ".join(names))]


def left_out(star: Star, names: str) -> Edit:
    """The edit that adds columns to a ``*``'s EXCEPT list, or adds the list."""
    if star.excepted is not None:
        return Edit(star.excepted.end, star.excepted.end, f", {names}")
    return Edit(star.span.end, star.span.end, f" EXCEPT ({names})")
