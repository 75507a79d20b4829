"""File systems, lists of directories, and facts from the footers of files.

``interface`` says what acidsql needs of a file system; ``filesystem`` finds the one of a path.
``listing`` says which files of a table a snapshot reads, ``entries`` what lies in one directory,
``partition_tree`` which partitions there are. ``file_info`` and ``orc_schema`` look into
footers. ``gone`` and ``missing`` name the error of a file that is not there any more.

All access to files goes through this package. It must not know Spark jobs or statements. Read
``interface`` and ``listing`` first.
"""
