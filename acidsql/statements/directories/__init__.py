"""Where tables and partitions lie: directories that are made, adopted, moved and removed.

``places`` makes and removes a table's directory. ``directories`` keeps INSERT OVERWRITE DIRECTORY
away from them. ``moving`` and ``moving_files`` move a table to another metastore.

This package must not know what is in the files. Read ``places`` first.
"""
