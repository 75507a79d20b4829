"""Statements that change rows, and LOAD DATA.

``prepare``, ``hold`` and ``write`` are three ``phases`` of such a statement: its meaning, its locks
and snapshot, its events. ``returning`` and ``preview`` show the rows that change. ``load`` adopts
files. ``create_as_select`` makes a table with rows. ``partition_renames`` moves rows to another
partition's name. ``filled_columns`` writes the DEFAULT of a new column into old rows.

This package knows the queries and DDL below it. It must not know AUTO CDC, which is composed of
its phases. Read ``prepare`` first.
"""
