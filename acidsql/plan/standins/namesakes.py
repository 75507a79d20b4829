"""Gives stand-ins distinct aliases if a statement has several relations of the same last name.

Usually the stand-in of ``db.t``, the view that takes its place, has the alias ``t``, and ``db.t.c``
becomes ``t.c``. If the statement has another relation with the name ``t``, or an inner query's
relation has a struct column ``t``, then ``t.c`` could mean that one. Then the stand-in's alias is
`` `db.t` ``, and so are the qualifiers of its columns. What columns other relations have is not
known here. So a statement is refused in which that could make another column of ``t.c`` than Spark
would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from acidsql.acid.table import Table
from acidsql.acid.virtual_columns import TYPES
from acidsql.errors import AnalysisError, SqlError, UnsupportedError
from acidsql.plan.values.sqltext import Edit
from acidsql.sql.queries.references import Chain, Qualifier, Reference, References
from acidsql.sql.text.tokens import Span
from acidsql.storage.columns import quote
from acidsql.storage.spark.session.jvm import OWN_CATALOG

_COLUMNS_OF_ALL_TABLES = ("*", *TYPES)


@dataclass(frozen=True)
class Namesakes:
    """The relations of a query or expression, and which of them share a name.

    Args:
        text: The user's statement.
        scan: All relations, and the names in expressions.
        tables: The ACID tables among the relations, by the place of their names in the text.
        outer_names: The names of relations outside of the query that are visible in the query.
    """

    text: str
    scan: References
    tables: Mapping[int, Table]
    outer_names: Collection[str]

    def alias(self, reference: Reference) -> str | None:
        """Return the new alias that a reference to an ACID table needs, the text ``db.t`` without
        backticks, because another relation has its name or columns are qualified by the database;
        None if it has an alias, can have none, or needs none."""
        if reference.alias is not None or reference.alias_at is None:
            return None
        at = reference.span.start
        if not self._has_namesake(reference.parts[-1]) and at not in self._places_with_alias:
            return None
        return str(self.tables[at].name)

    def qualifier_edits(self) -> Iterator[Edit]:
        """Yield the edits that replace the qualifiers of columns, as ``db.t`` in ``db.t.c``, by the
        new alias of their table. Columns without a qualifier stay.

        Raises:
            AnalysisError: AMBIGUOUS_REFERENCE: several tables of one name all have the column.
            UnsupportedError: A qualifier may also mean a relation or a struct whose columns only
                Spark knows.
        """
        for chain in self.scan.chains:
            inner_blocks: list[int] = []
            for block in self.scan.enclosing_blocks(chain.block):
                candidates = self._candidates_in(block, chain)
                renamed = [
                    (alias, length)
                    for relation, length in candidates
                    if (alias := self._new_alias(relation))
                ]
                if len(candidates) > 1 and renamed:
                    raise self._ambiguous(chain, candidates)
                for alias, length in renamed:
                    # Spark decides between a relation, or a field of one, nearby and this table.
                    if not any(self._may_refer_to(inner, chain, length) for inner in inner_blocks):
                        yield Edit(chain.start, chain.ends[length - 1], quote(alias))
                    elif self._may_refer_further(block, chain, length):
                        raise ambiguous_table_name_error(
                            self.text, Span(chain.start, chain.ends[-1])
                        )
                if candidates and all(relation.at in self.tables for relation, _ in candidates):
                    break
                inner_blocks.append(block)

    def hides_column(self, start: int, qualifier: tuple[str, str]) -> bool:
        """Whether ``t.c``, instead of ``db.t.c``, could mean another column than that of ``db.t``,
        as far as the text and the ACID tables tell.

        It could, if in this block or one around it an ACID table has a column ``t``; or a relation
        is called ``t`` that is no ACID table or keeps its name; or another dotted name uses ``t``
        as a column or field.

        Args:
            start: The place of ``db.t.c`` in the text.
            qualifier: ``db`` and ``t`` in lower case.
        """
        chains = [chain for chain in self.scan.chains if chain.start == start]
        blocks = {block for chain in chains for block in self.scan.enclosing_blocks(chain.block)}
        relations = [relation for relation in self.scan.qualifiers if relation.block in blocks]
        references = {reference.span.start: reference for reference in self.scan.references}
        name, relation_blocks = qualifier[-1], {relation.block for relation in relations}
        return any(
            self._has_column(relation, name)
            or (
                relation.name == name
                and (relation.at not in self.tables or self.alias(references[relation.at]) is None)
            )
            for relation in relations
        ) or any(
            chain.names[:2] != qualifier
            and relation_blocks & {*self.scan.enclosing_blocks(chain.block)}
            and name
            in chain.names[max((length for _, length in self.candidates(chain)), default=0) :]
            for chain in self.scan.chains
        )

    @cached_property
    def _name_counts(self) -> Counter[str]:
        """How many relations, also outside of the query, have each name (in lower case)."""
        return Counter(
            [relation.name for relation in self.scan.qualifiers] + list(self.outer_names)
        )

    def _has_namesake(self, name: str) -> bool:
        """Whether several relations have this name, whatever its case."""
        return self._name_counts[name.lower()] > 1

    @cached_property
    def _places_with_alias(self) -> frozenset[int]:
        """Return the places of tables that need an alias because of how columns are qualified.

        Such a column is qualified with the database. And either the column stands in an inner
        query, or FROM names the table without the database.
        """
        parts = {reference.span.start: len(reference.parts) for reference in self.scan.references}
        chain_relations = ((c, *pair) for c in self.scan.chains for pair in self.candidates(c))
        return frozenset(
            relation.at
            for chain, relation, length in chain_relations
            if length > 1
            and (chain.block != relation.block or length > parts.get(relation.at, length))
        )

    def _new_alias(self, relation: Qualifier) -> str | None:
        """Return the alias that the stand-in of a relation gets so that its columns stay clear
        (``db.t``); None if it needs none, or is no ACID table."""
        references = (
            candidate for candidate in self.scan.references if candidate.span.start == relation.at
        )
        reference = next(references, None)
        return self.alias(reference) if reference and relation.at in self.tables else None

    def _ambiguous(self, chain: Chain, candidates: Collection[tuple[Qualifier, int]]) -> SqlError:
        """Return the error for a dotted name that several relations of one name can have:
        AnalysisError if all are ACID tables, else UnsupportedError, as only Spark knows the others'
        columns."""
        place = Span(chain.start, chain.ends[-1])
        if any(relation.at not in self.tables for relation, _ in candidates):
            return ambiguous_table_name_error(self.text, place)
        return AnalysisError(
            f"{place.slice(self.text)} is ambiguous: several tables of that name have this column.",
            self.text, place.start, place.end,
            condition="AMBIGUOUS_REFERENCE", sqlstate="42704",
        )  # fmt: skip

    def _may_refer_to(self, block: int, chain: Chain, length: int) -> bool:
        """Whether Spark may take a chain, or its last names behind the first ``length`` - 1, for a
        column of one of the block's relations, or a field. ``length``: how many leading names of
        the chain are the name of the table that is meant.

        A relation that is no ACID table may have any column. One case is not considered: a struct
        with the database's name that contains a struct with the table's name.
        """
        has_unaliased = any(
            self._new_alias(relation) is None for relation, _ in self._candidates_in(block, chain)
        )
        return has_unaliased or any(
            self._has_column(relation, chain.names[0])
            or (length == 1 and relation.at not in self.tables and not relation.is_value)
            for relation in self.scan.qualifiers
            if relation.block == block
        )

    def _may_refer_further(self, block: int, chain: Chain, length: int) -> bool:
        """Whether Spark may take an unchanged dotted name for a column of another relation, in a
        block, in one around it, or outside of the query. ``length``: how many leading names of the
        chain are the name of the table that is meant."""
        outer_blocks = self.scan.enclosing_blocks(block)
        return chain.names[0] in self.outer_names or any(
            self._may_refer_to(outer_block, chain, length) for outer_block in outer_blocks
        )

    def _has_column(self, relation: Qualifier, name: str) -> bool:
        """Whether a relation is an ACID table with a column of this name (in lower case)."""
        table = self.tables.get(relation.at)
        return table is not None and any(column.name == name for column in table.all_columns)

    def candidates(self, chain: Chain) -> list[tuple[Qualifier, int]]:
        """Return the relations to which a chain (a dotted name in an expression) can refer, in the
        innermost block that has any; [] if none has.

        With each relation comes the number of names in the chain that are its qualifier.
        """
        candidates_by_block = (
            self._candidates_in(block, chain) for block in self.scan.enclosing_blocks(chain.block)
        )
        return next(filter(None, candidates_by_block), [])

    def _candidates_in(self, block: int, chain: Chain) -> list[tuple[Qualifier, int]]:
        """Return the relations of a block to which a dotted name can refer, each with the number of
        leading names in it that are the relation's name."""
        relations = (relation for relation in self.scan.qualifiers if relation.block == block)
        return [
            (relation, length)
            for relation in relations
            if (length := self._matching_qualifier_length(relation, chain))
        ]

    def _matching_qualifier_length(self, relation: Qualifier, chain: Chain) -> int:
        """Count the leading names of a dotted name that are the relation's name: ``db.t.c`` has
        two. The longest match counts. Return 0 if there are none, or if the next name is no column
        of the relation, as far as its columns are known."""
        lengths = [
            length
            for length in range(1, len(chain.names))
            if self._is_name_of(relation, chain.names[:length])
        ]
        if not lengths:
            return 0
        table, column = self.tables.get(relation.at), chain.names[lengths[-1]]
        if table is None or column in _COLUMNS_OF_ALL_TABLES:
            return lengths[-1]
        return lengths[-1] if any(c.name == column for c in table.all_columns) else 0

    def _is_name_of(self, relation: Qualifier, names: tuple[str, ...]) -> bool:
        """Whether dotted names in lower case are a relation's alias, or else its name with or
        without database and catalog. Only an ACID table's database and catalog are known if the
        text does not name them."""
        references = (
            candidate for candidate in self.scan.references if candidate.span.start == relation.at
        )
        reference = next(references, None)
        if reference is None or reference.alias is not None:
            return names == (relation.name,)
        table = self.tables.get(relation.at)
        if table is None:
            full_name = tuple(part.lower() for part in reference.parts)
        else:
            full_name = (OWN_CATALOG, table.name.database, table.name.shown)
        return names == full_name[len(full_name) - len(names) :]


def ambiguous_table_name_error(text: str, place: Span) -> UnsupportedError:
    """Return the UNSUPPORTED_FEATURE.AMBIGUOUS_TABLE_NAME for a qualifier that is also the name of
    another relation, or of a struct."""
    name = place.slice(text)
    return UnsupportedError(
        f"Another relation, or a struct, here has the same last name as the table of {name}. Give "
        "the table an alias, and qualify its columns with the alias.",
        text, place.start, place.end,
        condition="UNSUPPORTED_FEATURE.AMBIGUOUS_TABLE_NAME",
    )  # fmt: skip
