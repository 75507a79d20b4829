"""Which file system a path is on, what lies in a directory, what a footer says.

``interface`` says what acidsql needs of a file system; ``filesystem`` finds the one of a path.
``listing`` says which files of a table a snapshot reads. ``file_info`` and ``orc_schema`` look into
footers. ``gone`` and ``missing`` name the error of a file that is not there any more.

Every touch of a file goes through this package. It must not know Spark jobs or statements. Read
``interface`` and ``listing`` first.
"""
