"""Insert and delete events, read from files without Spark's ORC reader.

``event_reader`` reads them in Python tasks and in the driver, ``orc_reader`` opens a file,
``originals`` numbers rows of files that have no row ids. ``deletes`` and ``deletion_vectors`` say
which rows are deleted; ``point_search`` finds a few rows.

This package must not choose the directories of a snapshot. Read ``event_reader`` first.
"""
