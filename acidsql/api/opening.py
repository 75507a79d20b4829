"""Finds what a new session needs: its settings, its warehouse and its metastore."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard

from pyspark.sql import SparkSession

from acidsql.acid.paths import is_local, plain_path
from acidsql.errors import AcidSqlError, CatalogError, SettingError
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.hive.wire.address import is_address
from acidsql.metastore.interface import Metastore
from acidsql.settings import SPARK_PREFIX, Settings, setting_name
from acidsql.statements.directories.places import normalized_location
from acidsql.storage.files.filesystem import filesystem_for, real_location, sparks_location

if TYPE_CHECKING:
    from acidsql.metastore.hive.survey import Survey

_log = logging.getLogger(__name__)
_METASTORE_FILE = ".acidsql/metastore.db"
_PASSWORD = re.compile("://[^:/]*:[^@]*@|passw(or)?d", re.IGNORECASE)


def conf(spark: SparkSession, name: str) -> str | None:
    """The value of ``spark.acidsql.<name>`` in the Spark conf, or None."""
    return spark.conf.get(f"{SPARK_PREFIX}{name}", None)


def conf_settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings that the Spark conf has: the setting's name → its text, unchecked. In the
    conf, a name of Hive's has ``spark.acidsql.`` before it, and a name of acidsql's has ``spark.``.

    Raises:
        SettingError: UNKNOWN_SETTING: A name begins with ``spark.acidsql.``, and there is no such
            setting.
    """
    conf_values = {}
    for conf_name, value in spark.conf.getAll.items():
        if conf_name.startswith(SPARK_PREFIX) and (name := setting_name(conf_name)) is not None:
            conf_values[name] = value
    return conf_values


def may_extend(spark: SparkSession) -> bool:
    """Whether the Spark conf says that ``connect`` extends Spark's own calls. Raise SettingError if
    ``spark.acidsql.extend`` is neither true nor false."""
    value = (conf(spark, "extend") or "false").strip().lower()
    if value not in ("true", "false"):
        raise SettingError(
            f"{SPARK_PREFIX}extend={value} is neither true nor false.", name="extend"
        )
    return value == "true"


def open_metastore(url: str | None, warehouse: str, settings: Settings) -> Metastore:
    """Open acidsql's own metastore at a URL or, without one, the SQLite file in a local warehouse.
    The warehouse's directory is made if it is missing, also with a URL; so is the SQLite file.

    Raises:
        SettingError: The warehouse cannot be made; or there is no URL, and the warehouse is not
            local.
        MetastoreError: The metastore cannot be opened.
    """
    files = filesystem_for(warehouse)
    try:
        files.create_directory(warehouse)
    except OSError as error:
        raise SettingError(f"The warehouse '{warehouse}' cannot be made: {error}") from error
    if url is None:
        if not is_local(warehouse):
            raise SettingError(
                f"The warehouse '{warehouse}' is not on this machine: pass metastore=…, because "
                "an SQLite file cannot be shared over a network."
            )
        path = f"{plain_path(warehouse)}/{_METASTORE_FILE}"
        files.create_directory(path.rpartition("/")[0])
        url = sqlite_url(path)
    return EmbeddedMetastore(url, warehouse=warehouse, settings=settings)


def open_hive(url: str, warehouse: str | None) -> tuple[Metastore, str]:
    """Open the Hive Metastore at a URL, and return it with the warehouse that it names.
    ``warehouse`` is what the user gave; it must be None, because the metastore decides.

    Raises:
        SettingError: Thrift is not installed, the URL is wrong, or ``warehouse`` is given.
        MetastoreError: The metastore cannot be opened.
    """
    if warehouse is not None:
        raise SettingError(
            f"A Hive Metastore decides where its tables lie: leave out warehouse='{warehouse}'.",
            name="warehouse",
        )
    with _name_missing_package():
        from acidsql.metastore.hive.store import HiveMetastore
    store = HiveMetastore(url, list_names=_file_names)
    return store, store.warehouse


def open_metastore_without_spark(url: str | None, warehouse: str | None) -> Metastore:
    """Open the metastore at a URL (acidsql's own or Hive's) or, without one, the SQLite file in a
    warehouse, with default settings. Spark is not needed. Without a URL, a missing SQLite file is
    an error. With the URL of acidsql's own metastore, the warehouse is ``spark-warehouse`` by
    default.

    Raises:
        SettingError: Neither is given, there is no metastore in the warehouse, or the URL of a Hive
            Metastore is wrong, needs Thrift, or comes with a warehouse.
        MetastoreError: The metastore cannot be opened.
    """
    if is_hive(url):
        return open_hive(url, warehouse)[0]
    if url is not None:
        return EmbeddedMetastore(url, warehouse=warehouse_location(warehouse or "spark-warehouse"))
    if warehouse is None:
        raise SettingError("Give the warehouse or the metastore: Spark is not asked for them.")
    place = warehouse_location(warehouse)
    if not is_local(place) or not filesystem_for(place).exists(f"{place}/{_METASTORE_FILE}"):
        raise SettingError(f"There is no metastore in the warehouse '{warehouse}'.")
    return open_metastore(None, place, Settings())


def open_survey(url: str) -> Survey:
    """Connect to the Hive Metastore at a URL, and return the connection, which can also read the
    server's settings and list tables of all kinds.

    Raises:
        SettingError: Thrift is not installed, or the URL is none of a Hive Metastore.
        MetastoreError: The metastore cannot be opened.
    """
    need_hive(url)
    with _name_missing_package():
        from acidsql.metastore.hive.survey import Survey
    return Survey(url, list_names=_file_names)


@contextmanager
def _name_missing_package() -> Iterator[None]:
    """Turn an ImportError in the block into a SettingError that names the missing package, and says
    that ``acidsql[hive]`` must be installed."""
    try:
        yield
    except ImportError as error:
        raise SettingError(
            f"A Hive Metastore needs the package {error.name}: pip install 'acidsql[hive]'.",
            name="metastore",
        ) from error


def is_hive(url: str | None) -> TypeGuard[str]:
    """Whether a metastore's URL is that of a Hive Metastore."""
    return url is not None and is_address(url)


def has_password(url: str) -> bool:
    """Whether the URL of a metastore may have a password: before the host, where SQLAlchemy takes
    all characters but an @ for one, or as ``password`` or ``passwd`` behind it."""
    return bool(_PASSWORD.search(url))


def need_hive(url: str) -> None:
    """Raise SettingError unless this is a Hive Metastore's URL, which begins with ``thrift://``. No
    connection is made."""
    if not is_hive(url):
        raise SettingError(
            "The URL of a Hive Metastore begins with thrift://, as in thrift://host:9083.",
            name="metastore",
        )


def _file_names(directory: str) -> list[str]:
    """Return the names of the entries in a directory; [] if there is no such directory."""
    return [entry.name for entry in filesystem_for(directory).list_if_there(directory)]


def warehouse_location(warehouse: str) -> str:
    """Return the location of a warehouse, absolute; a local one, which may begin with ``file:``, is
    without links. A path without a scheme is on ``fs.defaultFS``; if that is this machine's disk, a
    relative path is below the current directory of this process. Nothing is created.

    Raises:
        SettingError: The text is no path of a directory, or is a whole file system (``/``).
    """
    if not warehouse.strip():
        raise SettingError("warehouse='' names no directory.", name="warehouse")
    try:
        return normalized_location(real_location(sparks_location(warehouse)), may_be_link=True)
    except (CatalogError, ValueError) as error:
        raise SettingError(f"The warehouse '{warehouse}' cannot be used: {error}") from error


def warn_of_missing_syncs(warehouse: str) -> None:
    """Log a warning if the files in a warehouse are not synced to a disk when they are closed. A
    warehouse that cannot be opened is left to the first statement."""
    try:
        reason = filesystem_for(warehouse).unsynced_reason
    except AcidSqlError:
        return
    if reason is not None:
        _log.warning("The warehouse '%s': %s.", warehouse, reason)
