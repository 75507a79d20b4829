"""The envelopes of change records: what each tool of replication wraps around a changed row.

Read ``parts.py`` first: it has the ``Envelope``, which each other module makes of one format, and
``streams/changes.py`` makes the DataFrame of it. All of it is SQL for Spark. This package must not
know tables or statements, and no row reaches Python.
"""
