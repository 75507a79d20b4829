"""The bucket of a row, as Hive computes it.

``bucketing`` hashes batches in a task, ``bucket_sql`` writes the same as SQL, ``bucket_bytes``
hashes texts.

This package must not know files. Read ``bucketing`` first.
"""
