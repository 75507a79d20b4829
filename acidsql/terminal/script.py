"""The statements of a script, a file or a notebook's cell, and where in it one of them failed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from acidsql.errors import AcidSqlError, SqlError, point_at
from acidsql.sql.text.tokens import SqlText, split_statements

# The place in a message of Spark's, and what follows it: the statement with a caret, or a plan.
_SPARK_PLACE = re.compile(
    r";? line (\d+) pos (\d+).*|\s*\(line (\d+), pos (\d+)\)\s*== SQL ==.*", re.S
)
_WORD = re.compile(r"\w*")


@dataclass(frozen=True, slots=True)
class Script:
    """A text of statements with ``;`` between them.

    Attributes:
        text: The statements.
        name: The name of the file that has them, for errors; "" without a file.
    """

    text: str
    name: str = ""

    def statements(self) -> list[ScriptStatement]:
        """Return the statements in their order, without comments around them. Raise SqlSyntaxError
        if the text cannot be cut into tokens."""
        spans = split_statements(self.text)
        return [
            ScriptStatement(self, SqlText(span.slice(self.text)), span.start, number, len(spans))
            for number, span in enumerate(spans, 1)
        ]

    def error_text(self, error: BaseException) -> str:
        """Return the message of an error about the whole text, which could not be cut into
        statements: the file's name and the line come first."""
        is_placed = isinstance(error, SqlError) and error.text == self.text
        line = self.line_of(error.start) if isinstance(error, SqlError) and is_placed else None
        return self.placed_text(str(error), line)

    def line_of(self, offset: int) -> int:
        """Return the number of the line at an offset in the text; the first line is 1."""
        return self.text.count("\n", 0, offset) + 1

    def placed_text(self, message: str, line: int | None, statement: str = "") -> str:
        """Return a message behind what is known of: the file's name, the line, and the
        statement."""
        place = [self.name, "" if line is None else f"line {line}", statement]
        return ": ".join(filter(None, [", ".join(filter(None, place)), message]))


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """One statement of a script.

    Attributes:
        script: The script.
        text: The statement alone.
        start: The offset of its first character in the script.
        number: Its number; the first one is 1.
        count: The number of statements in the script.
    """

    script: Script
    text: str
    start: int
    number: int
    count: int

    def behind(self, length: int) -> ScriptStatement:
        """Return the statement without its first characters, which are none of SQL's."""
        return ScriptStatement(
            self.script, SqlText(self.text[length:]), self.start + length, self.number, self.count
        )

    def error_text(self, error: BaseException) -> str:
        """Return the message of an error of this statement. A caret points into the script's own
        line. Before the message stand the file's name, the line, and the number of the statement.
        If the script has no name, and only this statement, nothing stands before it.

        The line is that of the fault or, if the error does not tell it, that in which the statement
        begins.
        """
        message, place = str(error).strip(), self.start
        if isinstance(error, SqlError) and error.text == self.text:
            place += error.start
            message = self._moved_message(error)
        elif not isinstance(error, AcidSqlError) and (match := _SPARK_PLACE.search(message)):
            line, position = (int(number) for number in match.groups() if number is not None)
            place += sum(map(len, self.text.splitlines(keepends=True)[: line - 1])) + position
            end = place + len(_WORD.match(self.script.text, place)[0])  # type: ignore[index]
            message = f"{message[: match.start()]} {point_at(self.script.text, place, end)}"
        return self.placed_text(message, place)

    def placed_text(self, message: str, place: int | None = None) -> str:
        """Return a message about this statement, with the place as in ``error_text`` before it.
        ``place``: the offset in the script; None: the statement's beginning."""
        if not self.script.name and self.count == 1:
            return message
        line = self.script.line_of(self.start if place is None else place)
        return self.script.placed_text(message, line, f"statement {self.number} of {self.count}")

    def _moved_message(self, error: SqlError) -> str:
        """Return the text of an error whose place is in the statement, with the place in the
        script."""
        shown = point_at(self.script.text, self.start + error.start, self.start + error.end)
        return str(AcidSqlError(
            f"{error.words} {shown}", condition=error.condition, sqlstate=error.sqlstate
        ))  # fmt: skip
