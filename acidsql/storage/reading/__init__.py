"""A snapshot's directories → live rows, as lazy DataFrames.

``read`` is the door: a table of a metastore, or any Hive ACID directory. ``scan`` reads insert
events with Spark's own ORC reader; ``deletion_vectors`` and ``deletes`` take away the rows that a
delete event names. ``event_reader`` and ``orc_reader`` read, in Python tasks, the files that Spark
cannot read rightly, or takes long to. ``bucket_pruning``, ``partition_columns`` and ``sargs`` leave
out the files, stripes and row groups that hold no row of interest. ``point_search`` finds a few
rows in the driver.

This package reads what ``acid.state`` chose for a snapshot. It must not decide which write ids are
valid. Read ``scan`` first.
"""
