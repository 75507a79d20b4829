"""Statements that create, alter and drop: tables, columns, constraints, databases, views.

``tables`` and ``create`` are CREATE, DROP and TRUNCATE TABLE. ``columns``, ``constraints`` and
``table_properties`` are ALTER TABLE; ``column_references`` lists what names a column, and
``existing_rows`` asks whether the rows keep a new rule. ``transactions`` has BEGIN, COMMIT, LOCK
and their kin. ``state_tables`` are the tables that AUTO CDC keeps beside its targets.

This package must not write rows: a statement that changes rows is in ``dml/``. Read ``tables``
first.
"""
