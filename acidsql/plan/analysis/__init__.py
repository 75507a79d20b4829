"""Spark's analysis of composed text: the only modules of ``plan/`` that ask Spark.

``lower`` makes a lazy DataFrame of composed text, and turns Spark's errors into ours.
``composed_texts`` remembers the texts for ``evaluation_errors``, by which errors about a row show
the user's own text. ``syntax_errors`` shows Spark's syntax errors at whole words, with advice.
``demands`` reads in Spark's plan which rows of a table a query needs. ``missing_names`` says which
names are like one that does not exist.

This package must not compose text of its own. Read ``lower`` first.
"""
