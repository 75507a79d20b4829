"""Composed Spark SQL with a map back to the user's text.

The user's expressions are copied verbatim, so that Spark reads what the user wrote; each copy
stands in brackets of its own, so that it cannot reach into our text (``WHERE id = 1 LIMIT 1``
fails at LIMIT), and ends with a new line, so that neither can a comment. An error that Spark
reports at an offset of the composed text is mapped back to the user's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from acidsql.sql.tokens import Span


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch of the user's text that is replaced wherever it is copied."""

    start: int
    end: int
    replacement: str


class Text:
    """Text under construction.

    Args:
        source: The user's statement.
        edits: What to replace in copies of it; they do not overlap.
    """

    def __init__(self, source: str, edits: Iterable[Edit] = ()) -> None:
        self.source = source
        self._edits = sorted(edits, key=lambda edit: edit.start)
        self._parts: list[str] = []
        self._length = 0
        self._map: list[tuple[int, int, int]] = []  # offset here, offset in source, length

    def raw(self, sql: str) -> Text:
        """Append text of our own."""
        self._parts.append(sql)
        self._length += len(sql)
        return self

    def user(self, span: Span) -> Text:
        """Append a slice of the user's text in brackets."""
        return self.raw("(").verbatim(span).raw("\n)")

    def verbatim(self, span: Span) -> Text:
        """Append a slice of the user's text as it stands, its edits applied."""
        at = span.start
        for edit in self._edits:
            if span.start <= edit.start and edit.end <= span.end:
                self._copy(at, edit.start)
                self.raw(edit.replacement)
                at = edit.end
        self._copy(at, span.end)
        return self

    def commas(self, parts: Sequence[Text | str]) -> Text:
        """Append parts with commas between them."""
        for number, part in enumerate(parts):
            self.raw(",\n  " if number else "  ")
            self.add(part)
        return self

    def add(self, part: Text | str) -> Text:
        """Append our own text, or a text with a map of its own."""
        if isinstance(part, str):
            return self.raw(part)
        shift = self._length
        self._map += [(here + shift, there, length) for here, there, length in part._map]
        return self.raw(part.sql)

    def new(self) -> Text:
        """An empty text over the same source and edits."""
        return Text(self.source, self._edits)

    @property
    def sql(self) -> str:
        """The text so far."""
        return "".join(self._parts)

    def place(self, start: int, stop: int) -> Span | None:
        """The user's text behind offsets ``start..stop`` (stop included) of this text.

        None where they do not lie in a copy.
        """
        offsets = [self._back(start), self._back(stop)]
        if offsets[0] is None:
            return None
        end = offsets[1] if offsets[1] is not None else offsets[0]
        return Span(offsets[0], max(end, offsets[0]) + 1)

    def _copy(self, start: int, end: int) -> None:
        if end > start:
            self._map.append((self._length, start, end - start))
            self.raw(self.source[start:end])

    def _back(self, offset: int) -> int | None:
        at = bisect_right(self._map, (offset, len(self.source), 0)) - 1
        if at < 0:
            return None
        here, there, length = self._map[at]
        return there + offset - here if offset < here + length else None
