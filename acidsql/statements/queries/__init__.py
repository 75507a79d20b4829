"""Statements that read: SELECT and all others that only Spark runs.

``filler`` fills the stand-ins of a query with rows: ``table_rows`` of tables, ``view_rows`` of
views, ``changes`` of a change feed. ``statement_demands`` finds which rows matter.
``spark_statements`` runs what is Spark's, and ``explain`` shows how a statement would run.
``undo``, ``reverted`` and ``skipped_conflicts`` read what REVERT and RESTORE bring back.

This package must not change rows or the catalog. Read ``filler`` first.
"""
