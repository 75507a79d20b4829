"""What a transaction cannot do after it has overwritten a table or partition.

All overwrites of one transaction share a directory, ``base_N``, because N is its write id. So after
one overwrite nothing else can be written there. If the overwrite was undone, the next one would get
the same paths, and a DataFrame that was made in between would read rows that it never showed. Other
statements have directories of their own, by their statement ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acidsql.acid.table import Table, TableName
from acidsql.errors import UnsupportedError
from acidsql.statements.context.work import Work

OverwrittenPlace = tuple[TableName, str]  # a table, and a partition directory of it


def overwritten_places(works: Iterable[Work]) -> set[OverwrittenPlace]:
    """Return the places that these statements have overwritten: pairs of a table's name and a
    partition's directory, "" for an unpartitioned table."""
    return {
        (table.name, partition)
        for work in works
        for table, published in work.published
        if published.overwrote
        for partition in published.partitions
    }


def refuse_hidden_by_overwrite(
    earlier: Sequence[Work], table: Table, partitions: Iterable[str]
) -> None:
    """Refuse to write, or overwrite, a partition that an earlier statement of the transaction
    overwrote.

    The partition's base would hide the new rows, because both have the same write id.

    Args:
        earlier: What the earlier statements have published.
        table: The table.
        partitions: The partitions to write to; "" for an unpartitioned table.

    Raises:
        UnsupportedError: An earlier statement overwrote one of these partitions.
    """
    overwritten = overwritten_places(earlier)
    for partition in partitions:
        if (table.name, partition) in overwritten:
            raise UnsupportedError(
                f"This transaction has overwritten {_place(table, partition)}, and Hive's format "
                "cannot change it again under the same write id. COMMIT first, or change it before "
                "INSERT OVERWRITE or TRUNCATE.",
                condition="UNSUPPORTED_FEATURE.CHANGE_AFTER_OVERWRITE",
            )


def refuse_still_readable(
    shown: set[OverwrittenPlace], table: Table, partitions: Iterable[str]
) -> None:
    """Refuse to overwrite a partition again whose base was undone, while a DataFrame may read that
    base.

    Args:
        shown: The places of such bases: pairs of a table's name and a partition's directory.
        table: The table.
        partitions: The partitions to overwrite; "" for an unpartitioned table.

    Raises:
        UnsupportedError: One of these partitions is among ``shown``.
    """
    for partition in partitions:
        if (table.name, partition) in shown:
            raise UnsupportedError(
                f"This transaction had overwritten {_place(table, partition)} before ROLLBACK TO, "
                "and a DataFrame that was made since may still read the same directory: it would "
                "show the rows of this statement. Roll the whole transaction back, or let DELETE "
                "and INSERT take the place of this statement.",
                condition="UNSUPPORTED_FEATURE.CHANGE_AFTER_OVERWRITE",
            )


def refuse_overwrite_beside_insert(
    work: Work, table: Table, partitions: Iterable[str], *, overwrite: bool
) -> None:
    """Refuse a branch of a multi-insert that writes to a partition to which an earlier branch
    wrote, if one of the two overwrites the partition: the base would hide the other's rows.

    Args:
        work: What the earlier branches have published.
        table: The branch's table.
        partitions: The partitions to which the branch writes.
        overwrite: Whether this branch overwrites.

    Raises:
        UnsupportedError: There is such a partition.
    """
    earlier = {
        partition
        for changed, published in work.published
        if changed.name == table.name and (overwrite or published.overwrote)
        for partition in published.partitions
    }
    for partition in partitions:
        if partition in earlier:
            raise UnsupportedError(
                f"Two branches write to {table.name}/{partition}, and INSERT OVERWRITE is one "
                "of them (Hive 10087). Let one branch give all rows of a partition.",
                condition="UNSUPPORTED_FEATURE.OVERWRITE_BESIDE_INSERT",
            )


def _place(table: Table, partition: str) -> str:
    """Return ``db.t`` or, if ``partition`` is not "", ``db.t/p=1``, for a message."""
    return f"{table.name}/{partition}" if partition else str(table.name)
