"""Alembic, used with a connection that is there already and without an ``alembic.ini``."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, inspect

# Alembic keeps the environment that is running in module globals.
_one_at_a_time = threading.Lock()


def migrate(connection: Connection, warehouse: str, version: int) -> None:
    """Run the revisions that are missing, in the store transaction that the caller has begun.

    Args:
        connection: With it; see ``Dialect.upgrade``.
        warehouse: Location of the database ``default``.
        version: VERSION.SCHEMA_VERSION; 0: nothing is there, or it was left half-made.
    """
    with _one_at_a_time, _scripts() as directory:
        config = Config()
        config.set_main_option("script_location", str(directory).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        config.attributes.update(connection=connection, warehouse=warehouse)
        if version == 1 and not inspect(connection).has_table("alembic_version"):
            command.stamp(config, "0001")  # made before there were revisions
        command.upgrade(config, "head")


@contextmanager
def _scripts() -> Iterator[Path]:
    """The directory that Alembic reads; a copy where we lie in a zip (spark-submit --py-files)."""
    here = resources.files("acidsql.metastore.embedded.migrations")
    if isinstance(here, Path):
        yield here
        return
    with tempfile.TemporaryDirectory() as copy:
        Path(copy, "versions").mkdir()
        Path(copy, "env.py").write_bytes((here / "env.py").read_bytes())
        for revision in (here / "versions").iterdir():
            if revision.name.endswith(".py"):
                Path(copy, "versions", revision.name).write_bytes(revision.read_bytes())
        yield Path(copy)
