"""What a program calls: ``connect``, ``Session`` and the objects that its methods return.

``core`` has what all methods of a session share. ``opening`` finds a new session's settings,
warehouse and metastore. ``history``, ``checks`` and ``health`` are methods beside ``sql``,
``streams`` those about streams; ``picture`` draws the health of a table; ``migration`` takes
tables over from other places. ``names`` lists names for completion, ``info`` tells what a question
needs. ``dataframes/`` composes statements from DataFrames and Columns. ``extension/`` lets Spark's
own calls know ACID tables; ``unknown_tables`` notes on Spark's errors that acidsql has a table.

This package hands every statement to ``statements/runner.py``. It must not read or write a table's
files itself. Read ``session`` first.
"""
