"""File systems, lists of directories, and facts from the footers of files.

``interface`` has the operations that acidsql needs of a file system; ``filesystem`` finds the file
system of a path: ``local``, ``arrow`` (HDFS) or ``object_store``. ``store_options`` opens object
stores with Hadoop's settings, which ``s3_options`` and its like understand. ``listing`` lists the
files of a table that a snapshot reads, ``entries`` the entries of one directory, ``partition_tree``
the partitions. ``file_info`` and ``orc_schema`` read footers. ``gone`` and ``missing`` make the
error for a file that is gone.

All access to files goes through this package. It must not know Spark jobs or statements. Read
``interface`` and ``listing`` first.
"""
