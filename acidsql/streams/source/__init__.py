"""A table as the source of a stream, or of a query.

``source`` is the data source of a stream, ``source_options`` reads its options, ``read_limits``
says how much a batch reads. ``table_reader`` is the data source of a query, ``batch_options`` reads
its options; ``directory_reader`` is that of a query without a metastore. ``catalog`` finds tables,
``split_reader`` runs in the tasks of queries.

This package runs in a process of Spark's without the session. It must not import what the sinks
need. Read ``source`` and ``table_reader`` first.
"""
