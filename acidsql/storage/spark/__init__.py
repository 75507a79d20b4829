"""Things that acidsql needs of Spark beside SQL.

``session/`` asks Spark's JVM what Python's interface does not tell, and sees that Spark's Python
workers can run our code. ``columns/`` writes Columns as SQL.
``local_rows``, ``few_rows`` and ``literal_rows`` carry small numbers of rows between the driver and
Spark. ``repeatable`` says whether a query may be evaluated twice.

This package must not know the directories of a table. Read ``session/jvm``
first.
"""
