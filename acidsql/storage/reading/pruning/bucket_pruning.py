"""CLUSTERED BY: leave out files of buckets without rows that matter to the query."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from acidsql.acid.table import Table
from acidsql.acid.values.predicate import INTEGERS, Predicate, possible_values
from acidsql.acid.values.types import parse_type
from acidsql.costs import FastPath, note_fast_path
from acidsql.storage.orc.row_schema import arrow_type
from acidsql.storage.tables.listing import EventFile, Listing
from acidsql.storage.writing.buckets.bucketing import bucket_ids

_MOST = 1000  # combinations of values whose buckets are computed


def prune_buckets(
    listings: Sequence[Listing], table: Table, condition: Predicate
) -> Sequence[Listing]:
    """Return the listings without files of insert and delete events whose bucket has no row that
    meets the condition. They stay as they are if the table is not bucketed, or the condition does
    not tell the buckets.

    A partition with files without event columns keeps all its files: nothing says that its rows
    were written into the right buckets.
    """
    buckets = _matching_buckets(table, condition)
    if buckets is None:
        return listings
    note_fast_path(FastPath.PRUNED_BUCKETS)
    return [
        listing if listing.originals else _prune_listing(listing, buckets) for listing in listings
    ]


def _prune_listing(listing: Listing, buckets: frozenset[int]) -> Listing:
    """Return the listing without the event files whose names tell another bucket."""
    data = tuple(file for file in listing.data if _may_be_of_buckets(file, buckets))
    deletes = tuple(file for file in listing.deletes if _may_be_of_buckets(file, buckets))
    return replace(listing, data=data, deletes=deletes)


def _may_be_of_buckets(file: EventFile, buckets: frozenset[int]) -> bool:
    """Whether a file's name is that of one of these buckets, or tells no bucket."""
    # The names are bucket_00001, or bucket_00001_0 with the number of an attempt.
    number = file.path.rpartition("/")[2].removeprefix("bucket_").partition("_")[0]
    return not number.isdigit() or int(number) in buckets


def _matching_buckets(table: Table, condition: Predicate) -> frozenset[int] | None:
    """Return the buckets that can have rows for which a condition holds. None if the table is not
    bucketed, or the condition does not limit every bucketing column to one or more values that each
    have one form (``_needed_literal_type``), or the combinations of values are more than 1000. The
    set is never empty.
    """
    if not table.is_bucketed:
        return None
    kinds = {column.name: column.type for column in table.columns}
    types = [kinds[name] for name in table.bucket_columns]
    values_by_column = [
        _bucketing_values(condition, *pair)
        for pair in zip(table.bucket_columns, types, strict=True)
    ]
    known_values = [values for values in values_by_column if values]
    rows = list(itertools.islice(itertools.product(*known_values), _MOST + 1))
    if len(known_values) < len(values_by_column) or len(rows) > _MOST:
        return None
    columns = [
        pa.array(column, arrow_type(kind))
        for column, kind in zip(zip(*rows, strict=True), types, strict=True)
    ]
    return frozenset(
        bucket_ids(columns, types, table.num_buckets, table.bucketing_version).tolist()
    )


def _bucketing_values(condition: Predicate, column: str, kind: str) -> list[Any] | None:
    """Return the values that a bucketing column can have in rows for which a condition holds. None
    if the condition does not limit them, or a literal has not the type that the column needs.
    ``kind``: the column's type.
    """
    values = possible_values(condition, column)
    if values is None or any(
        typed_value.type != _needed_literal_type(kind) for typed_value in values
    ):
        return None
    return [typed_value.python for typed_value in values]


def _needed_literal_type(kind: str) -> str | None:
    """Return the type that literals for a column must have; None if the column's type cannot be
    used. It is ``string`` for VARCHAR, and the column's own type for integers, STRING and decimals.

    A value must have one form only: CHAR is padded, and doubles have two zeros.
    """
    name = parse_type(kind).kind
    if name in (*INTEGERS, "string", "decimal"):
        return kind
    return "string" if name == "varchar" else None
