"""The public methods of a session about streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from acidsql.errors import SettingError, UnsupportedError
from acidsql.metastore.interface import Metastore
from acidsql.metastore.streams import Batch, entry_of, following
from acidsql.plan.names import parts_of
from acidsql.statements.runner import Runner
from acidsql.statements.unit_of_work import Transaction
from acidsql.streams.sink import MODES, Sink
from acidsql.streams.writer import AcidStreamWriter
from acidsql.txn.retry import again

_APP_ID_MAX = 250  # characters: the width of STREAMS.TXN_APP_ID


class StreamMethods:
    """What a ``Session`` offers for streams."""

    spark: SparkSession
    metastore: Metastore
    _runner: Runner
    sql: Callable[..., DataFrame]
    transaction: Callable[..., AbstractContextManager[Transaction]]
    _need_open: Callable[[], None]

    def sink(
        self,
        table: str,
        *,
        mode: str = "append",
        keys: Sequence[str] | str | None = None,
        txn_app_id: str | None = None,
        retries: int = 3,
    ) -> Sink:
        """A function for ``foreachBatch`` that writes each micro-batch in one transaction, once.

        Args:
            table: ``table`` or ``database.table``. Columns go by name, as in INSERT with a list of
                columns; a column that the batch lacks gets its DEFAULT, or NULL.
            mode: ``append``: insert the rows. ``complete``: the batch replaces all rows of the
                table. ``upsert``: a row replaces the row with the same keys, or is inserted.
            keys: For ``upsert``, the columns that name a row.
            txn_app_id: The application's name in the ledger (``Session.streams``). Default: the id
                of the streaming query, which is in its checkpoint.
            retries: How often to write a batch again after a conflict with another transaction.

        Returns:
            The function. Its attribute ``last`` is the receipt of the newest batch. After a restart
            Spark may run the newest batch again; the sink skips it if it was committed.

        Raises:
            SettingError: ``mode`` is unknown, or ``keys`` are missing or out of place.
            UnsupportedError: The metastore keeps no streams.
        """
        self._need_open()
        self._need_ledger()
        if mode not in MODES:
            raise SettingError(f"mode='{mode}' is not one of {', '.join(MODES)}.", name="mode")
        given = [keys] if isinstance(keys, str) else list(keys or ())
        if (mode == "upsert") != bool(given):
            raise SettingError(
                "mode='upsert' needs keys=[…], the columns that name a row; other modes take none.",
                name="keys",
            )
        if not isinstance(retries, int) or retries < 0:
            raise SettingError(f"retries={retries!r} is not a number from 0 on.", name="retries")
        if txn_app_id is not None:
            _check_app_id(txn_app_id)
        full_name = self._runner.qualify(parts_of(table))  # USE may change the current database
        return Sink(
            self.spark,
            self.metastore,
            self._runner_for_batch,
            table if full_name is None else str(full_name),
            mode=mode,
            keys=given,
            app_id=txn_app_id,
            retries=retries,
        )

    def write_stream(
        self,
        rows: DataFrame,
        *,
        keys: Sequence[str] | str | None = None,
        txn_app_id: str | None = None,
        retries: int = 3,
    ) -> AcidStreamWriter:
        """A ``DataStreamWriter`` for an ACID table: ``acid.write_stream(df)….toTable("db.t")``.

        The output mode ``update`` is an upsert, which needs ``keys``. All arguments but ``rows``
        are those of ``sink``.

        Args:
            rows: A streaming DataFrame.
            keys: See ``sink``.
            txn_app_id: See ``sink``.
            retries: See ``sink``.
        """
        self._need_open()
        self._need_ledger()

        def make_sink(table: str, mode: str) -> Sink:
            return self.sink(table, mode=mode, keys=keys, txn_app_id=txn_app_id, retries=retries)

        return AcidStreamWriter(rows, make_sink)

    def streams(self) -> DataFrame:
        """The newest committed batch of each stream, as SHOW STREAMS.

        Returns:
            One row for each application and sink, in this order: ``txnAppId`` string, ``sink``
            string (the table; NULL for ``acid.transaction``), ``txnVersion`` bigint (the batch id),
            ``txnId`` bigint, ``numRows`` bigint (inserted, updated and deleted), ``committedAt``
            timestamp, ``queryId`` string, ``runId`` string, ``user`` string, ``host`` string.
        """
        self._need_open()
        return self._runner.run("SHOW STREAMS", None, 0)

    def forget_stream(self, txn_app_id: str, table: str | None = None) -> int:
        """Forget which batch of an application was committed last.

        The next batch is written whatever its number is. So a batch that runs again is doubled.

        Args:
            txn_app_id: The application.
            table: Forget only its entry for this table. Default: all of its entries.

        Returns:
            The number of entries.
        """
        self._need_open()
        sink = None
        if table is not None:
            found = self._runner.resolve(parts_of(table))
            sink = table.lower() if found is None else str(found.name)
        return self.metastore.forget_stream(txn_app_id, sink)

    def _need_ledger(self) -> None:
        if not self.metastore.abilities.keeps_streams:
            raise UnsupportedError(
                "This metastore cannot note in its COMMIT which batch was committed, so a batch "
                "could be written twice. Streams and txn_app_id need acidsql's own metastore.",
                condition="UNSUPPORTED_FEATURE.STREAMS",
            )

    def _runner_for_batch(self, spark: SparkSession) -> Runner:
        self._need_open()
        return self._runner.beside(spark)

    def _numbered(
        self, text: str, args: Any, retries: int, txn_app_id: str | None, txn_version: int | None
    ) -> DataFrame:
        """Run one statement in the transaction of ``txn_app_id`` and ``txn_version``."""

        def once() -> DataFrame:
            with self.transaction(txn_app_id=txn_app_id, txn_version=txn_version):
                return self.sql(text, args)

        return again(once, retries)

    def _begin(self, txn_app_id: str | None, txn_version: int | None) -> Transaction:
        """Begin the transaction of ``Session.transaction``."""
        begin, text = self._runner.transactions.begin, "acid.transaction()"
        if txn_app_id is None and txn_version is None:
            return begin(text, in_block=True)
        if txn_app_id is None or txn_version is None:
            raise SettingError("Pass txn_app_id and txn_version together.", name="txn_app_id")
        self._need_ledger()
        _check_app_id(txn_app_id)
        if type(txn_version) is not int or not 0 <= txn_version < 1 << 63:
            raise SettingError(
                f"txn_version={txn_version!r} is not an integer from 0 to 2^63 - 1.",
                name="txn_version",
            )
        batch = Batch(txn_app_id, txn_version)
        entry = entry_of(self.metastore, batch)
        if entry is not None and txn_version <= entry.batch.version:
            return begin(text, in_block=True, replayed=entry)
        return begin(text, in_block=True, batch=following(batch, entry))


def _check_app_id(app_id: str) -> None:
    """Refuse a name that not every store can keep as it is."""
    is_text = isinstance(app_id, str) and app_id.isprintable()
    if not is_text or not 1 <= len(app_id) <= _APP_ID_MAX:
        raise SettingError(
            f"txn_app_id={app_id!r} is not a text of 1 to {_APP_ID_MAX} printable characters.",
            name="txn_app_id",
        )
