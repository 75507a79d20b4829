"""Hadoop's S3A for Spark, from Maven artifacts. Their list is in the folder ``s3a``."""

from __future__ import annotations

import functools
from pathlib import Path

import hive_jars
from hive_jars import UnavailableError, built, maven

SOURCES = Path(__file__).with_name("s3a")
HADOOP = "3.5.0"  # Spark's


@functools.cache
def missing() -> str | None:
    """Why Spark cannot open ``s3a:`` here; None if it can."""
    return hive_jars.missing("S3A", _build)


def class_path() -> str:
    """The entry of a class path that has all jars; empty if they are missing."""
    return "" if missing() else f"{_build() / 'jars'}/*"


def _build() -> Path:
    import pyspark

    if (
        not Path(pyspark.__file__)
        .with_name("jars")
        .joinpath(f"hadoop-client-api-{HADOOP}.jar")
        .exists()
    ):
        raise UnavailableError(f"the jars are those of Hadoop {HADOOP}, and Spark has another one")
    return built(
        "s3a", SOURCES, lambda directory: maven(SOURCES / "pom.xml", "copy", f"{directory}/jars")
    )
