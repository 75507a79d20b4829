"""Uploads to S3 that have begun and not ended. They are invisible, and the store keeps their parts.

A task that dies leaves one. Arrow cannot list them, but Hadoop's S3A can.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from acidsql.acid.paths import S3_SCHEMES, scheme_and_root
from acidsql.storage.spark.session.java_classes import java_class
from acidsql.storage.spark.session.store_conf import hadoop_conf

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload that has not ended.

    Attributes:
        path: Where its object would be.
        abort: Ends it without an object.
    """

    path: str
    abort: Callable[[], None]


def unfinished_uploads(spark: SparkSession, location: str) -> list[Upload]:
    """Return the unfinished uploads below a directory, as far as the store tells them. Return [] if
    the directory is not on S3, without a JVM (Spark Connect), and after an error of the store,
    which is only logged.
    """
    scheme, root = scheme_and_root(location)
    if scheme not in S3_SCHEMES or (conf := hadoop_conf(spark)) is None:
        return []
    jvm: Any = spark._jvm
    try:
        store = java_class(jvm, "org.apache.hadoop.fs.Path")(location).getFileSystem(conf)
        return _list_uploads(store, root, location.removeprefix(root).strip("/"))
    except Exception as error:  # the store may not allow it; then a rule of the bucket must do it
        _log.info("The unfinished uploads below %s are not known: %s", location, error)
        return []


def _list_uploads(store: Any, root: str, prefix: str) -> list[Upload]:
    """List the unfinished uploads below a prefix of a bucket. ``store``: Hadoop's; ``root``: the
    bucket's URL.
    """
    iterator, uploads = store.listUploads(prefix), list[Upload]()
    while iterator.hasNext():
        upload = iterator.next()
        abort = partial(store.abortMultipartUpload, upload)
        uploads.append(Upload(f"{root}/{upload.key()}", abort))
    return uploads
