"""Refuses INSERT OVERWRITE DIRECTORY with the directory of an ACID table."""

from __future__ import annotations

from acidsql.errors import AcidSqlError, UnsupportedError
from acidsql.metastore.interface import Metastore
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.text.tokens import Token, TokenKind, tokenize
from acidsql.statements.directories.places import Places
from acidsql.storage.files.filesystem import real_location, sparks_location


def refuse_owned_directory(metastore: Metastore, text: str, *, double_quoted: bool) -> None:
    """Refuse INSERT OVERWRITE DIRECTORY into a table's directory, a directory inside of it, or one
    around it. ``text`` may be any statement; others are never refused, nor is a path that cannot be
    resolved.

    A dropped table's directory counts until it is deleted: the cleaner would delete new files.

    Raises:
        UnsupportedError: The directory belongs to a table.
    """
    if (path_token := _path_token(text, double_quoted)) is None:
        return
    try:
        owners = Places(metastore).overlapping_owners(
            real_location(sparks_location(path_token.value))
        )
    except (AcidSqlError, OSError, ValueError):
        return  # no table can have this path; Spark raises the error about it
    for owner in owners:
        raise UnsupportedError(
            f"INSERT OVERWRITE DIRECTORY would delete files of {owner.table}, which has the "
            f"directory '{owner.location}'. Choose another directory.",
            text, path_token.start, path_token.end,
            condition="UNSUPPORTED_FEATURE.OVERWRITE_DIRECTORY",
        )  # fmt: skip


def _path_token(text: str, double_quoted: bool) -> Token | None:
    """Return the token of the path in ``[WITH …] INSERT OVERWRITE [LOCAL] DIRECTORY 'path'``, or in
    ``… OPTIONS (path [=] 'path')``. None: the text is another statement, or has no path."""
    if "directory" not in text.lower():
        return None
    cursor = Cursor(text, tokenize(text, double_quoted_identifiers=double_quoted))
    if cursor.is_at("WITH"):
        cursor.skip_ctes()
    if not cursor.accept("INSERT", "OVERWRITE"):
        return None
    cursor.accept("LOCAL")
    if not cursor.accept("DIRECTORY"):
        return None
    if cursor.token.kind is TokenKind.STRING:
        return cursor.token
    cursor.skip_to(("OPTIONS", "("), ("SELECT",))
    is_path_next = False
    for token in cursor.tokens[cursor.index :]:
        if token.kind is TokenKind.STRING and is_path_next:
            return token
        is_path_next = token.value.lower() == "path" or (is_path_next and token.text == "=")
        if token.upper == "SELECT":
            break
    return None
