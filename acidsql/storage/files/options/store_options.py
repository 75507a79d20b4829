"""Opens object stores by Arrow, with Hadoop's settings, and has those of HDFS, too. Workers import
this module, too.

A worker has no JVM to ask, so the driver hands the settings over as properties of its jobs
(``storage.spark.store_conf``).
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from acidsql.acid.paths import S3_SCHEMES
from acidsql.errors import SettingError
from acidsql.storage.files.options import azure_options, gcs_options, hdfs_options, s3_options
from acidsql.storage.files.options.hadoop_conf import HadoopConf

PREFIXES = (
    "fs.s3a.", "fs.gs.", "fs.azure.", "google.cloud.", *hdfs_options.PREFIXES, hdfs_options.CLIENT,
)  # fmt: skip
# The properties of a job: which settings there are, separated by commas, and where each is.
NAMES = "spark.acidsql.storage.names"
_SPARKS = "spark.hadoop."
PLACES = ("spark.acidsql.storage.", "spark.acidsql.storage.secret.", _SPARKS)

_LEAST_PYARROW = 21  # before, an upload that failed could pass for done, and options are missing
_UNREACHABLE = re.compile(r"NETWORK_CONNECTION|HTTP status 5\d\d|SLOW_DOWN|INTERNAL_FAILURE|curl")
_REFUSAL = re.compile("ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|status 40[13]")
_log = logging.getLogger(__name__)
_registered_settings: list[Mapping[str, str]] = []


def register(settings: Mapping[str, str]) -> None:
    """Let this process open stores and HDFS with these settings from now on; they replace earlier
    ones."""
    _registered_settings[:] = [dict(settings)]


def settings_here() -> Mapping[str, str]:
    """Return Hadoop's settings of object stores and HDFS, name → value: those of the running task;
    outside of a task those that were registered last. Without settings, the clients' own chains
    decide."""
    task = _task()
    if task is not None:
        return _task_settings(task)
    return _registered_settings[0] if _registered_settings else {}


def _task() -> Any | None:
    """Return the context of the task that Spark runs in this process; None outside of a task. A
    worker has imported PySpark before us."""
    module = sys.modules.get("pyspark.taskcontext")
    return None if module is None else module.TaskContext.get()


@lru_cache(maxsize=1)
def _task_settings(task: Any) -> Mapping[str, str]:
    """Return the object stores' settings, name → value, from the properties of a running task. If
    the driver has handed over a list of names, the settings are these, each with the value that the
    driver gave or else Spark's conf (``spark.hadoop.…``); without a list, all of Spark's conf. The
    last task's settings are kept.
    """
    properties = getattr(task, "_localProperties", None) or {}
    if NAMES in properties:
        names = properties[NAMES].split(",")
    else:  # nobody has handed anything over: what Spark's own conf says
        names = [name.removeprefix(_SPARKS) for name in properties if name.startswith(_SPARKS)]
    settings = {}
    for name in names:
        values = (properties.get(f"{place}{name}") for place in PLACES)
        value = next((value for value in values if value is not None), None)
        if value is not None and name.startswith(PREFIXES):
            settings[name] = value
    return settings


def open_store(scheme: str, authority: str, conf: Mapping[str, str]) -> pafs.FileSystem:
    """Open a bucket's or container's file system. Its own paths begin with the bucket's name.

    A warning in the log names the settings that have no effect. The store is asked whether the
    bucket is there.

    Args:
        scheme: ``s3a`` (``s3`` and ``s3n`` are the same), ``gs`` or ``abfss`` (``abfs``).
        authority: The bucket, or Azure's ``container@account.dfs.core.windows.net``.
        conf: Hadoop's settings, by name.

    Raises:
        SettingError: pyarrow is too old; a setting is wrong, or Arrow cannot obey it; or the store
            cannot be reached, has no such bucket, or refuses. No secret is in the message.
    """
    if int(pa.__version__.split(".")[0]) < _LEAST_PYARROW:
        raise SettingError(
            f"Object stores need pyarrow {_LEAST_PYARROW} or newer, on executors, too; here is "
            f"{pa.__version__}.",
        )
    place = f"{scheme}://{authority}"
    bucket, hadoop_conf, harmless, make = _store_kind(scheme, authority, conf)
    try:
        store = make()
        _warn_of_ignored_settings(place, tuple(hadoop_conf.unread_names(harmless)))
        _need_bucket(store, place, bucket, hadoop_conf)
    except (OSError, ValueError, ImportError) as error:
        # Not ``from error``: its text may have a key in it.
        raise _unopened_store_error(place, hadoop_conf.without_secrets(str(error))) from None
    return store


def _store_kind(
    scheme: str, authority: str, conf: Mapping[str, str]
) -> tuple[str, HadoopConf, tuple[str, ...], Callable[[], pafs.FileSystem]]:
    """Return what ``open_store`` needs of a kind of store: the bucket, its settings, beginnings of
    the names of settings that do not matter, and a function that opens the store. Raises
    SettingError if a setting is wrong, or Arrow cannot obey it.
    """
    if scheme in S3_SCHEMES:
        hadoop_conf = s3_options.s3_conf(conf, authority)
        options = s3_options.s3_arguments(
            hadoop_conf, authority, lambda b: pafs.resolve_s3_region(b)
        )
        return authority, hadoop_conf, s3_options.HARMLESS, lambda: pafs.S3FileSystem(**options)
    if scheme == "gs":
        hadoop_conf = gcs_options.gcs_conf(conf)
        options = gcs_options.gcs_arguments(hadoop_conf)
        return authority, hadoop_conf, gcs_options.HARMLESS, lambda: pafs.GcsFileSystem(**options)
    hadoop_conf = azure_options.azure_conf(conf, authority)
    options = azure_options.azure_arguments(hadoop_conf, authority)
    container = authority.partition("@")[0]
    return container, hadoop_conf, azure_options.HARMLESS, lambda: pafs.AzureFileSystem(**options)


@lru_cache(maxsize=64)  # once for each place and list of names
def _warn_of_ignored_settings(place: str, names: tuple[str, ...]) -> None:
    """Log a warning that the settings of these names have no effect, once for each place and list.
    Log nothing in a worker, or without names.
    """
    if names and _task() is None:
        _log.warning(
            "acidsql opens %s by Arrow, and does not obey these settings, though Spark may: %s",
            place,
            ", ".join(names),
        )


def _need_bucket(store: pafs.FileSystem, place: str, bucket: str, hadoop_conf: HadoopConf) -> None:
    """Raise an error unless the bucket is there, or can at least be listed. A missing bucket would
    read as an empty table. ``hadoop_conf`` is not used: ``store`` was made by these settings.

    Raises:
        SettingError: There is no such bucket.
        OSError: The store refuses, or does not answer.
    """
    try:
        bucket_info = store.get_file_info(bucket)
    except OSError:
        # The reply to HEAD has no text that says why. That to a list has.
        store.get_file_info(pafs.FileSelector(bucket))
        return
    if bucket_info.type == pafs.FileType.NotFound:
        raise SettingError(
            f"There is no '{bucket}' at {place}, or these settings lead to another store. Make the "
            "bucket, or look at the name and at the store's endpoint.",
            bucket=bucket,
        )


def _unopened_store_error(place: str, message: str) -> SettingError:
    """Return the error for a store that cannot be opened, with advice by the words of the message:
    an expired token, a wrong clock, another region, a refusal, or else a look at the settings. If
    the words say that the store does not answer, the condition is OBJECT_STORE_UNAVAILABLE.
    """
    if "ExpiredToken" in message or "EXPIRED_TOKEN" in message:
        advice = "The session token has expired. Set new keys, and call acidsql.connect again."
    elif "TIME_TOO_SKEWED" in message or "TimeTooSkewed" in message:
        advice = "Set this machine's clock."
    elif "HTTP status 301" in message or "AuthorizationHeaderMalformed" in message:
        advice = "The bucket is in another region: set fs.s3a.endpoint.region."
    elif _REFUSAL.search(message):
        advice = (
            "The store refuses these credentials, or they may not list this bucket. Without keys "
            "in Hadoop's settings they are those of the environment, a profile or the machine."
        )
    elif _UNREACHABLE.search(message):
        return SettingError(
            f"{place} does not answer: {message}. Look at the endpoint, the region and the "
            "network.",
            condition="OBJECT_STORE_UNAVAILABLE",
            sqlstate="08001",
            location=place,
        )
    else:
        advice = "Look at the store's settings (fs.s3a.…, fs.gs.…, fs.azure.…)."
    return SettingError(f"{place} cannot be opened: {message}. {advice}", location=place)
