"""Which code runs which kind of statement."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from acidsql.sql.parsed import statements as st
from acidsql.statements.context.family import Context, Family, all_handlers, runs
from acidsql.statements.ddl.tables import TableStatements
from acidsql.statements.ddl.transactions import TransactionStatements
from acidsql.statements.dml.partition_renames import PartitionRenames
from acidsql.statements.maintenance.compactions import CompactionStatements
from acidsql.statements.maintenance.history import HistoryStatements
from acidsql.statements.show.shows import ShowStatements
from acidsql.statements.wiring import PLAIN_FAMILIES

FAMILIES = [
    TableStatements,
    TransactionStatements,
    CompactionStatements,
    ShowStatements,
    HistoryStatements,
]
nothing: Any = None
THE_RUNNERS_OWN = {*get_args(st.Dml), *get_args(st.Undo), st.AutoCdc, st.Explain, st.SparkStatement}


@pytest.fixture
def context() -> Context:
    return Context(*[nothing] * 9, "h")


def test_every_kind_of_statement_has_one_method_that_runs_it(context: Context) -> None:
    others: list[Family] = [family(context) for family in (*FAMILIES, *PLAIN_FAMILIES)]
    others += [PartitionRenames(context, nothing)]
    handlers = all_handlers(others)
    assert handlers.keys() | THE_RUNNERS_OWN == set(get_args(st.Statement))
    assert handlers.keys().isdisjoint(THE_RUNNERS_OWN)


def test_two_families_cannot_run_the_same_statement(context: Context) -> None:
    class Another(Family):
        @runs(st.DropTable)
        def drop(self, statement: st.DropTable, text: str) -> None:
            """Nothing."""

    with pytest.raises(AssertionError, match="Another runs another's statement"):
        all_handlers([TableStatements(context), Another(context)])
