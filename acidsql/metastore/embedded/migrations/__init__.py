"""How the schema came to be, one revision after the other; Alembic runs those that are missing.

A new revision is a file in ``versions``, made by hand after the others, whose ``upgrade`` uses
``steps``: asks before it creates, so that it can run again where the database commits DDL by
itself and the last attempt died half-way. It sets VERSION.SCHEMA_VERSION to its own number, which
is ``schema.SCHEMA_VERSION`` then. What the revisions make together is ``schema.metadata``; a test
compares them.
"""

from acidsql.metastore.embedded.migrations.run import migrate

__all__ = ["migrate"]
