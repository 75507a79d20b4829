"""Writes numbers of bytes for a person to read."""

from __future__ import annotations


def size_text(number: int) -> str:
    """Return a number of bytes as short text: ``999 B``, ``1.5 MB``, ``15 MB``. A number below 10
    has one decimal, except bytes. A kB is 1000 bytes; the largest unit is GB.
    """
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("unreachable")
