"""Streams into ACID tables, and out of them.

One idea of the sinks: a batch is a transaction whose COMMIT also notes which batch it was. The
rules for repeated batches are pure functions in ``metastore/stream_rules.py``; the ledger is in the
store.

Read ``batches.py`` first: one batch from start to finish. ``sink.py`` writes a batch's rows,
``auto_cdc.py`` applies it as changes, ``several.py`` to several tables, ``commit_points.py`` in the
transactions of the source; ``bad_records.py`` puts records aside. ``changes.py`` reads the records
of other tools, and ``packed.py`` keeps rows as texts. ``query.py`` knows what Spark tells about the
running query, ``writer.py`` is the ``DataStreamWriter`` of ``Session.write_stream``,
``identity.py`` checks the names of batches. The sinks run statements as a user does.

``source/`` is a table as the source of a stream; ``envelopes/`` has the records of other tools as
SQL. This package must not know the store's tables.
"""
