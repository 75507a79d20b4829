"""The line between a session and its files and store: every call is counted, and one of them
fails."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, BinaryIO

from sqlalchemy import event

from acidsql.errors import MetastoreError
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.storage.files.filesystem import Entry, FileSystem


class Crash(BaseException):
    """The session has died. It is no Exception, so no code swallows it by accident."""


class Interrupt(BaseException):
    """The user has pressed the stop button: the statement ends, and the session lives on."""


class What(Enum):
    """The kind of fault at the chosen call."""

    CRASH = "the session dies"
    INTERRUPT = "the statement is interrupted"
    ERROR = "the call fails"
    OUTAGE = "the call fails, and so do all later ones of the store, or of the files"
    GONE = "the file system says that there is no such file or directory"
    LATE = "the call fails, and an object store does later what it asked for"


@dataclass
class Line:
    """Passes on all calls of one session to its files and store.

    Attributes:
        at: The number of the call that fails, from 1; 0: none fails.
        what: How it fails.
        lost: The call takes effect, and then its reply is lost.
        in_sql: Count the SQL statements and commits inside the store instead of calls.
        watch: Called before each call and each SQL statement, with the number of calls and the
            name.
        calls: The names of all calls so far.
        late: What an object store will do later.
    """

    at: int = 0
    what: What = What.CRASH
    lost: bool = False
    in_sql: bool = False
    watch: Callable[[int, str], None] | None = None
    calls: list[str] = field(default_factory=list)
    late: list[Callable[[], Any]] = field(default_factory=list)
    dead: bool = False
    # After an outage: "files", or the part of the store that does not answer any more.
    _away: str | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def failed(self) -> str:
        """A description of the failed call, for messages."""
        when = "after" if self.lost else "before"
        if not 0 < self.at <= len(self.calls):
            return f"nowhere: {len(self.calls)} calls"
        return f"{when} call {self.at}, {self.calls[self.at - 1]}"

    def call(self, name: str, do: Callable[[], Any], *, sql: bool = False) -> Any:
        """Make a call, or fail."""
        mine = False
        with self._guard:
            if self.dead:
                raise Crash(f"{name}, but the session is dead")
            if sql == self.in_sql:
                self.calls.append(name)
                mine = len(self.calls) == self.at
        if self.watch is not None:
            self.watch(len(self.calls), name)
        if self._away == _side(name) or (mine and not self.lost):
            if self.what is What.LATE and name.startswith(("copy_file(", "write_file(")):
                self.late.append(do)
            return self._fail(name)
        result = do()
        if mine:
            self._fail(name)
        return result

    def _fail(self, name: str) -> bool:
        """Raise an error. Return False if the call answers False in this case."""
        if self.what is What.CRASH:
            self.dead = True
            raise Crash(name)
        if self.what is What.INTERRUPT:
            raise Interrupt(name)
        if self.what is What.OUTAGE:
            self._away = _side(name)
        if self.what is What.GONE and name.startswith(("exists(", "remove_empty_directory(")):
            return False
        if self.what is What.GONE:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        if name.startswith("store."):
            raise MetastoreError(f"The line was cut at {name}.")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)


def _side(name: str) -> str:
    return name[:4] if name.startswith(("store.", "sql ")) else "files"


class FaultyStore:
    """A metastore behind the line. Every public method is a call."""

    def __init__(self, store: EmbeddedMetastore, line: Line) -> None:
        self._store, self._line = store, line

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not callable(method):
            return method

        def call(*args: Any, **keywords: Any) -> Any:
            return self._line.call(f"store.{name}", lambda: method(*args, **keywords))

        return call

    def close(self) -> None:
        """Does nothing, because the store is used again."""


@contextmanager
def sql_faults(store: EmbeddedMetastore, line: Line) -> Iterator[None]:
    """Make each SQL statement and each COMMIT inside a store a call, too."""
    engine = store._store.engine

    def statement(_connection: Any, _cursor: Any, text: str, *_: Any) -> None:
        line.call(f"sql {text.split(maxsplit=3)[:3]}", lambda: None, sql=True)

    def commit(_connection: Any) -> None:
        line.call("sql COMMIT", lambda: None, sql=True)

    event.listen(engine, "before_cursor_execute", statement)
    event.listen(engine, "commit", commit)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", statement)
        event.remove(engine, "commit", commit)


class FaultyFileSystem(FileSystem):
    """A file system behind the line."""

    def __init__(self, inner: FileSystem, line: Line) -> None:
        self._inner, self._line = inner, line
        self.has_directories = inner.has_directories
        self.can_remove_empty = inner.can_remove_empty

    def _call(self, name: str, *args: Any) -> Any:
        method = getattr(self._inner, name)
        tail = "/".join(str(args[0]).split("/")[-2:])
        return self._line.call(f"{name}({tail})", lambda: method(*args))

    def list(self, path: str) -> list[Entry]:
        return self._call("list", path)

    def exists(self, path: str) -> bool:
        return self._call("exists", path)

    def size(self, path: str) -> int:
        return self._call("size", path)

    def create_directory(self, path: str) -> None:
        self._call("create_directory", path)

    def write_file(self, path: str, data: bytes) -> None:
        self._call("write_file", path, data)

    def open_output(self, path: str) -> BinaryIO:
        return _FaultyFile(self._call("open_output", path), path, self._line)

    def open_input(self, path: str) -> BinaryIO:
        return self._call("open_input", path)

    def copy_file(self, source: str, target: str) -> None:
        tail = "/".join(target.split("/")[-2:])
        self._line.call(f"copy_file({tail})", self._inner.begin_copy(source, target))

    def rename(self, source: str, target: str) -> None:
        self._call("rename", source, target)

    def rename_file(self, source: str, target: str) -> None:
        self._call("rename_file", source, target)

    def delete_directory(self, path: str) -> None:
        self._call("delete_directory", path)

    def delete_file(self, path: str) -> None:
        self._call("delete_file", path)

    def remove_empty_directory(self, path: str) -> bool:
        return self._call("remove_empty_directory", path)

    def sync_directory(self, path: str) -> None:
        self._call("sync_directory", path)


class _FaultyFile:
    """A file that is written. Its writes are calls, and so is its close, which syncs it."""

    def __init__(self, file: BinaryIO, path: str, line: Line) -> None:
        self._file, self._line = file, line
        self._name = path.rpartition("/")[2].split("-")[0]

    def write(self, data: Any) -> int:
        return self._line.call(f"write({self._name})", lambda: self._file.write(data))

    def close(self) -> None:
        self._line.call(f"close({self._name})", self._file.close)

    def __enter__(self) -> _FaultyFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
