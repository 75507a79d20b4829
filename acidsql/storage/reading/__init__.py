"""A snapshot's directories → live rows, as lazy DataFrames.

``read`` is the door: a table of a metastore, or any Hive ACID directory. ``scan`` reads insert
events with Spark's own ORC reader. ``events/`` takes away the rows that a delete event names, and
reads, in Python tasks, the files that Spark cannot read rightly, or takes long to. ``pruning/``
leaves out the files, stripes and row groups that hold no row of interest. ``changes`` reads the
events between two snapshots.

This package reads what ``acid.state`` chose for a snapshot. It must not decide which write ids are
valid. Read ``scan`` first.
"""
