"""The objects that run one session's statements, and how they are connected."""

from __future__ import annotations

from pyspark.sql import SparkSession

from acidsql.metastore.interface import Metastore
from acidsql.plan.analysis.missing_names import MissingNames
from acidsql.plan.standins.names import NameResolver
from acidsql.settings import Settings
from acidsql.statements.cdc.auto_cdc import AutoCdcStatements
from acidsql.statements.context.current_txn import Transactions
from acidsql.statements.context.family import Context, all_handlers
from acidsql.statements.context.partition_specs import Partitions
from acidsql.statements.context.snapshot_catalog import SnapshotCatalog
from acidsql.statements.context.spark_databases import SparkDatabases
from acidsql.statements.context.temporary_tables import TemporaryTables
from acidsql.statements.ddl.databases import DatabaseStatements
from acidsql.statements.ddl.partitions import PartitionStatements
from acidsql.statements.ddl.state_tables import StateTables
from acidsql.statements.ddl.transactions import TransactionStatements
from acidsql.statements.ddl.views import ViewStatements
from acidsql.statements.dml.create_as_select import FilledTables
from acidsql.statements.dml.filled_columns import FilledColumns
from acidsql.statements.dml.load import LoadStatements
from acidsql.statements.dml.partition_renames import PartitionRenames
from acidsql.statements.dml.phases import Phases
from acidsql.statements.dml.preview import Previewer
from acidsql.statements.dml.returning import ReturnedRows
from acidsql.statements.maintenance.compactions import CompactionStatements
from acidsql.statements.maintenance.health import TableHealth
from acidsql.statements.maintenance.history import HistoryStatements
from acidsql.statements.maintenance.repair import TableRepairs
from acidsql.statements.maintenance.statistics import StatisticsStatements
from acidsql.statements.queries.changes import ChangeFeed
from acidsql.statements.queries.explain import Explainer
from acidsql.statements.queries.filler import Filler
from acidsql.statements.queries.row_conflicts import is_row_conflict
from acidsql.statements.queries.spark_statements import SparkStatements
from acidsql.statements.queries.table_rows import TableRows
from acidsql.statements.recognition import Recognition
from acidsql.statements.show.shows import ShowStatements
from acidsql.txn import TxnManager

# The families that need only the context, and that nobody calls but by the type of a statement.
PLAIN_FAMILIES = (
    DatabaseStatements, PartitionStatements, ViewStatements, LoadStatements, StatisticsStatements,
)  # fmt: skip


class Wiring:
    """The objects that run one session's statements. Each gets those that it needs.

    ``handlers`` has the method for each type of statement that belongs to a family. For the
    arguments see ``Runner`` and ``Writer``.
    """

    def __init__(
        self, spark: SparkSession, metastore: Metastore, settings: Settings, *,
        user: str, host: str, evaluates_once: bool,
    ) -> None:  # fmt: skip
        self.txns = txns = TxnManager(metastore, settings, user=user, host=host)
        self.transactions = Transactions(
            txns,
            lambda conflict, own_directories: not txns.settings.conflicts_by_row
            or is_row_conflict(spark, metastore, conflict, own_directories),
        )  # fmt: skip
        self.temporary = TemporaryTables(metastore, txns)
        catalog = SnapshotCatalog(metastore, txns, self.transactions)
        self.names = NameResolver(spark, catalog, self.temporary.names)
        self.missing = MissingNames(spark, metastore, self.names)
        self.partitions = Partitions(spark, catalog)
        self.context = context = Context(
            spark, metastore, txns, self.transactions, catalog, self.names,
            SparkDatabases(spark, metastore), self.partitions, self.temporary, host,
        )  # fmt: skip
        # Statements that read.
        self.rows, filler = TableRows(context), Filler(context)
        self.changes = ChangeFeed(context, self.rows.travel)
        self.explainer = Explainer(context, filler)
        self.spark_statements = SparkStatements(context, filler, self.explainer)
        # Statements that change rows, by their phases.
        self.tables, self.returned_rows = StateTables(context), ReturnedRows(context)
        self.phases = Phases(context, filler, self.tables, evaluates_once=evaluates_once)
        self.previewer, phases = Previewer(context, filler), self.phases
        self.filled_tables = FilledTables(context, self.tables, phases)
        self.auto_cdc = AutoCdcStatements(context, self.tables, filler, self.explainer, phases)
        # All others.
        self.transaction_statements = TransactionStatements(context)
        self.compactions, self.shows = CompactionStatements(context), ShowStatements(context)
        self.recognition = Recognition(context, self.shows)
        self.history, self.checks = HistoryStatements(context), TableRepairs(context)
        self.health = TableHealth(context)
        self.handlers = all_handlers([
            self.tables, self.transaction_statements, self.compactions, self.shows, self.history,
            PartitionRenames(context, phases), FilledColumns(context, self.tables, phases),
            *(family(context) for family in PLAIN_FAMILIES),
        ])  # fmt: skip
