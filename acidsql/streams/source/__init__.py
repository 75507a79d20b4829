"""A table as the source of a stream.

``source`` is the data source, ``source_options`` reads its options, ``read_limits`` says how much
a batch reads.

This package runs in a process of Spark's without the session. It must not import what the sinks
need. Read ``source`` first.
"""
