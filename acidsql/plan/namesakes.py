"""Gives stand-ins distinct aliases if a statement has several relations of the same last name.

Usually the stand-in of ``db.t`` has the alias ``t``, and ``db.t.c`` becomes ``t.c``. If the
statement has another relation with the name ``t``, or an inner query's relation has a struct column
``t``, then ``t.c`` could mean that one. Then the stand-in's alias is `` `db.t` ``, and so are the
qualifiers of its columns. What columns other relations have is not known here. So a statement is
refused in which that could make another column of ``t.c`` than Spark would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from acidsql.acid.table import Table
from acidsql.acid.virtual_columns import TYPES
from acidsql.errors import AnalysisError, SqlError, UnsupportedError
from acidsql.plan.sqltext import Edit
from acidsql.sql.references import Chain, Named, Reference, References
from acidsql.sql.tokens import Span
from acidsql.storage.columns import quote
from acidsql.storage.spark.jvm import OWN_CATALOG

_OF_ALL = ("*", *TYPES)


@dataclass(frozen=True)
class Namesakes:
    """The relations of a query or expression, and which of them share a name.

    Args:
        text: The user's statement.
        found: All relations.
        tables: The ACID tables among the relations, by the place of their names in the text.
        taken: The names of relations outside of the query that are visible in it.
    """

    text: str
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
        return str(self.tables[at].name)

    def edits(self) -> Iterator[Edit]:
        """The edits that put the new aliases before the columns of the tables that need them.

        Raises:
            AnalysisError: AMBIGUOUS_REFERENCE: tables of one name have the column, all of them.
            UnsupportedError: Only Spark knows what a column means, and Spark is not told.
        """
        for chain in self.found.chains:
            nearer: list[int] = []
            for block in self.found.around(chain.block):
                here = self._meant_in(block, chain)
                renamed = [(alias, n) for one, n in here if (alias := self._new_alias(one))]
                if len(here) > 1 and renamed:
                    raise self._ambiguous(chain, here)
                for alias, length in renamed:
                    # Spark decides between a relation, or a field of one, nearby and this table.
                    if not any(self._may_mean(one, chain, length) for one in nearer):
                        yield Edit(chain.start, chain.ends[length - 1], quote(alias))
                    elif self._may_mean_more(block, chain, length):
                        raise hidden(self.text, Span(chain.start, chain.ends[-1]))
                if here and all(one.at in self.tables for one, _ in here):
                    break
                nearer.append(block)

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

    def _new_alias(self, named: Named) -> str | None:
        references = (one for one in self.found.references if one.span.start == named.at)
        reference = next(references, None)
        return self.alias(reference) if reference and named.at in self.tables else None

    def _ambiguous(self, chain: Chain, here: Collection[tuple[Named, int]]) -> SqlError:
        place = Span(chain.start, chain.ends[-1])
        if any(one.at not in self.tables for one, _ in here):
            return hidden(self.text, place)
        return AnalysisError(
            f"{place.of(self.text)} is ambiguous: several tables of that name have this column.",
            self.text, place.start, place.end,
            condition="AMBIGUOUS_REFERENCE", sqlstate="42704",
        )  # fmt: skip

    def _may_mean(self, block: int, chain: Chain, length: int) -> bool:
        """Whether Spark may take a chain for a column of one of the block's relations, or a field.

        Foreign relations may have any column. Only a struct that is called like the database, with
        a struct in it that is called like the table, is not reckoned with.
        """
        meant = any(self._new_alias(one) is None for one, _ in self._meant_in(block, chain))
        return meant or any(
            self._has_column(named, chain.names[0])
            or (length == 1 and named.at not in self.tables and not named.is_value)
            for named in self.found.named
            if named.block == block
        )

    def _may_mean_more(self, block: int, chain: Chain, length: int) -> bool:
        """Whether a chain that is left as it is may mean something else from this block on."""
        outer = self.found.around(block)
        return chain.names[0] in self.taken or any(
            self._may_mean(one, chain, length) for one in outer
        )

    def _has_column(self, named: Named, name: str) -> bool:
        table = self.tables.get(named.at)
        return table is not None and any(column.name == name for column in table.all_columns)

    def meant(self, chain: Chain) -> list[tuple[Named, int]]:
        """The relations that can be the qualifier of a chain, each with its number of names."""
        blocks = (self._meant_in(block, chain) for block in self.found.around(chain.block))
        return next(filter(None, blocks), [])

    def _meant_in(self, block: int, chain: Chain) -> list[tuple[Named, int]]:
        of_block = (named for named in self.found.named if named.block == block)
        return [(named, n) for named in of_block if (n := self._length(named, chain))]

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
            known = (OWN_CATALOG, table.name.database, table.name.shown)
        return names == known[len(known) - len(names) :]


def hidden(text: str, place: Span) -> UnsupportedError:
    """The error about a name that is also the name of another relation, or of a struct."""
    name = place.of(text)
    return UnsupportedError(
        f"Another relation, or a struct, here has the same last name as the table of {name}. Give "
        "the table an alias, and qualify its columns with the alias.",
        text, place.start, place.end,
        condition="UNSUPPORTED_FEATURE.AMBIGUOUS_TABLE_NAME",
    )  # fmt: skip
