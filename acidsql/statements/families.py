"""The statement families whose methods the runner calls only by the type of the statement."""

from __future__ import annotations

from acidsql.statements.databases import DatabaseStatements
from acidsql.statements.family import Context, Family
from acidsql.statements.filled_columns import FilledColumns
from acidsql.statements.hold import Holder
from acidsql.statements.load import LoadStatements
from acidsql.statements.partition_renames import PartitionRenames
from acidsql.statements.partitions import PartitionStatements
from acidsql.statements.prepare import Preparer
from acidsql.statements.statistics import StatisticsStatements
from acidsql.statements.tables import TableStatements
from acidsql.statements.views import ViewStatements
from acidsql.statements.write import Writer


def plain_families(context: Context) -> list[Family]:
    """The families that need only the context of their session."""
    return [
        DatabaseStatements(context),
        PartitionStatements(context),
        ViewStatements(context),
        LoadStatements(context),
        StatisticsStatements(context),
    ]


def updating_families(
    context: Context,
    tables: TableStatements,
    preparer: Preparer,
    holder: Holder,
    writer: Writer,
) -> list[Family]:
    """The families whose statements are an UPDATE and a change of the catalog in one commit."""
    return [
        PartitionRenames(context, preparer, holder, writer),
        FilledColumns(context, tables, preparer, holder, writer),
    ]
