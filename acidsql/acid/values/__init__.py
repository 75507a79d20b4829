"""Hive's types, and what is known of values: pure functions.

``types`` parses a type, ``evolution`` says which type may become which, ``partition_values`` which
value a partition's text is. ``predicate`` is what a condition says about values.

This package must not know tables. Read ``types`` first.
"""
