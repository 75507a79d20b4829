"""Runs Alembic on the caller's connection, without an ``alembic.ini``."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

# Alembic keeps its running environment in module globals.
_one_at_a_time = threading.Lock()


def migrate(connection: Connection, warehouse: str) -> None:
    """Let Alembic run the revisions that the database lacks, in the caller's store transaction,
    which the caller commits.

    Args:
        connection: The connection of that store transaction, which keeps other processes from
            changing the schema.
        warehouse: The location of the database ``default``, if a revision makes this.
    """
    with _one_at_a_time, _scripts() as directory:
        config = Config()
        config.set_main_option("script_location", str(directory).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        config.attributes.update(connection=connection, warehouse=warehouse)
        command.upgrade(config, "head")


@contextmanager
def _scripts() -> Iterator[Path]:
    """Yield the directory with the revisions; a temporary copy if acidsql lies in a zip
    (spark-submit --py-files)."""
    scripts = resources.files("acidsql.metastore.embedded.database.migrations")
    if isinstance(scripts, Path):
        yield scripts
        return
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "versions").mkdir()
        Path(directory, "env.py").write_bytes((scripts / "env.py").read_bytes())
        for revision in (scripts / "versions").iterdir():
            if revision.name.endswith(".py"):
                Path(directory, "versions", revision.name).write_bytes(revision.read_bytes())
        yield Path(directory)
