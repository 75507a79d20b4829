"""What a server can do, asked once for each session."""

from __future__ import annotations

import re
from dataclasses import dataclass

from acidsql.acid.layout import DEFAULT_PARTITION
from acidsql.acid.paths import plain_path
from acidsql.errors import AcidSqlError, MetastoreError, SettingError
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.idl import hive

_TIMEOUT, _WAREHOUSE = "metastore.txn.timeout", "metastore.warehouse.dir"
DEFAULT_PARTITION_NAME = "hive.exec.default.partition.name"
_DML_EVENTS = "hive.metastore.dml.events"  # in the site file of servers that are replicated
_LISTENERS, _LOGS = "metastore.transactional.event.listeners", "DbNotificationListener"
_STORE, _CACHE = "metastore.rawstore.impl", "CachedStore"
_MIN_HISTORY = "metastore.txn.use.minhistorywriteid"
_MIN_LEVEL = "metastore.txn.use.minhistorylevel"
# From this version on, a server with both settings keeps the write ids of open transactions.
_KEEPS_OPEN_WRITE_IDS = (4, 2)
_DURATION = re.compile(r"(\d+)\s*(ms|msec|s|sec|m|min|h|hour|d|day)?")
_MS = {
    "ms": 1, "msec": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Features:
    """A server's version and settings.

    Attributes:
        version: The version that the server names. Builds of vendors may name another one.
        txn_timeout_ms: After this time without a heartbeat the server aborts a transaction.
        warehouse: The directory of the database ``default``.
        default_partition: What stands for NULL in the names of partitions.
        tells_writes: The server wants to know which files a transaction has written, because other
            servers replicate its tables.
        logs_changes: The server keeps a notification log that is complete, and this user may read
            it.
        caches_tables: The server shows properties of tables from its memory, which a COMMIT does
            not change.
        is_hive3: It makes the calls of Hive 3.1 (see ``hive3``).
        cleans_by_write_id: The server's cleaner does not wait for open transactions, but for the
            write ids that readers have registered (the default of Hive 4.2).
        registers_readers: A reader can, and must, register the tables that it reads.
    """

    version: str
    txn_timeout_ms: int
    warehouse: str
    default_partition: str = DEFAULT_PARTITION
    tells_writes: bool = False
    logs_changes: bool = False
    caches_tables: bool = False
    is_hive3: bool = False
    cleans_by_write_id: bool = False
    registers_readers: bool = False


def probe(client: Client) -> Features:
    """Ask the server for its version and settings. A setting that it does not tell counts as Hive's
    default, but for the warehouse.

    Raises:
        MetastoreError: No server answers, or the server does not tell its warehouse.
        SettingError: The server knows neither the calls of Hive 4 nor those of Hive 3.1, whatever
            version it tells. Or it forgets the write ids of open transactions.
    """
    version = client.call("getVersion")
    # The version's number proves little: vendors have taken Hive 4's calls into 3.1.
    is_hive3 = not client.has_method(
        "get_open_txns_req", hive.GetOpenTxnsRequest(excludeTxnTypes=[])
    )
    about = hive.CheckConstraintsRequest(catName=client.address.catalog, db_name="", tbl_name="")
    if is_hive3 and not client.has_method("get_check_constraints", about):
        raise SettingError(
            f"The Hive Metastore {client.address} calls itself {version}, and does not know the "
            "calls of Hive 3.1, which acidsql needs.",
            name="metastore",
        )
    timeout = _server_setting(client, _TIMEOUT, "300s")
    warehouse = _server_setting(client, _WAREHOUSE, "")
    if not warehouse:
        raise MetastoreError(f"The Hive Metastore {client.address} does not tell its {_WAREHOUSE}.")
    # Hive 3 is told of files by other means, and only of those of tables without transactions.
    tells_writes = not is_hive3 and _server_setting(client, _DML_EVENTS, "false").lower() == "true"
    cleans_by_write_id = (
        not is_hive3 and _server_setting(client, _MIN_HISTORY, "false").lower() == "true"
    )
    if cleans_by_write_id:
        _refuse_forgetful_server(client, version)
    return Features(
        version,
        _milliseconds(timeout),
        plain_path(warehouse).rstrip("/"),
        _server_setting(client, DEFAULT_PARTITION_NAME, DEFAULT_PARTITION),
        tells_writes,
        _may_read_log(client),
        _server_setting(client, _STORE, "").endswith(_CACHE),
        is_hive3,
        cleans_by_write_id,
        cleans_by_write_id and client.has_method("add_write_ids_to_min_history", 0, {}),
    )


def _refuse_forgetful_server(client: Client, version: str) -> None:
    """Raise SettingError if the server's housekeeping forgets the write ids of open transactions:
    then all readers, Hive's, too, take the rows of such transactions for committed.

    So do servers before 4.2 with both settings, of which the second is on by default. With the
    first they do not ask MIN_HISTORY_LEVEL for open transactions, with the second not TXNS.

    Source: Hive 4.0.1 ``CompactionTxnHandler.findMinTxnIdSeenOpen``,
    ``CleanTxnToWriteIdTableFunction``; Hive 4.2 ``TxnHandler.ConfVars.useMinHistoryLevel``.
    """
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if numbers >= _KEEPS_OPEN_WRITE_IDS:
        return
    if _server_setting(client, _MIN_LEVEL, "true").lower() == "true":
        raise SettingError(
            f"The Hive Metastore {client.address}, of version {version}, has {_MIN_HISTORY}=true "
            f"and {_MIN_LEVEL}=true. With both, Hive before 4.2 forgets once a minute which rows "
            "belong to open transactions, and all readers, Hive's own, too, see rows that are not "
            f"committed. Set {_MIN_LEVEL} to false at the metastore and at HiveServer2, or "
            f"{_MIN_HISTORY}, and restart them.",
            name=_MIN_LEVEL,
            value="true",
        )


def _may_read_log(client: Client) -> bool:
    """Whether the server keeps a complete notification log, by its setting of listeners, that this
    user may read. False, too, if the server cannot be asked."""
    if _LOGS not in _server_setting(client, _LISTENERS, ""):
        return False
    try:
        client.call("get_current_notificationEventId")
    except AcidSqlError:
        return False  # by default only those may read it who may act for other users
    return True


def _server_setting(client: Client, name: str, default: str) -> str:
    """Return a setting of the server; the default if it has none, or the call fails."""
    try:
        return str(client.call("get_config_value", name, default))
    except AcidSqlError:
        return default  # a server need not tell


def _milliseconds(text: str) -> int:
    """The milliseconds of Hive's text for a duration; without a unit, seconds; 300,000 for another
    text."""
    duration = _DURATION.match(text.strip().lower())
    return int(duration[1]) * _MS[duration[2] or "s"] if duration else 300_000
