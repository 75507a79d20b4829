"""Makes something once for all processes of the tests, in the folder ``build``."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

BUILD = Path(__file__).resolve().parents[1] / "build"


def made_once(place: Path, make: Callable[[], Path]) -> Path:
    """The file or folder ``place``. If it does not exist, ``make`` makes it elsewhere beside it."""
    place.parent.parent.mkdir(exist_ok=True)
    with Path(f"{place.parent}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be making it
        if not place.exists():
            os.rename(make(), place)
    return place
