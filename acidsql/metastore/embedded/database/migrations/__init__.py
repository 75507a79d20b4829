"""The revisions of the schema; Alembic runs those that a database lacks.

A new revision is a file in ``versions``, written by hand. It finds either a store of the revision
before it, or one that the first revision has just made with all tables of ``schema``. So its
``upgrade`` must look before it changes anything, as ``steps.create`` and ``steps.seed`` do: then it
can also run again if the database commits DDL by itself and the last attempt died half-way. It sets
VERSION.SCHEMA_VERSION to its own number; set ``schema.SCHEMA_VERSION`` to that number, too. All
revisions together make ``schema.metadata``; a test compares the two.
"""

from acidsql.metastore.embedded.database.migrations.run import migrate

__all__ = ["migrate"]
