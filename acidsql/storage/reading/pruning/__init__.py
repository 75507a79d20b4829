"""Which partitions, files, stripes and buckets hold rows of interest.

``partition_columns`` compares values of partitions, ``bucket_pruning`` hashes, ``sargs`` ranges of
stripes, ``source_partitions`` the values that a MERGE's source has. ``inventory`` counts what is
there.

This package must not read rows of the table. Read ``partition_columns`` first.
"""
