"""Opens sessions: ``connect`` finds the warehouse, the settings and the metastore of a session."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from acidsql.acid.paths import is_local, plain_path
from acidsql.errors import CatalogError, SettingError
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.interface import Metastore
from acidsql.session import Session
from acidsql.settings import Settings, known_settings
from acidsql.statements.places import entering
from acidsql.storage.files.filesystem import filesystem_for, real
from acidsql.storage.files.missing import name_missing_files
from acidsql.storage.spark.python_workers import prepare_workers

_CONF = "spark.acidsql."
_METASTORE_FILE = ".acidsql/metastore.db"
_newest: list[Session] = []


def connect(
    spark: SparkSession | None = None,
    *,
    warehouse: str | None = None,
    metastore: str | None = None,
    retries: int = 0,
    compactor: str = "background",
    settings: Mapping[str, str] | None = None,
) -> Session:
    """Open a new, independent session.

    Args:
        spark: The Spark session to run in. Default: the active session, else a new one.
        warehouse: The directory of the tables, on ``file:`` or ``hdfs:``. Default: the Spark conf
            ``spark.acidsql.warehouse``, else ``spark.sql.warehouse.dir``.
        metastore: The metastore's URL. Default: the Spark conf ``spark.acidsql.metastore``, else
            an SQLite file in the warehouse.
        retries: How often to run a statement again, on a new snapshot, after it failed because of
            another transaction (``TransientTxnError``).
        compactor: Who compacts the tables that this session writes. ``background``: a thread,
            while no statement runs, with at most a quarter of the task slots. ``inline``: the
            statement that made a compaction necessary, before the statement returns. ``off``: not
            this session. Run ``acidsql compactor`` or ``ALTER TABLE … COMPACT`` instead.
        settings: Settings by Hive's names (``{"hive.txn.timeout": "60s"}``). They take precedence
            over the Spark conf ``spark.acidsql.<name>``.

    Returns:
        The session. Close it, or use it as a context manager.

    Raises:
        SettingError: ``compactor`` or a setting's name or value is unknown, the warehouse cannot
            be made, ``metastore`` is missing and the warehouse is not local, or Spark's workers
            cannot run this package with the Python that PYSPARK_PYTHON names.
        MetastoreError: The metastore cannot be opened.
    """
    if spark is None:
        spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    if compactor not in ("background", "inline", "off"):
        raise SettingError(f"compactor='{compactor}' is not one of background, inline, off.")
    chosen = Settings.of({**_conf_settings(spark), **(settings or {})})
    where = warehouse or _conf(spark, "warehouse") or spark.conf.get("spark.sql.warehouse.dir")
    assert where is not None
    where = _place_of(where)
    store = _open_metastore(metastore or _conf(spark, "metastore"), where, chosen)
    prepare_workers(spark)
    name_missing_files()
    session = Session(spark, where, store, chosen, retries, compactor)
    _newest[:] = [session]
    return session


def newest() -> Session | None:
    """The session that was opened last, unless it is closed. ``%%acidsql`` uses this session."""
    return _newest[0] if _newest and not _newest[0]._closed else None


def _conf(spark: SparkSession, name: str) -> str | None:
    return spark.conf.get(f"{_CONF}{name}", None)


def _conf_settings(spark: SparkSession) -> dict[str, str]:
    """Settings in the Spark conf: ``spark.acidsql.`` before the name, as spark-submit demands."""
    found = {}
    for setting in known_settings():
        name = setting.name
        value = _conf(spark, name.removeprefix("acidsql."))
        if value is not None:
            found[name] = value
    return found


def _open_metastore(url: str | None, warehouse: str, settings: Settings) -> Metastore:
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


def _place_of(warehouse: str) -> str:
    """A relative path is one of the directory that Python runs in."""
    try:
        return entering(real(warehouse), links=True)
    except (CatalogError, ValueError) as error:
        raise SettingError(f"The warehouse '{warehouse}' cannot be used: {error}") from error
