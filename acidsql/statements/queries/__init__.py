"""Statements that read: SELECT and all others that only Spark runs.

``reader`` fills the stand-ins of a query with rows: ``table_rows`` of tables, ``view_rows`` of
views, ``changes`` of a change feed. ``explain`` shows how a statement would run. ``undo``,
``reverted`` and ``skipped_conflicts`` read what REVERT and RESTORE bring back.

This package must not change rows or the catalog. Read ``reader`` first.
"""
