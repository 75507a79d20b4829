"""What the readers of batches share: their tasks, and the columns that they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from acidsql.acid.table import Column, Table
from acidsql.errors import CatalogError
from acidsql.storage.folding.live_rows import LiveRows, live_rows
from acidsql.storage.folding.stream_reads import StreamRead
from acidsql.suggestions import names_question


class Split(InputPartition):
    """The work of one task: the files that it reads, and what it shows of them."""

    def __init__(self, shown: LiveRows, reads: Sequence[StreamRead]) -> None:
        self.shown, self.reads = shown, reads


class SplitReader(DataSourceReader):
    """A reader whose partitions are ``Split`` objects."""

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled for tasks: nothing, as a ``Split`` has all."""
        return {}

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a task, a ``Split``, as Arrow record batches, in a Python worker of
        Spark's."""
        assert isinstance(partition, Split)
        yield from live_rows(partition.shown, partition.reads)


def choose_columns(
    table: Table, names: Sequence[str] | None, shown_name: str
) -> tuple[Column, ...]:
    """Return the columns of a table with these names, in their order; all if ``names`` is None.

    Raises:
        CatalogError: The table, which the message calls ``shown_name``, has no such column.
    """
    columns = tuple(table.all_columns)
    if names is None:
        return columns
    columns_by_name = {column.name: column for column in columns}
    for name in names:
        if name not in columns_by_name:
            hint = names_question(name, columns_by_name)
            raise CatalogError(f"{shown_name} has no column '{name}'.{hint}")
    return tuple(columns_by_name[name] for name in names)
