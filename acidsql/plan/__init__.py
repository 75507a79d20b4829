"""The meaning of statements: each row-changing statement becomes a query that yields events.

``rewrite`` prepares a statement, ``event_query`` is the form of the result, ``locking`` gives the
locks, and ``lower`` hands the queries to Spark. This package knows neither transactions nor files.
Read ``event_query`` and ``update`` first.
"""
