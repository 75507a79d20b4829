"""What a program calls: ``connect``, ``Session`` and the objects that its methods return.

``opening`` finds a new session's settings, warehouse and metastore. ``history``, ``checks`` and
``health`` are the methods beside ``sql``; ``picture`` draws the health of a table; ``migration``
takes tables over from other places. ``dataframes/`` composes statements from DataFrames and
Columns.

This package hands every statement to ``statements/runner.py``. It must not read or write a table's
files itself. Read ``session`` first.
"""
