"""Directories of ORC files ⇄ DataFrames. Rows stay on the executors.

===========  =================================================================================
orc          the file format alone: no Spark, no table
files        file systems, lists of directories
tables       the files of a table: which there are, and what their footers say
spark        needs of Spark beside SQL: answers of the JVM, Python workers, few rows
writing      rows → files → published directories
reading      a snapshot's directories → live rows
folding      compaction: many directories → few
checking     what is wrong with directories, files and rows
===========  =================================================================================

Each package imports only the packages above it in this list. All of them share two modules:
``columns`` has columns as SQL text; ``event_records`` has the data that a statement's query, its
tasks and the driver exchange.

The caller hands write ids and snapshots to this package. It must not know statements or
transactions. Read ``reading/scan.py``, ``writing/event_writer.py`` and
``writing/publish.py`` first.
"""
