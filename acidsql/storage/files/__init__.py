"""File systems, and lists of directories.

``interface`` has the operations that acidsql needs of a file system; ``filesystem`` finds the file
system of a path: ``local``, ``hdfs`` or ``object_store``. ``hdfs_file`` has HDFS's open files,
``libhdfs`` the other client for it, by ``arrow``. ``options/`` has Hadoop's settings. ``entries``
lists the entries of one directory, ``partition_tree`` the
partitions. ``gone`` and ``missing`` make the error for a file that is gone.

All access to files goes through this package. It must not know Spark jobs or statements. Read
``interface`` first.
"""
