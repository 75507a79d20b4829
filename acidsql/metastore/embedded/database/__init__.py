"""The database of an embedded metastore: its dialects, its schema, its engine.

``schema`` has Hive's tables and ours, ``engine`` opens a database in the way of its ``dialect``
(``sqlite``, ``postgresql``, ``mysql``), ``rows`` makes values of rows.

This package must not know what a transaction means. Read ``schema`` first.
"""
