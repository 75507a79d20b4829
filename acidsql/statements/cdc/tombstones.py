"""Forgets old deletes of AUTO CDC, if the target says so (``plan/cdc/state``).

The state table beside a target keeps the order values of deleted keys. The retention is the
target's property ``acidsql.cdc.tombstone.retention``; without it nothing is forgotten.

Old deletes are forgotten in a transaction of its own, after the transaction that has applied
records. If it fails, the records stay applied, and a later attempt deletes the same rows.
"""

from __future__ import annotations

import logging
import time

from acidsql.acid.cdc import TOMBSTONE_RETENTION, belongs_to, state_name
from acidsql.acid.table import Table, TableName
from acidsql.metastore.foreign import acid_table
from acidsql.plan.cdc.state import forget_statement, is_state, tombstone_retention
from acidsql.statements.context.family import Context
from acidsql.statements.context.result import Clock
from acidsql.statements.dml.phases import Phases
from acidsql.txn import NO_WAIT_SETTINGS

_log = logging.getLogger(__name__)
_LEAST_PAUSE_S = 3600.0


class Tombstones:
    """Forgets deletes in one session: deletes their order values from the state table."""

    def __init__(self, context: Context, phases: Phases) -> None:
        self._context, self._phases = context, phases

    def forget(
        self, target: Table, forgotten_at: dict[TableName, float] | None = None
    ) -> str | None:
        """Forget the deletes of a target that are older than its retention, in a transaction of its
        own. An error is not raised but logged, and returned as the note.

        Args:
            target: The target.
            forgotten_at: The time of the last attempt that succeeded, by target, on the monotonic
                clock in seconds. This method notes its success in this dict. If the last success is
                less than an hour ago, or a tenth of the retention if that is more, nothing is done.
                None: forget now.

        Returns:
            A note for the receipt: how many deletes were forgotten, or why none could be; None if
            there was nothing to forget, or it is too early.
        """
        name, now_s = target.name, time.monotonic()
        try:
            retention_ms = tombstone_retention(target.properties)
            if retention_ms is None:
                return None
            pause_s = max(_LEAST_PAUSE_S, retention_ms // 10_000)
            if (
                forgotten_at is not None
                and name in forgotten_at
                and now_s < forgotten_at[name] + pause_s
            ):
                return None
            state = acid_table(self._context.metastore.find(state_name(name)))
            if state is None or not is_state(state) or not belongs_to(state, target):
                return None
            count = self._run_delete(forget_statement(state, retention_ms))
            if forgotten_at is not None:
                forgotten_at[name] = now_s
        except Exception as error:  # the records are committed, whatever happens here
            _log.warning("Old deletes of %s could not be forgotten: %s", name, error)
            return f"old deletes could not be forgotten ({TOMBSTONE_RETENTION}): {error}"
        return f"{count:,} old delete{'s' * (count > 1)} forgotten" if count else None

    def _run_delete(self, text: str) -> int:
        """Run a DELETE in a transaction of its own, and return the number of deleted rows. It fails
        instead of waiting if another holds a conflicting lock: a later attempt deletes the same
        rows."""
        clock = Clock()
        statement, statement_text, prepared = self._phases.preparer.prepare_text(text)
        with (
            self._context.transactions.own_transaction(
                statement_text.text, waits=NO_WAIT_SETTINGS
            ) as transaction,
            transaction.statement("DELETE", statement_text.text) as work,
        ):
            held = self._phases.holder.hold(transaction.txn, statement, statement_text, prepared)
            self._phases.writer.write(transaction, held, statement_text, clock, work)
            self._context.transactions.end_statement(transaction)
        return sum(published.deleted for _, published in work.published)
