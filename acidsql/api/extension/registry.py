"""Knows which extension is in charge of a Spark session."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from acidsql.api.core import SessionCore
from acidsql.api.extension.extension import Extension
from acidsql.storage.spark.session.jvm import session_key

# The extensions of each session, the newest last, by ``session_key``; the newest is in charge.
_extensions: dict[str, list[Extension]] = {}
_of_batches: dict[str, Extension] = {}  # of the sessions of batches that run
changing = threading.RLock()  # whoever changes the extensions, or the doors, holds this


def put_in_charge(extension: Extension, spark: SparkSession) -> None:
    """Put an extension in charge of a session, before older ones."""
    with changing:
        _extensions.setdefault(session_key(spark), []).append(extension)


def take_charge_from(extension: Extension, spark: SparkSession) -> None:
    """Take a session from an extension; a second call does nothing."""
    with changing:
        key = session_key(spark)
        others = [other for other in _extensions.get(key, []) if other is not extension]
        if others:
            _extensions[key] = others
        else:
            _extensions.pop(key, None)


@contextmanager
def in_charge_of_batch(extension: Extension, spark: SparkSession) -> Iterator[None]:
    """Put an extension in charge of the session of a batch while the block runs, unless another one
    is in charge of this session, and as long as any session is extended."""
    key = session_key(spark)
    _of_batches[key] = extension
    try:
        yield
    finally:
        del _of_batches[key]


def is_any_in_charge() -> bool:
    """Whether any session is extended."""
    return bool(_extensions)


def extension_of(owner: Any) -> Extension | None:
    """Return the extension in charge of a session, or of a DataFrame's session; None if there is
    none."""
    if not _extensions:
        return None
    spark = owner if hasattr(type(owner), "newSession") else owner.sparkSession
    key = session_key(spark)
    extensions = _extensions.get(key)
    return extensions[-1] if extensions else _of_batches.get(key)


def is_extended(session: SessionCore) -> bool:
    """Whether Spark's own calls know the tables of a session of acidsql's."""
    with changing:
        return any(
            extension.session is session
            for extensions in _extensions.values()
            for extension in extensions
        )
