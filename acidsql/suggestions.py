"""Names that a misspelt name may mean, for the messages of errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_SHOWN = 3  # names in a message
_FEW = 8  # so many names are all shown


def similar_names(name: str, names: Iterable[str], limit: int = _SHOWN) -> list[str]:
    """Return the names that are like a name, whatever the case, the most similar first, at most
    ``limit``. [] if none is."""
    return _closest(name, names, limit, 0.6)


def names_question(name: str, names: Iterable[str]) -> str:
    """Return a question, with a blank before it, that tells the similar names of ``similar_names``;
    "" if there are none."""
    similar = similar_names(name, names)
    return f" Did you mean {' or '.join(map(_quoted, similar))}?" if similar else ""


def names_sentence(
    name: str, names: Sequence[str], kind: str = "columns", owner: str | None = None
) -> str:
    """Return a sentence about the names that a misspelt name may mean: all of them if they are few,
    otherwise how many there are, and the nearest three. "" if there are no names.

    Args:
        name: The misspelt name.
        names: The right names.
        kind: What has these names, in the plural.
        owner: What has them: ``the table``. None: the thing that was named before.
    """
    if not names:
        return ""
    possessive = "its" if owner is None else f"{owner}'s"
    if len(names) > _FEW:
        nearest = _closest(name, names, _SHOWN, 0.0)
        return f"The nearest of {possessive} {len(names)} {kind} are {_listed(nearest)}."
    start = possessive[0].upper() + possessive[1:]
    if len(names) == 1:
        return f"{start} only {kind.removesuffix('s')} is {_listed(names)}."
    return f"{start} {kind} are {_listed(names)}."


def _closest(name: str, names: Iterable[str], limit: int, cutoff: float) -> list[str]:
    """Return the names whose similarity to a name is at least ``cutoff``, whatever the case, the
    most similar first, at most ``limit``."""
    names_by_lower = {existing.lower(): existing for existing in sorted(names)}
    close = get_close_matches(name.lower(), names_by_lower, limit, cutoff)
    return [names_by_lower[lower] for lower in close]


def _listed(names: Iterable[str]) -> str:
    """Return names in back quotes, with commas between them."""
    return ", ".join(map(_quoted, names))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
