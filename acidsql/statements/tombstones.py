"""Forgets old deletes of AUTO CDC, if the target says so (``plan.cdc_state``).

This is a transaction of its own, after the one that has applied records. If it fails, the records
stay applied, and a later one deletes the same rows.
"""

from __future__ import annotations

import logging
import time

from acidsql.acid.cdc import TOMBSTONE_RETENTION, belongs, state_name
from acidsql.acid.table import Table, TableName
from acidsql.metastore.foreign import acid_table
from acidsql.plan.cdc_state import forget_statement, is_state, tombstone_retention
from acidsql.statements.family import Context
from acidsql.statements.hold import Holder
from acidsql.statements.prepare import Preparer
from acidsql.statements.result import Clock
from acidsql.statements.write import Writer
from acidsql.txn import AT_ONCE

_log = logging.getLogger(__name__)
_LEAST_PAUSE_S = 3600.0


class Tombstones:
    """Forgets deletes in one session."""

    def __init__(
        self, context: Context, preparer: Preparer, holder: Holder, writer: Writer
    ) -> None:
        self._context = context
        self._preparer, self._holder, self._writer = preparer, holder, writer

    def forget(self, target: Table, last: dict[TableName, float] | None = None) -> str | None:
        """Forget the deletes of a target that are older than its retention.

        Args:
            target: The target.
            last: When this was last done, by target: a stream has many batches, and remembers this.
                It is done again an hour later, or a tenth of the retention if that is more; after
                a failure at once. None: it is done now.

        Returns:
            A note for the receipt: how many were forgotten, or why none could be; or None.
        """
        name, now = target.name, time.monotonic()
        try:
            kept_ms = tombstone_retention(target.properties)
            if kept_ms is None:
                return None
            pause_s = max(_LEAST_PAUSE_S, kept_ms // 10_000)
            if last is not None and name in last and now < last[name] + pause_s:
                return None
            state = acid_table(self._context.metastore.find(state_name(name)))
            if state is None or not is_state(state) or not belongs(state, target):
                return None
            count = self._delete(forget_statement(state, kept_ms))
            if last is not None:
                last[name] = now
        except Exception as error:  # the records are committed, whatever happens here
            _log.warning("Old deletes of %s could not be forgotten: %s", name, error)
            return f"old deletes could not be forgotten ({TOMBSTONE_RETENTION}): {error}"
        return f"{count:,} old delete{'s' * (count > 1)} forgotten" if count else None

    def _delete(self, text: str) -> int:
        """Run a DELETE, and return the number of rows. It waits for nobody: the next will do."""
        clock = Clock()
        statement, said, prepared = self._preparer.prepare_text(text)
        with (
            self._context.transactions.own_transaction(said.text, waits=AT_ONCE) as transaction,
            transaction.statement("DELETE", said.text) as work,
        ):
            held = self._holder.hold(transaction.txn, statement, said, prepared)
            self._writer.write(transaction, held, said, clock, work)
            self._context.transactions.end_of_statement(transaction)
        return sum(done.deleted for _, done in work.published)
