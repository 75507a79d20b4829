"""The phases of the statements that change rows, but for the commit."""

from __future__ import annotations

from acidsql.statements.context.family import Context
from acidsql.statements.ddl.tables import TableStatements
from acidsql.statements.dml.hold import Holder
from acidsql.statements.dml.prepare import Preparer
from acidsql.statements.dml.repeated_matches import RepeatedMatches
from acidsql.statements.dml.write import Writer
from acidsql.statements.queries.filler import Filler


class Phases:
    """Say, hold and do, in one session, by ``preparer``, ``holder`` and ``writer``;
    ``repeated_matches`` explains an error of the last one.

    ``evaluates_once``: whether a query that may give other rows each time is evaluated only once.
    """

    def __init__(
        self, context: Context, filler: Filler, tables: TableStatements, *, evaluates_once: bool
    ) -> None:
        self.preparer = Preparer(context, filler, tables)
        self.holder = Holder(context, self.preparer)
        self.repeated_matches = RepeatedMatches(context)
        self.writer = Writer(context, filler, evaluates_once=evaluates_once)
