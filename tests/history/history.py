"""Histories as plain data: what transactions have appended to lists, and read from lists.

Every value is appended once in a history. So a list shows in which order its appends took effect,
and which of them a reader saw. Such histories of *list-append* are Elle's (Kingsbury and Alvaro,
VLDB 2020).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Key = tuple[str, int]  # a table, and a key in it
Values = tuple[int, ...]

OK, FAIL, INFO = "ok", "fail", "info"  # committed; certainly not committed; unknown


@dataclass(frozen=True)
class Append:
    """A value that was put at the end of a list. The first append makes the list."""

    key: Key
    value: int


@dataclass(frozen=True)
class Read:
    """The lists that were found under a key: one list, or none if there is no such row yet.

    Several lists mean that two transactions have replaced the same row.
    """

    key: Key
    lists: tuple[Values, ...]

    @property
    def values(self) -> Values:
        """The first list; empty if none was found."""
        return self.lists[0] if self.lists else ()


@dataclass(frozen=True)
class Undo:
    """ROLLBACK TO: only this number of the first operations still counts."""

    kept: int


Operation = Append | Read | Undo


@dataclass
class Transaction:
    """What a transaction did.

    Attributes:
        name: The name in messages.
        process: The process that ran it. A process runs one transaction at a time.
        began: The time before its first call, in seconds on a clock that all processes share.
        ended: The time when its outcome was known; None: it was never known.
        outcome: OK, FAIL or INFO.
        operations: The operations in order, also those that were undone.
        why: The text of its last error.
    """

    name: str
    process: str = ""
    began: float = 0.0
    ended: float | None = None
    outcome: str = OK
    operations: list[Operation] = field(default_factory=list)
    why: str = ""


class Log:
    """One process's history: one JSON line for each event, written as it happens.

    An append is written before others can see it. A read or an outcome is written as soon as it is
    known. So a killed process leaves all that others may have seen of it.

    Attributes:
        count: The number of transactions that have begun.
    """

    def __init__(self, path: Path, process: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._process, self.count = process, 0

    def begin(self) -> None:
        """A transaction begins."""
        self.count += 1
        self._write(begin=time.monotonic(), process=self._process)

    def append(self, key: Key, value: int) -> None:
        """A value will be appended."""
        self._write(append=[*key, value])

    def read(self, key: Key, lists: Iterable[Iterable[int]]) -> None:
        """Lists were read under a key."""
        self._write(read=[*key, [list(values) for values in lists]])

    def undo(self, kept: int) -> None:
        """Operations were undone."""
        self._write(undo=kept)

    def commit(self) -> None:
        """From now on the transaction may be committed."""
        self._write(commit=True)

    def end(self, outcome: str, why: str = "") -> None:
        """The outcome is known."""
        self._write(end=time.monotonic(), outcome=outcome, why=why)

    def _write(self, **what: Any) -> None:
        line = json.dumps({"n": self.count, **what}) + "\n"
        os.write(self._file, line.encode())  # one call, so a killed process leaves whole lines


def load(path: Path) -> list[Transaction]:
    """The transactions of one process."""
    found: dict[int, Transaction] = {}
    for line in path.read_text().splitlines():
        said = json.loads(line)
        if "begin" in said:
            name = f"{said['process']}.{said['n']}"
            # A transaction that never came to its COMMIT cannot be committed.
            found[said["n"]] = Transaction(name, said["process"], said["begin"], outcome=FAIL)
        else:
            _add(found[said["n"]], said)
    return list(found.values())


def _add(txn: Transaction, said: dict[str, Any]) -> None:
    if "append" in said:
        table, key, value = said["append"]
        txn.operations.append(Append((table, key), value))
    elif "read" in said:
        table, key, lists = said["read"]
        txn.operations.append(Read((table, key), tuple(tuple(values) for values in lists)))
    elif "undo" in said:
        txn.operations.append(Undo(said["undo"]))
    elif "commit" in said:
        txn.outcome = INFO
    else:
        txn.ended, txn.outcome, txn.why = said["end"], said["outcome"], said["why"]
