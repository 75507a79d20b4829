"""Compares a batch with the ledger: is it the next one, a repeated one, or out of order?

Pure functions. Spark writes a batch's offsets into the checkpoint before the batch runs, and notes
the batch's end after the sink has returned. After a crash between the two, Spark runs the batch
again, with the same number and the same offsets. So only the newest batch is ever repeated, and
only as the first batch of a new run.
"""

from __future__ import annotations

from acidsql.errors import StreamError
from acidsql.metastore.streams import Batch, StreamEntry

_RESTARTED = (
    "The application '{app}' has written batch {last} to {sink} in the streaming query {query}. "
    "Now another query begins with batch {version} under the same name: its checkpoint is new. "
    "Give the new query a name of its own, or call acid.forget_stream('{app}') if it may write all "
    "batches."
)
_GAP = (
    "Batch {version} of '{app}' follows batch {last} in {sink}: the batches between them are "
    "missing. Was the metastore restored from a copy, or did another sink take them? "
    "acid.forget_stream('{app}') lets the stream go on without them."
)
_REWOUND = (
    "Batch {version} of '{app}' comes after batch {last} was committed in {sink} (transaction "
    "{txn}). The checkpoint is older than the table: it was copied, restored or shared with "
    "another query."
)
_REPEATED = (
    "This run has written batch {version} of '{app}' to {sink} already, in transaction {txn}. Call "
    "the sink once for each batch. Two sinks of one query into one table need names of their own: "
    "acid.sink(…, txn_app_id=…)."
)
_SHARED = (
    "Batch {version} of '{app}' was committed in {sink} with other offsets: two queries use copies "
    "of one checkpoint. To skip this batch would lose its rows."
)


def is_replay(entry: StreamEntry | None, batch: Batch, *, first: bool) -> bool:
    """Whether a batch of a stream was committed already, so that it must be skipped. False if it is
    the one after the entry's, or there is no entry. A fingerprint that is "" is not compared.

    Args:
        entry: The ledger's entry for the batch's application and sink.
        batch: The batch that Spark wants to be written.
        first: This is the first batch of its run in this sink.

    Raises:
        StreamError: The batch is out of order. STREAM_TAKEN_OVER: another run has the entry, and
            ``first`` is false. STREAM_RESTARTED: another query has a number that is not new.
            STREAM_GAP: batches are missing. STREAM_REWOUND: an older one comes again.
            STREAM_BATCH_REPEATED: the same run repeats a batch. STREAM_SHARED: the batch had other
            offsets.
    """
    if entry is None:
        return False
    last = entry.batch
    if last.run_id != batch.run_id and not first:
        raise taken_over_error(batch, entry)
    if batch.query_id != last.query_id and batch.version <= last.version:
        raise _stream_error("STREAM_RESTARTED", _RESTARTED, batch, entry)
    if batch.version == last.version + 1:
        return False
    if batch.version > last.version:
        raise _stream_error("STREAM_GAP", _GAP, batch, entry)
    if batch.version < last.version:
        raise _stream_error("STREAM_REWOUND", _REWOUND, batch, entry)
    # Spark repeats a batch in a new run only. So this run wrote it, perhaps by another sink, whose
    # rows are not these rows.
    if not first or last.run_id == batch.run_id:
        raise _stream_error("STREAM_BATCH_REPEATED", _REPEATED, batch, entry)
    if batch.fingerprint and last.fingerprint and batch.fingerprint != last.fingerprint:
        raise _stream_error("STREAM_SHARED", _SHARED, batch, entry)
    return True


def taken_over_error(batch: Batch, entry: StreamEntry | None) -> StreamError:
    """Make the error STREAM_TAKEN_OVER for a batch whose run has lost its entry in the ledger:
    another run has the ``entry`` now, or (None) the entry is gone."""
    now = "the entry is gone" if entry is None else f"the run {entry.batch.run_id} has it now"
    message = (
        "The run {run} of '{app}' may not write batch {version} to {sink}: "
        + now
        + ". Two queries use one checkpoint, or the table was dropped. Nothing of the batch was "
        "written."
    )
    return _stream_error("STREAM_TAKEN_OVER", message, batch, entry)


def _stream_error(
    condition: str, message: str, batch: Batch, entry: StreamEntry | None
) -> StreamError:
    """Make a StreamError with the facts of the batch and the entry: they fill the names in braces
    in ``message``, and are the error's parameters. Facts of an entry that is None are "". A batch
    without sink or run has words in their place."""
    last = None if entry is None else entry.batch
    facts = {
        "app": batch.app_id,
        "version": batch.version,
        "sink": batch.sink or "acid.transaction()",
        "run": batch.run_id or "(no stream)",
        "last": "" if last is None else last.version,
        "query": "" if last is None else last.query_id,
        "txn": "" if entry is None else entry.txn_id,
    }
    return StreamError(message.format(**facts), condition=condition, sqlstate="55000", **facts)
