"""Gives stand-ins distinct aliases if a statement has several relations of the same last name.

Usually the stand-in of ``db.t`` has the alias ``t``, and ``db.t.c`` becomes ``t.c``. If the
statement has another relation with the name ``t``, or an inner query's relation has a struct column
``t``, then ``t.c`` could mean that one. Then the stand-in's alias is `` `db.t` ``, and so are the
qualifiers of its columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from acidsql.acid.table import Table
from acidsql.plan.sqltext import Edit
from acidsql.sql.references import Chain, Named, Reference, References
from acidsql.storage.columns import quote

_CATALOG = "spark_catalog"
_OF_ALL = ("*", "row__id")


@dataclass(frozen=True)
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
        at = reference.span.start
        if not self._has_namesake(reference.parts[-1]) and at not in self._in_full:
            return None
        table = self.tables[at].name
        return f"{table.database}.{table.name}"

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
            if alias is not None and not (length == 1 and self._may_be_a_field(chain, named)):
                yield Edit(chain.start, chain.ends[length - 1], quote(alias))

    def hides(self, start: int, said: tuple[str, str]) -> bool:
        """Whether ``t.c``, instead of ``db.t.c``, would mean another column: one of a relation in
        this query, or a field of a struct in such a relation."""
        chains = [c for c in self.found.chains if c.start == start]
        blocks = {b for c in chains for b in self.found.around(c.block)}
        relations = [named for named in self.found.named if named.block in blocks]
        references = {one.span.start: one for one in self.found.references}
        name, within = said[-1], {named.block for named in relations}
        return any(
            self._has_column(named, name)
            or (
                named.name == name
                and (named.at not in self.tables or self.alias(references[named.at]) is None)
            )
            for named in relations
        ) or any(
            c.names[:2] != said
            and within & {*self.found.around(c.block)}
            and name in c.names[max((length for _, length in self.meant(c)), default=0) :]
            for c in self.found.chains
        )

    @cached_property
    def _times(self) -> Counter[str]:
        return Counter([named.name for named in self.found.named] + list(self.taken))

    def _has_namesake(self, name: str) -> bool:
        return self._times[name.lower()] > 1

    @cached_property
    def _in_full(self) -> frozenset[int]:
        """The places of tables that need an alias because of their columns. Such a column is
        qualified with the database, and either stands in an inner query, or the table itself is
        named without the database."""
        parts = {one.span.start: len(one.parts) for one in self.found.references}
        meant = ((c, *pair) for c in self.found.chains for pair in self.meant(c))
        return frozenset(
            named.at
            for chain, named, length in meant
            if length > 1 and (chain.block != named.block or length > parts.get(named.at, length))
        )

    def _may_be_a_field(self, chain: Chain, named: Named) -> bool:
        """Whether a nearer relation may have a struct of the table's name: Spark decides."""
        if self._has_namesake(chain.names[0]):
            return False
        nearer = set(self.found.around(chain.block)) - set(self.found.around(named.block))
        return any(
            other.at not in self.tables or self._has_column(other, chain.names[0])
            for other in self.found.named
            if other.block in nearer
        )

    def _has_column(self, named: Named, name: str) -> bool:
        table = self.tables.get(named.at)
        return table is not None and any(column.name == name for column in table.all_columns)

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
