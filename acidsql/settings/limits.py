"""All settings of a session: limits, intervals and time-outs.

A setting that Hive has, too, has Hive's name (``hive.…``); the others begin with ``acidsql.``.
Values are written as in Hive (``300s``, ``100ms``, ``5min``, ``1000``). A duration without a unit
is in Hive's unit for that parameter. In Python a setting is an attribute, and durations are whole
milliseconds:

    >>> Settings.of({"hive.txn.timeout": "2min"}).txn_timeout_ms
    120000

Source: Hive ``HiveConf`` and ``MetastoreConf``; units as in ``TimeValidator``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from acidsql.errors import SettingError, suggestion
from acidsql.settings.compactor import CompactorSettings
from acidsql.settings.kinds import Setting, boolean, choice, count, duration, fixed

DEFAULT_PARTITION_NAME = "__HIVE_DEFAULT_PARTITION__"
FIRST_LOCK_SLEEP_MS = 100  # DbLockManager: 100 ms, then twice as long each time
OWN_PREFIX = "acidsql."  # of the settings that Hive does not have
SPARK_PREFIX = "spark.acidsql."  # of all settings in the Spark conf
_PREFIXES = (OWN_PREFIX, "hive.")  # settings keep these after SPARK_PREFIX
_READ_BY_CONNECT = ("warehouse", "metastore", "extend")  # confs that are no settings
_OF_STORES = "storage."  # confs that acidsql itself writes
LEAST_LOCK_SLEEP_CAP_MS = 15_000  # DbLockManager.MAX_SLEEP: the cap is never lower than this


@dataclass(frozen=True, slots=True)
class Settings(CompactorSettings):
    """All settings of a session; immutable. Build one with ``Settings.of``."""

    txn_timeout_ms: int = duration(
        "hive.txn.timeout",
        "300s",
        "A transaction without a heartbeat for this time is aborted by any session that notices.",
        least_ms=10,
    )
    lock_numretries: int = count(
        "hive.lock.numretries",
        "100",
        "How often Hive checks a waiting lock before it gives up. With the pauses between the "
        "checks this limits the wait for a lock, by default to some 92 minutes.",
    )
    lock_sleep_between_retries_ms: int = duration(
        "hive.lock.sleep.between.retries",
        "60s",
        "Hive's longest pause between two checks; with numretries it bounds the total wait.",
    )
    lock_poll_interval_ms: int = duration(
        "acidsql.lock.poll.interval",
        "2s",
        "Our longest pause between two checks: nobody should wait a minute for a free lock.",
    )
    metastore_busy_timeout_ms: int = duration(
        "acidsql.metastore.busy.timeout",
        "60s",
        "How long one operation waits for another process or thread that writes to the metastore. "
        "A server disconnects a process that stops for half of this time in the middle of a write.",
    )
    xlock_write: bool = boolean(
        "hive.txn.xlock.write",
        "true",
        "true: UPDATE, DELETE and MERGE wait for each other (EXCL_WRITE). false: they do not wait, "
        "and the first to commit wins (SHARED_WRITE).",
    )
    xlock_iow: bool = boolean(
        "hive.txn.xlock.iow",
        "false",
        "true: INSERT OVERWRITE and TRUNCATE take an EXCLUSIVE lock, as by Hive's default: INSERT, "
        "and statements that read the table and write to another one, wait for them, and they wait "
        "for these. That is not necessary here, because they write a new base.",
    )
    conflicts_by_row: bool = choice(
        "acidsql.conflict.detection",
        "partition",
        "What two transactions must not both change: the same partition (Hive's rule), or the same "
        "row. With 'row', UPDATE, DELETE and MERGE without INSERT do not wait for each other.",
        {"partition": False, "row": True},
    )
    max_open_txns: int = count(
        "hive.max.open.txns", "100000", "At most this many transactions may be open at a time."
    )
    housekeeper_interval_ms: int = duration(
        "metastore.acid.housekeeper.interval",
        "60s",
        "How often timed-out transactions are aborted and old rows of the metastore are deleted.",
    )
    txn_history_retention_ms: int = duration(
        "acidsql.txn.history.retention",
        "7d",
        "How long the metastore remembers how a transaction ended.",
        unit="d",
    )
    lease_timeout_ms: int = duration(
        "acidsql.lease.timeout",
        "1h",
        "About how long the cleaner keeps the files that a lazy DataFrame reads.",
        least_ms=10,
    )
    values_max_rows: int = count(
        "acidsql.values.max.rows",
        "10000",
        "Literal rows of VALUES, up to this number, are written without a Spark job. If all values "
        "are plain literals, they do not even need Spark's parser.",
        least=0,
    )
    driver_max_rows: int = count(
        "acidsql.driver.max.rows",
        "10000",
        "The driver itself writes up to this number of rows (at most 16 MiB), or ten times as "
        "many row ids of a DELETE, without a Python worker. It tries this if few rows are likely: "
        "for UPDATE and DELETE with a WHERE that has no subquery, for MERGE with a tiny source, "
        "for AUTO CDC of few keys, and for INSERT of a query that Spark estimates to be small. If "
        "there are more rows, a job does all the work, and the time of the attempt is lost. In a "
        "table of 16 to 256 MiB the driver also reads the files itself to find the rows of such an "
        "UPDATE or DELETE, if WHERE compares columns with literals; for AUTO CDC of up to 5,000 "
        "keys also in a smaller table. And it compacts up to 100 ORC files of together 1 MiB, "
        "but not on an object store. 0: never.",
        least=0,
    )
    fast_paths: bool = boolean(
        "acidsql.fast.paths",
        "true",
        "false: every statement runs by Spark jobs, joins and full scans alone, without the faster "
        "ways of doing the same. For tests, and to find out whether a faster way is to blame.",
    )
    warm_workers: str = choice(
        "acidsql.warm.workers",
        "statement",
        "What starts Spark's Python workers, in the background and once for each Spark context: "
        "'statement': the first statement that may need workers to write its rows, while the "
        "statement is planned. 'connect': connect, even if the session only reads, so that they "
        "are ready if the first statement comes some seconds later. 'off': the first task that "
        "needs a worker; the task waits for the worker. Spark ends workers that are idle for a "
        "minute.",
        {word: word for word in ("statement", "connect", "off")},
    )
    hdfs_client: str = choice(
        "acidsql.hdfs.client",
        "native",
        "How connect opens HDFS, for this process and Spark's workers. 'native': by hdfs-native, "
        "without a JVM (pip install 'acidsql[hdfs]'). 'arrow': by Arrow and Hadoop's libhdfs.so, "
        "which cannot sync files to the disks.",
        {word: word for word in ("native", "arrow")},
    )
    ignores_missing: bool = boolean(
        "hive.exec.drop.ignorenonexistent",
        "false",
        "true: DROP TABLE and DROP VIEW of what is not there do nothing, as with IF EXISTS.",
    )
    default_tables: bool = boolean(
        "acidsql.default.tables",
        "false",
        "true: a new table is an ACID table also in Spark's own calls of a session that acidsql "
        "extends, unless the call names another format: in ``spark.sql``, ``saveAsTable`` and "
        "``writeTo``. In ``acid.sql`` it always is.",
    )
    max_dynamic_partitions: int = count(
        "hive.exec.max.dynamic.partitions",
        "1000",
        "A statement that would write to more than this number of partitions fails.",
    )
    default_partition_name: str = fixed(
        "hive.exec.default.partition.name",
        DEFAULT_PARTITION_NAME,
        "The directory that stands for NULL and for the empty string.",
    )

    @classmethod
    def of(cls, values: Mapping[str, object] | None = None) -> Settings:
        """Return the defaults, changed by these values (setting's name → value). Raises
        SettingError for an unknown name or a bad value."""
        settings = cls()
        for name, value in (values or {}).items():
            settings = settings.with_(name, value)
        return settings

    def with_(self, name: str, value: object) -> Settings:
        """Return a copy with one value changed. ``name`` is the setting's name, as
        ``hive.txn.timeout``. Raises SettingError for an unknown name or a bad value."""
        attribute, setting = _find_setting(name)
        return dataclasses.replace(self, **{attribute: setting.read(value)})

    def items(self) -> Iterator[tuple[str, str]]:
        """Yield (setting's name, value as text) of all settings, sorted by name.
        ``of(dict(items()))`` gives the same settings."""
        for name, (attribute, setting) in sorted(_BY_NAME.items()):
            yield name, setting.show(getattr(self, attribute))

    @property
    def driver_row_limit(self) -> int:
        """Up to how many rows the driver itself writes: ``driver_max_rows``, or 0 without
        ``fast_paths``."""
        return self.driver_max_rows if self.fast_paths else 0

    @property
    def heartbeat_interval_ms(self) -> int:
        """Half of ``hive.txn.timeout``, as in Hive's DbTxnManager."""
        return max(1, self.txn_timeout_ms // 2)

    @property
    def lock_wait_ms(self) -> int:
        """The longest wait for a lock, in milliseconds: the sum of all sleeps of Hive's
        DbLockManager.

        Hive sleeps hive.lock.numretries times: 100, 200, 400 … ms, but at most max(15 s,
        hive.lock.sleep.between.retries). With the defaults that is 91 min 42 s.
        """
        cap = max(LEAST_LOCK_SLEEP_CAP_MS, self.lock_sleep_between_retries_ms)
        total, sleep = 0, FIRST_LOCK_SLEEP_MS
        for retry in range(self.lock_numretries):
            if sleep >= cap:
                return total + cap * (self.lock_numretries - retry)
            total, sleep = total + sleep, sleep * 2
        return total


_BY_NAME: Mapping[str, tuple[str, Setting]] = {
    field.metadata["setting"].name: (field.name, field.metadata["setting"])
    for field in dataclasses.fields(Settings)
}


def known_settings() -> tuple[Setting, ...]:
    """Return all settings with their documentation, sorted by name."""
    return tuple(setting for _, (_, setting) in sorted(_BY_NAME.items()))


def setting_name(name: str) -> str | None:
    """Return the name of the setting that SET, RESET or the Spark conf means by a name: the name
    itself or, of ``spark.acidsql.…``, what it stands for; None if the name is none of acidsql's.

    Names that begin with ``acidsql.`` or ``spark.acidsql.``, in any case of letters, are acidsql's.
    Hive's are not: there are many more than acidsql has. ``spark.acidsql.warehouse`` and the like
    are no settings, and give None.

    Raises:
        SettingError: UNKNOWN_SETTING: The name is acidsql's, and there is no such setting.
    """
    key, is_in_conf = name, name.lower().startswith(SPARK_PREFIX)
    if is_in_conf:
        key = name[len(SPARK_PREFIX) :]
        if key in _READ_BY_CONNECT or key.startswith(_OF_STORES):
            return None
        own_key = f"{OWN_PREFIX}{key}"
        if own_key in _BY_NAME or not key.startswith(_PREFIXES):
            key = key if key in _BY_NAME else own_key
    if key in _BY_NAME:
        return key
    if is_in_conf or name.lower().startswith(OWN_PREFIX):
        raise _unknown_setting_error(name, key)
    return None


def _find_setting(name: str) -> tuple[str, Setting]:
    """Return the attribute in ``Settings``, and the setting, of this name. Raise SettingError
    UNKNOWN_SETTING if there is none; case counts."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise _unknown_setting_error(name, name) from None


def _unknown_setting_error(name: str, key: str) -> SettingError:
    """Make the error that there is no setting ``name``, with those names of settings that are most
    similar to ``key``, or with all names."""
    hint = suggestion(key, _BY_NAME) or f" Known are: {', '.join(_BY_NAME)}."
    return SettingError(
        f"There is no setting '{name}'.{hint}", name=name, condition="UNKNOWN_SETTING"
    )
