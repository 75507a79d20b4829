"""The text of a statement, cut into tokens.

``tokens`` cuts it by sqlglot's lexer; a ``Span`` is a part of the text. ``lookahead`` looks at the
tokens that follow. ``parameters``, ``frames`` and ``given_names`` find ``:name``, ``{frame}`` and
names in string literals.

This package must not know statements. Read ``tokens`` first.
"""
