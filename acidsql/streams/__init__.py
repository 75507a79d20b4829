"""Streams: the sinks that write the micro-batches of a streaming query into ACID tables.

One idea: a batch is a transaction whose COMMIT also notes which batch it was. The rules for
repeated batches are pure functions in ``metastore/stream_rules.py``; the ledger is in the store.

Read ``sink.py`` first: one batch from start to finish. ``query.py`` knows what Spark tells about
the running query, ``writer.py`` is the ``DataStreamWriter`` of ``Session.write_stream``,
``auto_cdc.py`` is the sink that applies changes, ``changes.py`` reads the records of other tools
for it, ``identity.py`` checks the names of batches, and ``methods.py`` has the public methods of a
session. This package runs statements as a user does; it must not know directories, files or the
store's tables.
"""
