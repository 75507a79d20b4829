"""Where tables and partitions lie: directories that are made, adopted, moved and removed.

``places`` makes and removes a table's directory. ``directories`` names the directories of
partitions. ``moving`` and ``moving_files`` rename a table's or a partition's directory.

This package must not know what is in the files. Read ``places`` first.
"""
