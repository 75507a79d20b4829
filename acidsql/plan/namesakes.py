"""Gives stand-ins distinct aliases if a statement has several relations of the same last name.

Usually the stand-in of ``db.t`` has the alias ``t``, and ``db.t.c`` becomes ``t.c``. If the
statement has another relation with the name ``t``, ``t.c`` could mean that relation, for example
in a subquery. Then the stand-in's alias is `` `db.t` ``, and so are the qualifiers of its columns.
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
    """The relations of a query or expression, and which of them share a name.

    Args:
        found: All relations.
        tables: The ACID tables among the relations, by the place of their names in the text.
        taken: The names of relations outside of the query that are visible in it.
    """

    found: References
    tables: Mapping[int, Table]
    taken: Collection[str]

    def alias(self, reference: Reference) -> str | None:
        """The alias that a reference to an ACID table needs; None if its name is unique."""
        if reference.alias is not None or reference.alias_at is None:
            return None
        name = reference.parts[-1].lower()
        times = Counter([named.name for named in self.found.named] + list(self.taken))
        table = self.tables[reference.span.start].name
        return f"{table.database}.{table.name}" if times[name] > 1 else None

    def edits(self) -> Iterator[Edit]:
        """The edits that put the new aliases before the columns of the tables that need them."""
        references = {reference.span.start: reference for reference in self.found.references}
        for chain in self.found.chains:
            meant = self.meant(chain)
            if len(meant) != 1:
                continue  # ambiguous, as Spark will say, or a field of a struct
            ((named, length),) = meant
            reference, table = references.get(named.at), self.tables.get(named.at)
            alias = self.alias(reference) if reference is not None and table is not None else None
            if alias is not None:
                yield Edit(chain.start, chain.ends[length - 1], quote(alias))

    def hides(self, start: int, name: str) -> bool:
        """Whether ``name.column`` at ``start`` would mean a relation of this query.

        This relation then hides the one outside of the query that the user means.
        """
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
        """The relations that can be the qualifier of a chain, each with its number of names."""
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
        """How many names of the chain are the relation's name; 0 if the relation is not meant."""
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
