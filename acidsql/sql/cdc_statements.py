"""The parsed statement AUTO CDC. Import it from ``statements``."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.sql.parts import Name
from acidsql.sql.tokens import Span


@dataclass(frozen=True, slots=True)
class AutoCdc:
    """``AUTO CDC INTO t FROM source [alias] KEYS (…) …``, also spelt ``APPLY CHANGES INTO``.

    ``source`` spans the relation without its alias. ``source_alias`` is the qualifier of the
    source's columns: the alias, or the last part of a table's name; None for a query without an
    alias. ``source_name`` is the name of the source, if the source is a table or view.
    ``keys``, ``delete_when``, ``sequence_by`` and ``columns`` are None if the clause is missing.
    ``all_but`` is true for ``COLUMNS * EXCEPT (…)``: then ``columns`` are those that are left out.
    """

    target: Name
    source: Span
    source_alias: str | None
    source_name: Name | None
    keys: tuple[Name, ...] | None
    delete_when: Span | None
    sequence_by: Span | None
    columns: tuple[Name, ...] | None
    all_but: bool = False
