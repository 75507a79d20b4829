"""Applies the changes of a stream, or of a batch, to a table: ``Session.auto_cdc``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.cdc import state_name
from acidsql.acid.table import Table, TableName
from acidsql.arguments import checked
from acidsql.costs import Costs
from acidsql.errors import SettingError, UnsupportedError
from acidsql.metastore.streams import NextBatch
from acidsql.plan.cdc.fold import FAULT
from acidsql.sql.grammar.cdc import is_expression
from acidsql.sql.text.given_names import column_names
from acidsql.statements.context.result import Receipt
from acidsql.statements.runner import Runner
from acidsql.storage.columns import literal, quote
from acidsql.storage.spark.given_rows import Rows, to_frame
from acidsql.storage.writing.staging import stage_rows
from acidsql.streams.bad_records import BadRecords
from acidsql.streams.batches import (
    BatchWriter,
    Setup,
    Target,
    resolve_table,
    run_statement,
    table_name,
    temporary_view,
)
from acidsql.streams.identity import numbered_batch
from acidsql.txn.retry import retry_transient

_EXCLUSIVE = (
    ("column_list", "except_column_list"),
    ("track_history_column_list", "track_history_except_column_list"),
    (
        "ignore_null_updates",
        "ignore_null_updates_column_list",
        "ignore_null_updates_except_column_list",
    ),
)


_LISTS = ("keys", *(name for names in _EXCLUSIVE for name in names if name.endswith("_list")))


@dataclass(frozen=True, slots=True)
class CdcClauses:
    """The clauses of AUTO CDC. None: a property of the table has the clause, or it is left out."""

    keys: Sequence[str] | str | None = None
    sequence_by: str | None = None
    ignore_null_updates: bool = False
    ignore_null_updates_column_list: Sequence[str] | None = None
    ignore_null_updates_except_column_list: Sequence[str] | None = None
    apply_as_deletes: str | None = None
    apply_as_truncates: str | None = None
    column_list: Sequence[str] | None = None
    except_column_list: Sequence[str] | None = None
    stored_as_scd_type: int | str = 1
    track_history_column_list: Sequence[str] | None = None
    track_history_except_column_list: Sequence[str] | None = None

    def check(self) -> None:
        """Check that AUTO CDC can have these clauses, before any records come. The columns of
        tables are not looked at.

        Raises:
            SettingError: A text is no SQL expression, a list is empty, or arguments exclude each
                other.
            AnalysisError: A text is no name of a column.
            UnsupportedError: The SCD type is neither 1 nor 2.
        """
        for name in _LISTS:
            columns = getattr(self, name)
            if columns is not None and not column_names(columns, f"{name}=…"):
                raise SettingError(f"{name}=[] names no column.", name=name)
        if str(self.stored_as_scd_type) not in ("1", "2"):
            raise UnsupportedError(f"SCD TYPE {self.stored_as_scd_type} is not supported.")
        for names in _EXCLUSIVE:
            passed_names = [name for name in names if getattr(self, name) not in (None, False)]
            if len(passed_names) > 1:
                raise SettingError(
                    f"Pass {passed_names[0]}=… or {passed_names[1]}=…, not both.",
                    name=passed_names[0],
                )
        for name in ("sequence_by", "apply_as_deletes", "apply_as_truncates"):
            text = getattr(self, name)
            if text is not None and not is_expression(text):
                raise SettingError(f"{name}={text!r} is not one SQL expression.", name=name)

    def text(self, target: str, source: str) -> str:
        """Return the text of the statement AUTO CDC with these clauses, each in a line of its own.
        Names of columns are quoted; expressions, ``target`` and ``source`` are SQL, and stay as
        they are."""
        parts = [f"AUTO CDC INTO {target} FROM {source}"]
        if self.keys is not None:
            parts.append(f"KEYS {_quoted_list(self.keys)}")
        if self.ignore_null_updates:
            parts.append("IGNORE NULL UPDATES")
        parts += self._list_clause("IGNORE NULL UPDATES ON", "ignore_null_updates_")
        if self.apply_as_deletes is not None:
            parts.append(f"APPLY AS DELETE WHEN {self.apply_as_deletes}")
        if self.apply_as_truncates is not None:
            parts.append(f"APPLY AS TRUNCATE WHEN {self.apply_as_truncates}")
        if self.sequence_by is not None:
            parts.append(f"SEQUENCE BY {self.sequence_by}")
        parts += self._list_clause("COLUMNS")
        parts.append(f"STORED AS SCD TYPE {self.stored_as_scd_type}")
        parts += self._list_clause("TRACK HISTORY ON", "track_history_")
        return "\n".join(parts)

    def _list_clause(self, words: str, prefix: str = "") -> list[str]:
        """Return a list of one clause: ``words``, then the quoted columns of the field
        ``…column_list``, or ``* EXCEPT`` and those of ``…except_column_list``. [] if neither field
        is set. At most one of them may be; the excepted columns would win. ``prefix``: the
        beginning of the two fields' names."""
        names: Sequence[str] | None = getattr(self, f"{prefix}column_list")
        excluded: Sequence[str] | None = getattr(self, f"{prefix}except_column_list")
        if names is None and excluded is None:
            return []
        return [
            f"{words} {_quoted_list(names)}"
            if excluded is None
            else f"{words} * EXCEPT {_quoted_list(excluded)}"
        ]


class Applier(BatchWriter[Target]):
    """A function for ``foreachBatch`` that applies change records to its targets; ``apply`` applies
    one DataFrame. ``Session.auto_cdc`` makes it.

    AUTO CDC keeps what it knows of a target's keys, such as the order values of deleted ones, in a
    state table beside the target.

    Attributes:
        last: The receipt of the newest batch; None before the first one.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._forgot_at: dict[TableName, float] = {}

    @checked
    def apply(
        self, rows: Rows, *, txn_app_id: str | None = None, txn_version: int | None = None
    ) -> Receipt:
        """Apply records, in a transaction of its own, and set ``last``. The transaction is repeated
        after a TransientTxnError, as often as ``retries`` of ``Session.auto_cdc`` says.

        Args:
            rows: The records: a DataFrame, or what ``spark.createDataFrame`` takes: of pandas, of
                pyarrow, or a list of dicts.
            txn_app_id: The application's name in the ledger of streams. Default: the records are
                applied in any case. Records that were applied before change nothing.
            txn_version: The number of the batch, which grows. If this number, or a higher one, was
                committed under this name before, the batch is skipped.

        Returns:
            The receipt. It says how many records were stale or duplicates, or that the batch was
            skipped.

        Raises:
            TxnError: The session's transaction is open: between BEGIN and COMMIT, say AUTO CDC INTO
                by ``Session.sql``.
            SettingError: Only one of ``txn_app_id`` and ``txn_version`` was passed, or is wrong.
            AcidSqlError: Any error of the statement AUTO CDC. Nothing of the batch was applied.
        """
        self._setup.require_no_transaction("apply(…), which has a transaction of its own,")
        records = to_frame(self._setup.spark, rows)
        with self._runner(records.sparkSession) as runner:
            target = self.require_target(runner)
            batch = numbered_batch(txn_app_id, txn_version, self._sink_name(target))

            def once() -> Receipt | None:
                if batch is not None:
                    return self._write_once(runner, target, records, batch)
                return self._apply_unnumbered(runner, target, records)

            self.last = retry_transient(once, self._setup.retries)
        assert self.last is not None
        return self.last

    def tables(self, target: Target) -> Sequence[Table]:
        """Return the tables of the target, in the order in which they are changed."""
        raise NotImplementedError

    def target_index(self, rows: DataFrame, target: Target) -> Column:
        """Return, lazily, the position in ``tables`` of the table that a record is for, as a
        column; NULL: the record is for no table. By default 0."""
        return F.lit(0)

    def names_no_target(self, rows: DataFrame) -> Column:
        """Return a condition that is true if a record does not say which table it is for. By
        default never."""
        return F.lit(False)

    def check_targets(self, rows: DataFrame, target: Target) -> None:
        """Raise the error by which ``write`` would refuse a record that is for no table. By default
        no record is refused."""

    def make_tables(self, runner: Runner, target: Target, rows: DataFrame) -> None:
        """Make all state tables and other tables that are missing, before the transaction of a
        batch.

        In a transaction only the first statement could make a state table: the snapshot of the
        transaction does not see a newer table.

        Args:
            runner: Runs the statements.
            target: The target.
            rows: Records, of which only the columns matter.
        """
        raise NotImplementedError

    def _run_in_transaction(
        self, runner: Runner, target: Target, rows: DataFrame, text: str, batch: NextBatch | None
    ) -> Receipt | None:
        """Write the batch in a transaction, and commit. Then remove, from the state table of each
        target, the deletes that are older than its retention, unless this applier did so less than
        an hour ago, or a tenth of the retention if that is more; an error is only logged and noted.
        Return the receipt of the batch, with notes about the removal."""
        receipt = super()._run_in_transaction(runner, target, rows, text, batch)
        for table in self.tables(target):
            note = runner.auto_cdc.tombstones.forget(table, self._forgot_at)
            if note is not None and receipt is not None:
                receipt = receipt.with_note(f"{table.name}: {note}")
        return receipt

    def _apply_unnumbered(self, runner: Runner, target: Target, rows: DataFrame) -> Receipt | None:
        """Apply records in a transaction of their own, without an entry in the ledger, and return
        the receipt."""
        return self._run_in_transaction(runner, target, rows, "acid.auto_cdc(…).apply(…)", None)


class AutoCdc(Applier[Table]):
    """Applies records to one table.

    Raises:
        SettingError: The table for bad records is the target itself.
    """

    def __init__(
        self, setup: Setup, table: str, clauses: CdcClauses, bad_records: BadRecords | None
    ) -> None:
        super().__init__(setup)
        if bad_records is not None and bad_records.table == table:
            raise SettingError(f"bad_records names the target {table}.", name="bad_records")
        self.table, self._clauses = table, clauses
        self._bad_records = bad_records

    def __repr__(self) -> str:
        return f"<acidsql auto_cdc into {self.table}>"

    def require_target(self, runner: Runner) -> Table:
        """Return the table. Raise AnalysisError if there is no such ACID table."""
        return resolve_table(runner, self.table)

    def with_bad_records(self, bad_records: BadRecords | None) -> AutoCdc:
        """Return a copy of this applier that uses ``bad_records``, unless this one has a table of
        bad records already."""
        return AutoCdc(self._setup, self.table, self._clauses, self._bad_records or bad_records)

    def tables(self, target: Table) -> Sequence[Table]:
        return [target]

    def prepare_target(self, runner: Runner, target: Table, rows: DataFrame) -> None:
        """Make the table of bad records, if there is to be one and it is missing."""
        if self._bad_records is not None:
            self._bad_records.create_if_missing(runner)

    def make_tables(self, runner: Runner, target: Table, rows: DataFrame) -> None:
        """Make the table of bad records and the state table, as far as they are missing, in
        transactions of their own. ``rows``: only their columns matter."""
        self.prepare_target(runner, target, rows)
        if self.lacks_state(runner, target):
            self.apply_all(runner, target, rows.where(F.lit(False)))

    def lacks_state(self, runner: Runner, target: Table) -> bool:
        """Whether the target has no state table yet."""
        state = state_name(target.name)
        return runner.resolve((state.database, state.name)) is None

    def write(self, runner: Runner, target: Table, rows: DataFrame, txn_id: int) -> Receipt | None:
        """Apply a batch's records in the runner's transaction, and return the receipt. A bad record
        raises ConstraintError. If there is a table for bad records, the rows are first evaluated
        once, and the bad ones are put aside there."""
        if self._bad_records is None:
            return self.apply_all(runner, target, rows)
        few_rows = runner.settings.driver_row_limit
        with temporary_view(rows) as view:
            judged_records = runner.auto_cdc.records_with_faults(
                self._clauses.text(table_name(target.name), view)
            )
        # A clause may ask for the time, or call any function, so it is evaluated once per record.
        with stage_rows(judged_records, target.location, txn_id, few_rows) as staged_records:
            return self._apply_and_put_aside(runner, target, staged_records, self._bad_records)

    def apply_all(self, runner: Runner, target: Table, rows: DataFrame) -> Receipt | None:
        """Apply records by one AUTO CDC statement, and return its receipt. A bad record raises
        ConstraintError, and nothing is applied."""
        with temporary_view(rows) as view:
            return run_statement(runner, self._clauses.text(table_name(target.name), view))

    def _apply_and_put_aside(
        self, runner: Runner, target: Table, judged_records: DataFrame, bad_records: BadRecords
    ) -> Receipt | None:
        """Apply the good records, then put the bad records aside, in the runner's transaction, and
        return one receipt. ``judged_records`` have the column ``FAULT``, which is NULL for good
        ones.

        Good records come first, because only the first statement of a transaction can make the
        state table.
        """
        txn_id = runner.transactions.require_transaction().id
        receipt = self.apply_all(
            runner, target, judged_records.where(F.col(FAULT).isNull()).drop(FAULT)
        )
        bad_receipt = bad_records.put_aside(
            runner, judged_records.where(F.col(FAULT).isNotNull()), literal(str(target.name))
        )
        return receipt if bad_receipt is None else combined_receipt([receipt, bad_receipt], txn_id)

    def _apply_unnumbered(self, runner: Runner, target: Table, rows: DataFrame) -> Receipt | None:
        """Apply records without an entry in the ledger: by one statement or, if bad records are to
        be put aside, in a transaction. Return the receipt."""
        if self._bad_records is None:  # one statement needs no transaction around it
            return self.write(runner, target, rows, 0)
        return super()._apply_unnumbered(runner, target, rows)

    def _sink_name(self, target: Table) -> str:
        return str(target.name)


def _quoted_list(names: Sequence[str] | str | None) -> str:
    """Return SQL of columns' names in brackets; ``()`` for None."""
    return f"({', '.join(map(quote, column_names(names or (), 'AUTO CDC')))})"


def combined_receipt(receipts: Sequence[Receipt | None], txn_id: int) -> Receipt:
    """Make one receipt of several statements': their texts with semicolons between, their counts
    and directories one after another, the sums of their files and bytes. None, a statement without
    a receipt, is left out. Each note begins with the name of its statement's first table."""
    statement_receipts = [receipt for receipt in receipts if receipt is not None]
    return Receipt(
        "; ".join(receipt.statement for receipt in statement_receipts),
        tuple(counts for receipt in statement_receipts for counts in receipt.counts),
        txn_id,
        files=sum(receipt.files for receipt in statement_receipts),
        bytes=sum(receipt.bytes for receipt in statement_receipts),
        directories=tuple(path for receipt in statement_receipts for path in receipt.directories),
        notes=tuple(
            f"{receipt.counts[0].table}: {note}"
            for receipt in statement_receipts
            for note in receipt.notes
        ),
        costs=sum((receipt.costs for receipt in statement_receipts), Costs()),
    )
