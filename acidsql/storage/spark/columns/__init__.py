"""Columns as SQL text: the values and conditions that a person gives as ``F.col("price") * 2``.

A ``Column`` of PySpark's is a tree, which Spark has not analysed yet: of nodes in the JVM
(``nodes``), or of Spark Connect's messages (``messages``). Each part is written as the SQL that
Spark parses to the same expression (``writer``). A part that no SQL has is refused by name.

This package must not know statements. Read ``column_sql`` first.
"""
