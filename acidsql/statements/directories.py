"""Refuses INSERT OVERWRITE DIRECTORY if the directory is that of an ACID table."""

from __future__ import annotations

from acidsql.errors import AcidSqlError, UnsupportedError
from acidsql.metastore.interface import Metastore
from acidsql.sql.cursor import Cursor
from acidsql.sql.tokens import Kind, Token, tokenize
from acidsql.statements.places import Places
from acidsql.storage.files.filesystem import real


def refuse_owned_directory(metastore: Metastore, text: str, *, double_quoted: bool) -> None:
    """Refuse to let Spark overwrite a table's directory, one inside of it, or one around it.

    A dropped table's directory counts until it is deleted: the cleaner would delete the new files.

    Raises:
        UnsupportedError: The directory belongs to a table.
    """
    if (place := _overwritten(text, double_quoted)) is None:
        return
    try:
        owners = Places(metastore).overlapping_owners(real(place.value))
    except (AcidSqlError, OSError, ValueError):
        return  # no table can be there; Spark says what is wrong with the path
    for owner in owners:
        raise UnsupportedError(
            f"INSERT OVERWRITE DIRECTORY would delete files of {owner.table}, which has the "
            f"directory '{owner.location}'. Choose another directory.",
            text, place.start, place.end,
            condition="UNSUPPORTED_FEATURE.OVERWRITE_DIRECTORY",
        )  # fmt: skip


def _overwritten(text: str, double_quoted: bool) -> Token | None:
    """The path of ``INSERT OVERWRITE [LOCAL] DIRECTORY 'path'`` or ``… OPTIONS (path 'path')``."""
    if "directory" not in text.lower():
        return None
    c = Cursor(text, tokenize(text, double_quoted_identifiers=double_quoted))
    if c.is_at("WITH"):
        c.skip_ctes()
    if not c.accept("INSERT", "OVERWRITE"):
        return None
    c.accept("LOCAL")
    if not c.accept("DIRECTORY"):
        return None
    if c.token.kind is Kind.STRING:
        return c.token
    c.skip_to(("OPTIONS", "("), ("SELECT",))
    behind_path = False
    for token in c.tokens[c.index :]:
        if token.kind is Kind.STRING and behind_path:
            return token
        behind_path = token.value.lower() == "path" or (behind_path and token.text == "=")
        if token.upper == "SELECT":
            break
    return None
