"""The check of a table: what is wrong with its directories, its files and their rows.

``directories`` has the rules about names and marks, ``contents`` those about one file, ``deletes``
those about the delete events of a bucket. ``job`` says which files to look at, and runs the tasks.

Rows are read by the readers of ``reading`` and ``folding``. This package changes nothing. It
must not know transactions, nor the catalog: it gets what they say as values. Read ``job`` first.
"""
