"""A program in a JVM of its own, for tests: it reads lines from its standard input, answers on its
standard output, and ends when its input ends."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path


class JavaProgram:
    """A running program. It lives as long as its object, at most as long as this process."""

    def _start(self, command: Sequence[object], errors: Path) -> None:
        """Start the program. ``errors``: the file that gets its standard error."""
        self._errors = errors
        with errors.open("ab") as errors_file:
            self._process = subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors_file,
                encoding="utf-8",
            )  # fmt: skip

    def _send(self, *lines: str) -> None:
        """Give the program lines."""
        for line in lines:
            self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _read_line(self) -> str:
        """Return the program's next line. Fail, with its errors, if it has ended."""
        line = self._process.stdout.readline()
        assert line, f"{type(self).__name__} has ended: {self._last_errors()}"
        return line.rstrip("\n")

    def _read_lines(self) -> Iterator[str]:
        """Yield the program's lines until the caller has enough."""
        while True:
            yield self._read_line()

    def _last_errors(self) -> str:
        return self._errors.read_text()[-3000:]

    def kill(self) -> None:
        """Kill it, as a power cut would."""
        self._process.kill()
        self._process.wait(30)

    def close(self) -> None:
        """End it."""
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
