"""What a terminal shows: typed into a real one, and drawn line by line with its colours."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pexpect
import pyte
from svg import LINE, Canvas

_HEXADECIMAL = re.compile(r"[0-9a-f]{6}")
Span = tuple[str, str]  # a text, and its classes in the picture
ENTER = "\r"
_COLOURS = {
    "red": "delete", "brightred": "delete", "green": "delta", "brightgreen": "delta",
    "blue": "base", "brightblue": "base", "cyan": "base", "brightcyan": "base",
    "brown": "open", "yellow": "open", "brightyellow": "open", "magenta": "code",
    "brightmagenta": "code", "brightblack": "dim",
}  # fmt: skip


class Terminal:
    """A program in a terminal of its own, and the terminal's screen.

    Args:
        words: The command.
        environment: The environment of the program.
        size: Lines and columns.
    """

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        size: tuple[int, int],
    ) -> None:
        lines, columns = size
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.Stream(self._screen)
        program, *arguments = words
        # The caller's own LINES and COLUMNS would count more than the size.
        own_size = {"LINES": str(lines), "COLUMNS": str(columns)}
        self._program = pexpect.spawn(
            program,
            arguments,
            env={**environment, "TERM": "xterm-256color", **own_size},
            dimensions=size,
            encoding="utf-8",
            timeout=120,
        )

    def type(self, text: str) -> None:
        """Type a text."""
        self._program.send(text)

    def wait_for(self, text: str, seconds: float = 120) -> None:
        """Wait until the screen has a text, and then for half a second. Raise TimeoutError if it
        does not come."""
        end = time.monotonic() + seconds
        while not any(text in line for line in self._screen.display):
            if time.monotonic() > end:
                shown = "\n".join(self._screen.display)
                raise TimeoutError(f"{text!r} does not come:\n{shown}")
            self._read(0.2)
        self._read(0.5)

    def lines(self) -> list[list[Span]]:
        """The lines of the screen, without empty ones at the end."""
        rows = [
            [self._screen.buffer[y][x] for x in range(self._screen.columns)]
            for y in range(self._screen.lines)
        ]
        lines = [_spans(row) for row in rows]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def close(self) -> None:
        """End the program."""
        self._program.close(force=True)

    def _read(self, seconds: float) -> None:
        """Read what the program writes for some seconds. Terminal questions of the program (where
        the cursor is) are answered."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                text = self._program.read_nonblocking(65536, timeout=max(left, 0.01))
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                return
            self._stream.feed(text)
            if "\x1b[6n" in text:
                cursor = self._screen.cursor
                self._program.send(f"\x1b[{cursor.y + 1};{cursor.x + 1}R")


def _spans(row: Sequence[Any]) -> list[Span]:
    """The characters of a row as spans of the same looks, without blanks at the end."""
    spans = []
    for kinds, characters in groupby(row, _classes):
        spans.append(("".join(character.data for character in characters), kinds))
    while spans and not spans[-1][0].strip():
        spans.pop()
    if spans:
        text, kinds = spans.pop()
        spans.append((text.rstrip(), kinds))
    return spans


def _classes(character: Any) -> str:
    """The classes of a character: its colour, and whether it is bold."""
    name = character.fg
    if name == "default":
        colour = "ink"
    else:
        colour = _COLOURS.get(name) or (_nearest(name) if _HEXADECIMAL.fullmatch(name) else "dim")
    return f"{colour} title" if character.bold else colour


def _nearest(digits: str) -> str:
    """The class of a colour that is given as six hexadecimal digits: by its strongest part."""
    red, green, blue = (int(digits[at : at + 2], 16) for at in (0, 2, 4))
    if max(red, green, blue) - min(red, green, blue) < 40:
        return "dim"
    strongest = max((red, "delete"), (green, "delta"), (blue, "base"))
    return strongest[1]


def draw_terminal(lines: Sequence[Sequence[Sequence[str]]], title: str, head: str) -> str:
    """Return the picture of a terminal's window. ``head``: the text on its bar."""
    canvas = Canvas()
    canvas.box(8, 8, canvas.width - 16, 26 + LINE * len(lines) * 0.9 + 18)
    for number, colour in enumerate(("delete", "open", "delta")):
        canvas.circle(24 + 16 * number, 22, 5, colour)
    canvas.text(canvas.width / 2, 26, head, "dim middle")
    for number, spans in enumerate(lines):
        if spans:
            pairs = [(text, kinds) for text, kinds in spans]
            canvas.spans(20, 54 + LINE * 0.9 * number, pairs)
    return canvas.svg(title)
