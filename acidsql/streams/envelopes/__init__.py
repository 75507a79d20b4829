"""The envelopes of change records: what each tool of replication wraps around a changed row.

Read ``parts.py`` first: it has the ``Envelope``, which a module for each format makes, and
``streams/changes.py`` makes the DataFrame of it. ``values.py`` turns values into the types of
columns. All of it is SQL for Spark. This package must not know tables or statements, and no row
reaches Python.
"""
