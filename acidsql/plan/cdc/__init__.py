"""AUTO CDC as queries of events: records are folded by key, then joined once with the target.

``queries`` composes them. ``rules`` reads the statement's clauses, ``order`` the order of records,
``fold`` finds the newest record of each key, ``decision`` says what a record changes, ``history``
the same with history (SCD 2), ``state`` what the target cannot tell.

This package must not run queries or know transactions. Read ``queries`` first.
"""
