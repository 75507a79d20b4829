"""The readers of statements that change rows, and the cursor that all readers share.

``cursor`` is a place among tokens: ``is_at``, ``accept``, ``expect``. ``insert``, ``modify``,
``cdc`` and ``load`` read INSERT, UPDATE, DELETE, MERGE, AUTO CDC and LOAD DATA. ``plain_values``
reads long lists of literals fast. ``effects`` and ``refusals`` judge statements of Spark's and of
other systems.

This package must not know what a catalog holds. Read ``cursor`` and ``modify`` first.
"""
