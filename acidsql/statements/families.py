"""The statement families whose methods the runner calls only by the type of the statement."""

from __future__ import annotations

from acidsql.statements.context.family import Context, Family
from acidsql.statements.ddl.databases import DatabaseStatements
from acidsql.statements.ddl.partitions import PartitionStatements
from acidsql.statements.ddl.tables import TableStatements
from acidsql.statements.ddl.views import ViewStatements
from acidsql.statements.dml.filled_columns import FilledColumns
from acidsql.statements.dml.hold import Holder
from acidsql.statements.dml.load import LoadStatements
from acidsql.statements.dml.partition_renames import PartitionRenames
from acidsql.statements.dml.prepare import Preparer
from acidsql.statements.dml.write import Writer
from acidsql.statements.maintenance.statistics import StatisticsStatements


def plain_families(context: Context) -> list[Family]:
    """Return new families of statements that need only the context of their session."""
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
    """Return new families whose statements are an UPDATE and a change of the catalog in one
    commit."""
    return [
        PartitionRenames(context, preparer, holder, writer),
        FilledColumns(context, tables, preparer, holder, writer),
    ]
