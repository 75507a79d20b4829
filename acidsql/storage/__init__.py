"""Directories of ORC files ⇄ DataFrames. Rows stay on the executors.

===========  =================================================================================
orc          the file format alone: no Spark, no table
files        file systems, listings, footers looked at
spark        what acidsql needs of Spark that is not SQL: the JVM's few answers, workers, rows
writing      rows → files → published directories
reading      a snapshot's directories → live rows
folding      compaction: many directories → few
===========  =================================================================================

Each room imports only the rooms above it in this list. ``columns`` and ``event_records`` are the
words that the rooms share: columns as SQL text, and what travels between a statement's query, its
tasks and the driver.

This package is handed write ids and snapshots. It must not know statements or transactions. Read
``reading/scan.py``, ``writing/event_writer.py`` and ``writing/publish.py`` first.
"""
