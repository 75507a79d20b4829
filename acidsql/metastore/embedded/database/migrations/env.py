"""Alembic runs this script first. It hands the caller's connection to the revisions."""

from alembic import context

_attributes = context.config.attributes

context.configure(connection=_attributes["connection"])
context.run_migrations(connection=_attributes["connection"], warehouse=_attributes["warehouse"])
