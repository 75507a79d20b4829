"""What a path is: its file system, its one normal form, what lies in what, and safe names.

Paths are texts here, plain or with the scheme of their file system, as a metastore has them.
Nothing in them is unescaped, as in the text of Hadoop's ``Path``. Links are the business of
``storage.local_files.real``, by which a location enters; afterwards texts can be compared.
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple
from urllib.parse import unquote

from acidsql.acid.layout import is_hidden, parse_directory
from acidsql.errors import FormatError

# What both take: Hive's ``MetaStoreUtils.validateName`` and Spark's ``SessionCatalog``.
_NAME = re.compile(r"[A-Za-z0-9_]{1,128}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")  # a lone surrogate is in no file's name
_PART_MAX, _PATH_MAX = 255, 3000  # bytes; partitions and files come below
_PORT = {"hdfs": "8020"}
_ODD = "table_"


class _Place(NamedTuple):
    scheme: str  # "" for this machine's files
    host: str
    port: str
    path: str


def scheme_and_root(location: str) -> tuple[str, str]:
    """``hdfs`` and ``hdfs://name:8020`` of a location; both empty for a plain path."""
    head, colon, rest = location.partition(":")
    if not colon or "/" in head or not head.isascii() or not head[:1].isalpha():
        return "", ""
    authority = rest[2:].split("/", 1)[0] if rest.startswith("//") else ""
    return head.lower(), f"{head}://{authority}" if authority else ""


def is_local(location: str) -> bool:
    """True for a file of this machine, ``file:`` or plain."""
    return scheme_and_root(location)[0] in ("", "file")


def plain_path(path: str) -> str:
    """A path of this machine without its ``file:``. Raises FormatError for another host's."""
    if path[:5].lower() != "file:":
        return path
    rest = path[len("file:") :]
    if rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        if authority not in ("", "localhost"):
            raise FormatError(f"'{path}' is on another host, '{authority}'", path=path)
        rest = slash + rest
    return rest


def local_path_of(uri: str) -> str:
    """The path behind a properly escaped ``file:`` URI, as Spark's ``_metadata.file_path`` is.

    Spark escapes there (``%20``), while locations in a metastore are not escaped.
    """
    return unquote(plain_path(uri))


def directory_of(path: str) -> str:
    """What a file or directory lies in."""
    return path.rpartition("/")[0] or "/"


# ── comparing ────────────────────────────────────────────────────────────────────────────────


def normal(location: str) -> str:
    """The one way to write a path: no ``..``, no ``//``, no ``/`` at the end."""
    scheme, root = scheme_and_root(location)
    if scheme == "file":
        root = ""
    return f"{root or (scheme and f'{scheme}:')}{_place(location).path}"


def is_same(one: str, other: str) -> bool:
    """Whether two paths are one, for certain."""
    return _place(one) == _place(other)


def is_within(path: str, directory: str) -> bool:
    """Whether a path is a directory, or lies below it, for certain."""
    inner, outer = _place(path), _place(directory)
    return inner[:3] == outer[:3] and _holds(outer.path, inner.path)


def may_be_within(path: str, directory: str) -> bool:
    """The same where it cannot be ruled out: who names no host may mean any."""
    inner, outer = _place(path), _place(directory)
    is_one_root = inner[1:3] == outer[1:3] or not (inner.host and outer.host)
    return inner.scheme == outer.scheme and is_one_root and _holds(outer.path, inner.path)


def overlap(one: str, other: str) -> bool:
    """Whether of two paths one may lie in the other."""
    return may_be_within(one, other) or may_be_within(other, one)


def _place(location: str) -> _Place:
    scheme, root = scheme_and_root(location)
    authority = root.partition("://")[2]
    rest = location[len(scheme) + 1 :] if scheme else location
    if scheme and rest.startswith("//"):
        rest = rest[2 + len(authority) :] or "/"
    path = posixpath.normpath(rest)
    if path.startswith("//"):  # POSIX lets two of them mean something else; Linux does not
        path = path[1:]
    host, _, port = authority.lower().partition(":")
    if scheme == "file":
        scheme, host = "", "" if host == "localhost" else host
    return _Place(scheme, host, (port or _PORT.get(scheme, "")) if host else "", path)


def _holds(outer: str, inner: str) -> bool:
    return f"{inner}/".startswith(f"{outer.rstrip('/')}/")


# ── what may be a table's ────────────────────────────────────────────────────────────────────


def why_no_place(location: str) -> str | None:
    """What keeps a path from being a table's or a database's directory; None: nothing does."""
    path = _place(location).path
    if _CONTROL.search(location):
        return "there are control characters in it"
    if not path.startswith("/"):
        return "it does not begin with '/' or the name of its file system"
    if path == "/":
        return "it is a whole file system"
    if max(len(part.encode()) for part in path.split("/")) > _PART_MAX:
        return f"a name in it is longer than {_PART_MAX} bytes"
    return "it is too long" if len(location.encode()) > _PATH_MAX else None


def is_name(name: str) -> bool:
    """True for what Hive and Spark both take as the name of a table or database."""
    return _NAME.fullmatch(name) is not None


def directory_name(name: str) -> str:
    """What the directory of a table of that name is called: nothing that is hidden, or could be
    taken for an ACID directory."""
    is_odd = is_hidden(name) or parse_directory(name) is not None
    return f"{_ODD}{name}" if is_odd else name


def names_of_directory(directory: str) -> list[str]:
    """The tables whose directory would be called so."""
    names = (directory, directory.removeprefix(_ODD))
    return [name for name in dict.fromkeys(names) if directory_name(name) == directory]
