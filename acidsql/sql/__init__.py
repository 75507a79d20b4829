"""The language: text → :mod:`statements`. No Spark here, and no trees of expressions.

``tokens`` cuts the text, ``parser`` (with ``insert``, ``rows``, ``merge``, ``tables``, ``show``)
reads statements, ``references`` finds the tables that a query names. Expressions and queries stay
spans of the user's text: Spark gets them verbatim.
"""
