"""The ORC file format: reads and completes footers, reads rows into Arrow, writes files.

``encoding/`` reads and writes the bytes of a file's tail and streams. ``batches`` reads a file in
bounded batches. ``writer`` writes any ORC file with pyarrow so that Hive understands the file;
``event_file`` writes files of events. ``row_schema`` brings arrays into the types of a table's
columns.

This package runs in Spark's Python workers. It must not know Spark, file systems or tables. Read
``event_file`` first.
"""
