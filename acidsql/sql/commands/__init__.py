"""The readers of all statements that do not change rows.

``create_table``, ``tables``, ``columns``, ``alter_columns``, ``constraints``, ``views`` and
``databases`` read DDL; ``show`` reads SHOW and DESCRIBE, ``transaction`` BEGIN to ABORT,
``compactions``, ``statistics`` and ``undo`` what their names say; ``options`` SET of our settings.

This package must not know what a catalog holds. Read ``tables`` first.
"""
