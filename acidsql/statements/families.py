"""The statement families that need nothing but the session's context."""

from __future__ import annotations

from acidsql.statements.databases import DatabaseStatements
from acidsql.statements.family import Context, Family
from acidsql.statements.load import LoadStatements
from acidsql.statements.partitions import PartitionStatements
from acidsql.statements.statistics import StatisticsStatements
from acidsql.statements.views import ViewStatements


def plain_families(context: Context) -> list[Family]:
    """These families, for one session."""
    return [
        DatabaseStatements(context),
        PartitionStatements(context),
        ViewStatements(context),
        LoadStatements(context),
        StatisticsStatements(context),
    ]
