"""The DataFrame API of a session: methods that compose a statement, and run it as ``sql`` does.

The names are those of PySpark's ``DataFrame.mergeInto`` and of Delta Lake's ``DeltaTable``. Read
``methods.py`` first; ``merge.py`` is the builder of MERGE, ``text.py`` writes parts of statements.

This package must not know files or transactions: each method is a statement, and the receipt shows
its text.
"""
