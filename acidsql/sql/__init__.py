"""The language: parses text to statements. This package knows neither Spark nor the catalog.

There are no trees of expressions. Expressions and queries stay spans of the user's text, which
Spark gets verbatim. Read ``tokens``, ``cursor`` and ``parser`` first.

===============  ================================================================================
tokens           the text cut by sqlglot's lexer; ``Span``; ``split_statements`` for cells
statements       the parsed statements, as frozen dataclasses (``parts``, ``…_statements``)
cursor           a place among tokens: ``is_at``, ``accept``, ``expect``; expressions as islands
parser           ``parse``: decides whose a statement is, and which function reads it
insert modify    INSERT and multi-insert; UPDATE, DELETE, MERGE; ``cdc`` is AUTO CDC
tables columns   CREATE, ALTER, DROP, TRUNCATE TABLE; the columns in them
show             SHOW, DESCRIBE; ``databases`` are those about databases
transaction      BEGIN … COMMIT, savepoints, LOCK, ABORT; ``options`` is SET of our settings
effects          the effect of a statement of Spark's, for a transaction around it
references       ``references``: tables, query blocks and stars of a query, by place
scanner          finds them in a statement; ``query_scanner`` in a query, with ``lookahead``
binder           a statement and its table: which column gets which value
===============  ================================================================================

``grammar/dml.ebnf`` is the grammar. ``grammar/accept`` and ``grammar/reject`` have its cases.

This package must not know Spark, or what a catalog holds. Read ``tokens`` and ``parser`` first.
"""
