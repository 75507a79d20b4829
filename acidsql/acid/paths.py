"""Rules about paths: file systems, the normal form, which path is inside of which, safe names.

A path here is a text, plain or with the scheme of a file system, as a metastore stores it. As in
the text of Hadoop's ``Path``, nothing is escaped: all characters stand for themselves. This module
does not know links. ``storage.files.filesystem.real_location`` resolves them before a location is
stored, so stored locations can be compared as texts.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import unicodedata
from typing import NamedTuple
from urllib.parse import quote, unquote

from acidsql.acid.layout import is_hidden, parse_directory
from acidsql.errors import FormatError

# Names that both Hive (``MetaStoreUtils.validateName``) and Spark (``SessionCatalog``) accept.
_NAME = re.compile(r"[A-Za-z0-9_]{1,128}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")  # a lone surrogate is in no file's name
_PART_MAX, _PATH_MAX = 255, 3000  # bytes; the paths of partitions and files are longer still
_PLAIN_IN_URL = "/_-!.~'()*:@&=+$,;"
_PORT = {"hdfs": "8020"}
S3_SCHEMES = ("s3a", "s3", "s3n")  # names of the same place; Hadoop has forgotten the last two
_ODD = "table_"


class _ParsedLocation(NamedTuple):
    scheme: str  # "" for this machine's files
    host: str
    port: str
    path: str


def scheme_and_root(location: str) -> tuple[str, str]:
    """Return the scheme in lower case, and the root, of a location, as ``hdfs`` and
    ``hdfs://name:8020``. Letters of the root keep their case.

    Both are "" for a plain path. A location has a scheme if there is no ``/`` before its first
    ``:``, only ASCII, and a letter first. The root is "" if the location names no host, as
    ``file:/a`` and ``hdfs:///a``.
    """
    head, colon, rest = location.partition(":")
    if not colon or "/" in head or not head.isascii() or not head[:1].isalpha():
        return "", ""
    authority = rest[2:].split("/", 1)[0] if rest.startswith("//") else ""
    return head.lower(), f"{head}://{authority}" if authority else ""


def is_local(location: str) -> bool:
    """True for a path on this machine: a plain path, or one with ``file:``."""
    return scheme_and_root(location)[0] in ("", "file")


def plain_path(path: str) -> str:
    """Return a local path without ``file:`` (in any case) and ``localhost``; any other path as it
    is. Nothing is unescaped. Raises FormatError if ``file:`` names another host."""
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
    """Return the path of an escaped ``file:`` URI, for example of Spark's ``_metadata.file_path``:
    without ``file:``, and ``%20`` as a blank. Raises FormatError if the URI names another host."""
    return unquote(plain_path(uri))


def url_of(path: str) -> str:
    """Return the URL of a file, escaped like Java's ``URI``, as Spark's ``input_file_name()`` shows
    it: ``file:///a%20b`` for ``/a b``. Any other scheme and host stay as they are, and only what
    follows them is escaped. A ``%`` becomes ``%25``.

    Raises:
        FormatError: ``file:`` names another host.
    """
    if is_local(path):
        return "file://" + "".join(map(_escape_in_url, plain_path(path)))
    scheme, root = scheme_and_root(path)
    head = root or f"{scheme}:"
    return head + "".join(map(_escape_in_url, path[len(head) :]))


def _escape_in_url(character: str) -> str:
    """Return a character as Java's ``URI`` writes it. ASCII letters and digits stay, and a part of
    the punctuation (``_PLAIN_IN_URL``). Of other characters all stay but blanks, line ends and
    control characters. The rest becomes %XX, once for each byte of UTF-8."""
    if character.isascii():
        is_plain = character.isalnum() or character in _PLAIN_IN_URL
    else:
        is_plain = unicodedata.category(character) not in ("Cc", "Zl", "Zp", "Zs")
    return character if is_plain else quote(character)


def directory_of(path: str) -> str:
    """Return the path of the directory that a file or directory is in: all before the last ``/``,
    or with this ``/`` if nothing or only a scheme is there (``/``, ``file:/``)."""
    directory = path.rpartition("/")[0]
    return f"{directory}/" if directory.endswith(":") or not directory else directory


# ── comparing ────────────────────────────────────────────────────────────────────────────────


def normal(location: str) -> str:
    """Return the normal form of a path: ``.`` and ``..`` are resolved, ``//`` is ``/``, and a ``/``
    at the end is removed, but not that of a whole file system. ``file:`` stays and loses its host,
    whichever it is: ``file:/a``. Any other scheme and host stay as they are; a scheme without a
    host becomes ``hdfs:/a``, in lower case."""
    scheme, root = scheme_and_root(location)
    if scheme == "file":
        root = ""
    return f"{root or (scheme and f'{scheme}:')}{_parse_location(location).path}"


def is_same(path: str, other_path: str) -> bool:
    """Whether two paths are certainly the same."""
    return _parse_location(path) == _parse_location(other_path)


def is_within(path: str, directory: str) -> bool:
    """Whether a path certainly is the directory, or is inside of it: scheme, host and port are the
    same, as ``_parse_location`` compares them."""
    inner, outer = _parse_location(path), _parse_location(directory)
    return inner[:3] == outer[:3] and _is_path_within(outer.path, inner.path)


def may_be_within(path: str, directory: str) -> bool:
    """Whether a path may be the directory, or be inside of it. A path that names no host may be on
    any host of its scheme; two schemes have nothing in common."""
    inner, outer = _parse_location(path), _parse_location(directory)
    is_one_root = inner[1:3] == outer[1:3] or not (inner.host and outer.host)
    return inner.scheme == outer.scheme and is_one_root and _is_path_within(outer.path, inner.path)


def overlap(path: str, other_path: str) -> bool:
    """Whether one of two paths may be the other, or be inside of the other."""
    return may_be_within(path, other_path) or may_be_within(other_path, path)


def _parse_location(location: str) -> _ParsedLocation:
    """Split a location into parts that can be compared: the scheme in lower case, with one name
    (``s3a``) for all schemes of S3; the host in lower case; the port, which is 8020 if HDFS names a
    host without one; and the path without ``.``, ``..`` and ``//``.

    This machine's files have neither scheme nor host. A ``file:`` with another host than localhost
    loses its scheme and keeps its host.
    """
    scheme, root = scheme_and_root(location)
    authority = root.partition("://")[2]
    rest = location[len(scheme) + 1 :] if scheme else location
    if scheme and rest.startswith("//"):
        rest = rest[2 + len(authority) :] or "/"
    path = posixpath.normpath(rest)
    if path.startswith("//"):  # ``normpath`` keeps two slashes; on Linux they mean the same as one
        path = path[1:]
    host, _, port = authority.lower().partition(":")
    if scheme == "file":
        scheme, host = "", "" if host == "localhost" else host
    scheme = S3_SCHEMES[0] if scheme in S3_SCHEMES else scheme
    return _ParsedLocation(scheme, host, (port or _PORT.get(scheme, "")) if host else "", path)


def _is_path_within(outer: str, inner: str) -> bool:
    return f"{inner}/".startswith(f"{outer.rstrip('/')}/")


def short_name(path: str) -> str:
    """Return a name of at most 113 characters for a path: its last 80 characters, ``#``, and the
    MD5 of the whole."""
    digest = hashlib.md5(path.encode(), usedforsecurity=False).hexdigest()
    return f"{path[-80:]}#{digest}"


# ── locations and names of tables ────────────────────────────────────────────────────────────


def why_no_place(location: str) -> str | None:
    """Return the reason, as the end of a sentence, why a path cannot be the directory of a table or
    database; None if it can. Refused are control characters and lone surrogates, relative paths,
    ``/`` itself, names of more than 255 bytes, and locations of more than 3000 bytes."""
    path = _parse_location(location).path
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
    """Whether Hive and Spark both accept the name for a table or database."""
    return _NAME.fullmatch(name) is not None


def directory_name(name: str) -> str:
    """Return the directory name for a table: the table's name, with ``table_`` before it if it
    would be the name of a hidden file or of an ACID directory."""
    is_odd = is_hidden(name) or parse_directory(name) is not None
    return f"{_ODD}{name}" if is_odd else name
