"""What surrounds the code of a statement: Spark's settings, and errors that name files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from acidsql.errors import WriteError
from acidsql.storage.spark.session.jvm import composed_text_conf


@contextmanager
def file_errors() -> Iterator[None]:
    """Turn an OSError in the block into a WriteError that names the file. A ConnectionError is
    raised as it is, because then Spark's JVM is gone."""
    try:
        yield
    except ConnectionError:
        raise  # Spark's JVM is gone; no file is at fault
    except OSError as error:
        raise WriteError(
            f"A file could not be read or written: {error}.", path=error.filename
        ) from error


@contextmanager
def statement_environment(spark: SparkSession) -> Iterator[None]:
    """Run the block of a method under the conditions of a statement: Spark confs about the reading
    of SQL have the values that acidsql's own SQL needs, and an OSError becomes a WriteError that
    names the file. Afterwards the confs are as before."""
    with file_errors(), composed_text_conf(spark):
        yield
