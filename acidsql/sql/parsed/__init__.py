"""The parsed statements, as frozen dataclasses.

``statements`` has those that change rows, and exports all others; ``parts`` has names, values and
clauses.

This package must not read text. Read ``statements`` first.
"""
