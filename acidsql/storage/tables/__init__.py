"""The files of a table: which there are, and what their footers say.

``listing`` lists the directories that a snapshot reads, ``file_info`` reads footers of ORC and
``parquet`` those of Parquet. ``hive2`` and ``replaced`` know files that other writers name in ways
of their own.

This package must not read rows. Read ``listing`` first.
"""
