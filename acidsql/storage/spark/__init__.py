"""Things that acidsql needs of Spark beside SQL.

``jvm`` asks Spark's JVM what Python's interface does not tell. ``python_workers`` and
``worker_process`` see that Spark's Python workers can run our code, and run it without delay.
``task`` tells a worker which task is running.
``local_rows``, ``few_rows`` and ``literal_rows`` carry small numbers of rows between the driver and
Spark. ``repeatable`` says whether a query may be evaluated twice.

This package must not know the directories of a table. Read ``jvm`` first.
"""
