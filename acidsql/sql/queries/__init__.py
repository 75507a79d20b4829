"""The tables that a query names, without a tree of its expressions.

``references`` finds tables, query blocks and stars by place. ``query_scanner`` walks through a
query, ``scanner`` through a statement. ``conditions`` looks at a WHERE or ON, and
``table_changes`` at ``table_changes('t', …)``.

This package must not know what a catalog holds. Read ``references`` first.
"""
