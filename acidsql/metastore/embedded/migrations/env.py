"""Alembic runs this script first. It hands the caller's connection to the revisions."""

from alembic import context

_given = context.config.attributes

context.configure(connection=_given["connection"])
context.run_migrations(connection=_given["connection"], warehouse=_given["warehouse"])
