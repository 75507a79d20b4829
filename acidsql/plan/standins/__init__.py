"""Names in a query: what each means, and which temporary view stands in for it.

``query`` puts stand-ins in the place of ACID tables. ``names`` looks a name up: common table
expressions, DataFrames, temporary views, tables. ``namesakes`` keeps tables apart whose last names
are equal, ``view_text`` is the text of a view.

This package must not read tables. Read ``query`` first.
"""
