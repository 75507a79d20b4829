"""The parsed statement AUTO CDC. Import it from ``statements``."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.sql.parsed.parts import Name
from acidsql.sql.text.tokens import Span


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of columns: ``(a, b)`` or, if ``all_but`` is true, ``* EXCEPT (a, b)``."""

    names: tuple[Name, ...]
    all_but: bool = False


EVERY = Choice((), all_but=True)


@dataclass(frozen=True, slots=True)
class AutoCdc:
    """``AUTO CDC INTO t FROM source [alias] KEYS (…) …``, also spelt ``APPLY CHANGES INTO``.

    ``source`` spans the relation without its alias. ``source_alias`` is the qualifier of the
    source's columns: the alias, or the last part of a table's name; None for a query without an
    alias. ``source_name`` is the name of the source, if the source is a table or view.
    The clauses are None if they are missing. ``ignore_nulls`` are the columns of IGNORE NULL
    UPDATES, which without ON are all. ``track_history`` are the columns of TRACK HISTORY ON.
    """

    target: Name
    source: Span
    source_alias: str | None
    source_name: Name | None
    keys: tuple[Name, ...] | None
    ignore_nulls: Choice | None
    delete_when: Span | None
    truncate_when: Span | None
    sequence_by: Span | None
    columns: Choice | None
    scd_type: int = 1
    track_history: Choice | None = None
