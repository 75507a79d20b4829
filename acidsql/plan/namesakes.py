"""Tables of one name from several databases: what each is called once it is a stand-in.

A stand-in of ``db.t`` is called ``t``, and ``db.t.c`` becomes ``t.c``. Where the statement has
another relation called ``t``, that could mean the other one: a row of the inner query instead of
one of the outer. There the stand-in is called `` `db.t` ``; so are qualifiers of its columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from acidsql.acid.table import Table
from acidsql.plan.sqltext import Edit
from acidsql.sql.references import Chain, Named, Reference, References
from acidsql.storage.columns import quote

_CATALOG = "spark_catalog"
_OF_ALL = ("*", "row__id")


@dataclass(frozen=True, slots=True)
class Namesakes:
    """The relations of a query, or of an expression, that are called like others.

    Args:
        found: All relations.
        tables: The ACID tables among them, by place.
        taken: Names that are visible around.
    """

    found: References
    tables: Mapping[int, Table]
    taken: Collection[str]

    def alias(self, reference: Reference) -> str | None:
        """What a reference to an ACID table must be called; None: it has a namesake nowhere."""
        if reference.alias is not None or reference.alias_at is None:
            return None
        name = reference.parts[-1].lower()
        times = Counter([named.name for named in self.found.named] + list(self.taken))
        table = self.tables[reference.span.start].name
        return f"{table.database}.{table.name}" if times[name] > 1 else None

    def edits(self) -> Iterator[Edit]:
        """Qualify columns of the tables that are called otherwise with their new names."""
        references = {reference.span.start: reference for reference in self.found.references}
        for chain in self.found.chains:
            meant = self.meant(chain)
            if len(meant) != 1:
                continue  # Spark says that it is ambiguous, or struct.field
            ((named, length),) = meant
            reference, table = references.get(named.at), self.tables.get(named.at)
            alias = self.alias(reference) if reference is not None and table is not None else None
            if alias is not None:
                yield Edit(chain.start, chain.ends[length - 1], quote(alias))

    def hides(self, start: int, name: str) -> bool:
        """Whether a column qualified with this name would, there, be that of a relation in here."""
        blocks = {
            b for c in self.found.chains if c.start == start for b in self.found.around(c.block)
        }
        references = {one.span.start: one for one in self.found.references}
        return any(
            named.name == name
            and named.block in blocks
            and (named.at not in self.tables or self.alias(references[named.at]) is None)
            for named in self.found.named
        )

    def meant(self, chain: Chain) -> list[tuple[Named, int]]:
        """The relations that a chain of names may begin with, each with how many of the names."""
        for block in self.found.around(chain.block):
            here = [
                (named, self._length(named, chain))
                for named in self.found.named
                if named.block == block
            ]
            if any(length for _, length in here):
                return [(named, length) for named, length in here if length]
        return []

    def _length(self, named: Named, chain: Chain) -> int:
        """How many of a chain's names are this relation's; 0: it is another's."""
        fitting = [
            length
            for length in range(1, len(chain.names))
            if self._is_name_of(named, chain.names[:length])
        ]
        if not fitting:
            return 0
        table, column = self.tables.get(named.at), chain.names[fitting[-1]]
        if table is None or column in _OF_ALL:
            return fitting[-1]
        return fitting[-1] if any(c.name == column for c in table.all_columns) else 0

    def _is_name_of(self, named: Named, names: tuple[str, ...]) -> bool:
        references = (one for one in self.found.references if one.span.start == named.at)
        reference = next(references, None)
        if reference is None or reference.alias is not None:
            return names == (named.name,)
        table = self.tables.get(named.at)
        if table is None:
            known = tuple(part.lower() for part in reference.parts)
        else:
            known = (_CATALOG, table.name.database, table.name.name)
        return names == known[len(known) - len(names) :]
