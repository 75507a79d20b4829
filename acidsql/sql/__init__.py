"""The language: parses text to statements. This package knows neither Spark nor the catalog.

There are no trees of expressions. Expressions and queries stay spans of the user's text, which
Spark gets verbatim. ``parser`` decides whose a statement is, and which function reads it;
``binder`` says which column gets which value. The rooms, from the bottom up:

===============  ================================================================================
text/            the text cut by sqlglot's lexer; ``Span``; parameters, DataFrames, given names
parsed/          the parsed statements, as frozen dataclasses
queries/         the tables, query blocks and stars of a query, by place
grammar/         the cursor; INSERT, UPDATE, DELETE, MERGE, AUTO CDC, LOAD DATA; plain values
commands/        DDL, SHOW, transactions, compactions, SET of our settings
===============  ================================================================================

``grammar/dml.ebnf`` in the repository is the grammar. ``grammar/accept`` and ``grammar/reject``
have its cases.

This package must not know Spark, or what a catalog holds. Read ``text/tokens`` and ``parser``
first.
"""
