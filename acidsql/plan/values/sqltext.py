"""Composed Spark SQL with a map back to the user's text.

The user's expressions are copied verbatim. Each copy is in brackets, so that it cannot become part
of our text (``WHERE id = 1 LIMIT 1`` fails at LIMIT). A new line before the closing bracket ends a
comment in the copy. The map turns an offset in the composed text, as in Spark's errors, into a
place in the user's text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from acidsql.sql.text.tokens import Span


@dataclass(frozen=True, slots=True)
class Edit:
    """A slice of the user's text that is replaced in every copy."""

    start: int
    end: int
    replacement: str


def _outermost_edits(edits: Iterable[Edit]) -> list[Edit]:
    """Return the edits that do not begin inside of another edit, in the order of the text; of those
    that begin at one place the longest."""
    outermost: list[Edit] = []
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        if not outermost or edit.start >= outermost[-1].end:
            outermost.append(edit)
    return outermost


class Text:
    """Text under construction.

    Args:
        source: The user's statement.
        edits: The replacements in copies of the statement. An edit inside of another edit is left
            out: a ``?`` in an argument of ``table_changes`` disappears together with the call.
    """

    def __init__(self, source: str, edits: Iterable[Edit] = ()) -> None:
        self.source = source
        self._edits = _outermost_edits(edits)
        self._parts: list[str] = []
        self._length = 0
        self._map: list[tuple[int, int, int]] = []  # offset here, offset in source, length

    def raw(self, sql: str) -> Text:
        """Append SQL of our own. Return this text."""
        self._parts.append(sql)
        self._length += len(sql)
        return self

    def user(self, span: Span) -> Text:
        """Append a slice of the user's text in brackets, with the edits applied. Return this
        text."""
        return self.raw("(").verbatim(span).raw("\n)")

    def verbatim(self, span: Span) -> Text:
        """Append a slice of the user's text without brackets, with those edits applied that lie in
        the slice as a whole. Return this text."""
        copied_to = span.start
        for edit in self._edits:
            if span.start <= edit.start and edit.end <= span.end:
                self._copy(copied_to, edit.start)
                self.raw(edit.replacement)
                copied_to = edit.end
        self._copy(copied_to, span.end)
        return self

    def commas(self, parts: Sequence[Text | str]) -> Text:
        """Append parts with commas between them. Return this text."""
        for number, part in enumerate(parts):
            self.raw(",\n  " if number else "  ")
            self.add(part)
        return self

    def add(self, part: Text | str) -> Text:
        """Append SQL of our own, or a ``Text`` together with its map. Return this text."""
        if isinstance(part, str):
            return self.raw(part)
        shift = self._length
        self._map += [
            (copy_start + shift, source_start, length)
            for copy_start, source_start, length in part._map
        ]
        return self.raw(part.sql)

    def new(self, ctes: Span | None = None) -> Text:
        """Return a text over the same source and edits: empty, or with a leading WITH clause."""
        text = Text(self.source, self._edits)
        return text if ctes is None else text.verbatim(ctes).raw("\n")

    def without_tokens(self) -> Text:
        """Return a copy of this text, for ``sql`` and ``place``, that keeps no tokens of the user's
        text: they take fifty times as much memory as the text."""
        text = Text(str(self.source)).raw(self.sql)
        text._map = [*self._map]
        return text

    @property
    def sql(self) -> str:
        """The composed text."""
        return "".join(self._parts)

    def place(self, start: int, stop: int) -> Span | None:
        """Return the place in the user's text of the offsets ``start..stop`` (stop included) here;
        only the first character if ``stop`` is in SQL of our own.

        If ``start`` is in SQL of our own, the result is the place of the only copy of the user's
        text between the offsets. None if there is no copy, or more than one.
        """
        offsets = [self._source_offset(start), self._source_offset(stop)]
        if offsets[0] is None:
            copies = [
                Span(source_start, source_start + length)
                for copy_start, source_start, length in self._map
                if start <= copy_start and copy_start + length <= stop + 1
            ]
            return copies[0] if len(copies) == 1 else None
        end = offsets[1] if offsets[1] is not None else offsets[0]
        return Span(offsets[0], max(end, offsets[0]) + 1)

    def offset_near(self, offset: int) -> int:
        """Return the offset in the user's text of an offset here; if that is in SQL of our own, the
        offset behind the last copy of the user's text before it, or 0 if there is none."""
        if (source_offset := self._source_offset(offset)) is not None:
            return source_offset
        index = bisect_right(self._map, (offset, len(self.source), 0)) - 1
        if index < 0:
            return 0
        _, source_start, length = self._map[index]
        return source_start + length

    def _copy(self, start: int, end: int) -> None:
        """Append the user's text from ``start`` to ``end`` as it is, and note the copy in the
        map."""
        if end > start:
            self._map.append((self._length, start, end - start))
            self.raw(self.source[start:end])

    def _source_offset(self, offset: int) -> int | None:
        """Return the offset in the user's text of an offset here; None if it is in SQL of our
        own."""
        index = bisect_right(self._map, (offset, len(self.source), 0)) - 1
        if index < 0:
            return None
        copy_start, source_start, length = self._map[index]
        return source_start + offset - copy_start if offset < copy_start + length else None
