"""Rows of events → files → published directories.

``save`` is the door: one statement's events, written and put into place. ``job`` runs the Spark
job; ``event_writer`` and ``delete_writer`` are its two stages and run in Python workers (or in the
driver, for few rows). ``publish`` moves the files into ``delta_…``, ``delete_delta_…`` and
``base_…`` directories, each complete at once.
``buckets/`` says which bucket a row belongs to. ``load`` and ``adopt`` take over files that others
wrote.

Files and directories are synced before the store commits. This package must not know how rows are
read. Read ``save``, ``event_writer`` and ``publish`` first.
"""
