"""The language: text → statements. No Spark here, and no trees of expressions.

Expressions and queries stay spans of the user's text: Spark gets them verbatim.

===============  ================================================================================
tokens           the text cut by sqlglot's lexer; ``Span``; ``split_statements`` for cells
statements       what a statement says, as frozen values (``parts``, ``transaction_statements``)
cursor           a place among tokens: ``at``, ``accept``, ``expect``, and expressions as islands
parser           ``parse``: whose statement is it, and which grammar reads it?
insert modify    INSERT and multi-insert; UPDATE, DELETE, MERGE
tables columns   CREATE, ALTER, DROP, TRUNCATE TABLE; the columns in them
show             SHOW, DESCRIBE, databases
transaction      BEGIN … COMMIT, savepoints, LOCK, ABORT; ``options`` is SET of our settings
effects          may a statement of Spark's stand in a transaction? what does it change?
references       ``references``: tables, query blocks and stars of a query, by place
scanner          … found in a statement; ``query_scanner`` in a query; ``lookahead`` in the tokens
binder           a statement and its table: which column gets which value
===============  ================================================================================

``grammar/dml.ebnf`` is the grammar, with cases beside it.
"""
