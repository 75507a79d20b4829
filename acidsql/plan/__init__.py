"""The meaning of statements: a bound statement becomes a query whose rows are events.

``rewrite`` turns INSERT, UPDATE, DELETE and MERGE into an ``EventQuery`` each; read
``event_query`` and ``update`` first. ``cdc`` turns AUTO CDC into several queries. ``query`` puts
stand-ins in the place of ACID tables.
``assignment`` says which value may go into which column. ``locking`` says which locks a statement
takes. ``lower`` hands the composed text to Spark and gives a lazy DataFrame back.

This package knows the language, and the columns that ``storage/`` wants. It must not know
transactions or files.
"""
