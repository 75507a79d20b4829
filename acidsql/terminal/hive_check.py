"""``acidsql hive-check``: what acidsql can do with a Hive Metastore and its tables.

The check only asks and lists. It opens no transaction, takes no lock and changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from acidsql.api.opening import open_survey
from acidsql.compaction.litter import orphaned_directories
from acidsql.errors import AcidSqlError, CatalogError
from acidsql.metastore.foreign import ForeignTable, acid_table
from acidsql.metastore.interface import TxnState
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.reading.pruning.reachable import list_on_executors, listing_problem
from acidsql.storage.tables.hive2 import find_old_update

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from acidsql.metastore.hive.survey import FoundTable, Survey

MOST_PARTITIONS = 20  # of one table, in which deltas of Hive 2 are looked for
MOST_NAMES = 5  # of one table's directories that dead sessions left
_ABILITIES = {
    "can_work": "sessions compact",
    "can_rebalance": "sessions compact 'rebalance'",
    "can_initiate": "sessions find out which tables need a compaction",
    "can_clean": "sessions delete files that a compaction has replaced",
    "conflicts_by_row": "acidsql.conflict.detection=row",
    "remembers_changes": "transactions of several statements notice each change of the catalog",
    "queues_cleanups": "directories of dropped tables are queued for deletion",
    "read_by_hive3": "files are such that Hive 3 reads them: ORC in ZLIB instead of ZSTD",
    "leases_keep_files": "DataFrames keep their files from the cleaner until they are read",
    "keeps_streams": "streams into tables, and txn_app_id: COMMIT notes the batch",
    "keeps_versions": "history and time travel: COMMIT notes what it changed",
    "keeps_state_tables": "AUTO CDC: a table and its state table stay together",
}


class Level(IntEnum):
    """How bad a fact is. The worst one is the exit status of the command."""

    FINE = 0
    WARNING = 1  # something does not work, or needs somebody's attention
    ERROR = 2  # acidsql cannot use the metastore


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the check.

    Attributes:
        about: What the fact is about.
        message: The fact.
        level: How bad the fact is.
        advice: What a person should do; empty if there is nothing to do.
    """

    about: str
    message: str
    level: Level = Level.FINE
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What acidsql can do with a table.

    Attributes:
        table: The table's full name.
        kind: The table's kind: ``full ACID``, ``insert-only``, ``view`` …
        format: The format of its files, or the engine that it belongs to.
        message: What acidsql can do with the table.
        level: WARNING if an ACID table of Hive's is refused.
    """

    table: str
    kind: str
    format: str
    message: str
    level: Level = Level.FINE


def check(
    url: str, databases: Sequence[str] = (), spark: Callable[[], SparkSession] | None = None
) -> Iterator[Fact | Verdict]:
    """Look at a Hive Metastore, lazily, and change nothing.

    Args:
        url: ``thrift://host:9083``; several servers are separated by commas.
        databases: Look at these databases only. Default: all.
        spark: Gives the Spark session on whose executors the directories are tried. None: they are
            not tried.

    Yields:
        Facts about the server and the directories, then a verdict for each table. An error of
        acidsql's ends them with an ERROR fact about the connection. If no server answers, or
        acidsql cannot use it, this is the only fact.
    """
    try:
        survey = open_survey(url)
    except AcidSqlError as error:
        yield Fact("connection", error.message, Level.ERROR)
        return
    try:
        yield from _server_facts(survey)
        yield from _compaction_facts(survey)
        lookups = list(_database_lookups(survey, databases))
        yield from (lookup for lookup in lookups if isinstance(lookup, Fact))
        places = {survey.warehouse: "the warehouse"}
        places |= {
            lookup[1]: f"database {lookup[0]}" for lookup in lookups if not isinstance(lookup, Fact)
        }
        yield from _directory_facts(places, spark)
        for lookup in lookups:
            if not isinstance(lookup, Fact):
                yield from (_judge_table(survey, table) for table in survey.all_tables(lookup[0]))
    except AcidSqlError as error:
        yield Fact("connection", error.message, Level.ERROR)
    finally:
        survey.close()


# ── the server ───────────────────────────────────────────────────────────────────────────────


def _server_facts(survey: Survey) -> Iterator[Fact]:
    """Yield facts about the server: URL, version, security (a warning if secrets are sent in
    clear), a yes or no for each ability, time-outs, and a warning for each setting by which Hive
    would take no locks; nothing about these settings if they are right."""
    yield Fact("metastore", survey.url)
    yield Fact("version", survey.features.version)
    yield _judged_fact(
        "security", survey.security, not survey.sends_password_openly,
        "The password or token can be read on the network. Let the server use TLS, and say tls=1.",
    )  # fmt: skip
    for name, word in _ABILITIES.items():
        has = getattr(survey.abilities, name)
        yield Fact(f"ability {name}", f"{'yes' if has else 'no'}: {word}")
    yield from _time_out_facts(survey)
    yield from _housekeeping_facts(survey)
    for name, bad, good in (
        ("hive.txn.manager", "DummyTxnManager", "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager"),
        ("hive.support.concurrency", "false", "true"),
    ):
        if survey.setting(name).lower().endswith(bad.lower()):
            yield Fact(
                name, bad, Level.WARNING,
                "If HiveServer2 has this setting, too, Hive takes no locks, and overwrites what "
                f"acidsql writes at the same time: set {good} there.",
            )  # fmt: skip


def _judged_fact(about: str, message: str, is_fine: bool, advice: str) -> Fact:
    """Return a fact without advice if it ``is_fine``, else one with a warning and the advice."""
    return Fact(about, message) if is_fine else Fact(about, message, Level.WARNING, advice)


def _time_out_facts(survey: Survey) -> Iterator[Fact]:
    """Yield the time-out of transactions, with a warning below 60 s (0 s if the server does not
    tell), and a fact for each of four limits that the server states, with its value as text."""
    timeout_s = (survey.abilities.txn_timeout_ms or 0) // 1000
    message = f"{timeout_s} s: a transaction without a heartbeat is aborted after this time"
    yield _judged_fact(
        "metastore.txn.timeout", message, timeout_s >= 60,
        "A short pause of a program aborts its transaction. 300 s is Hive's default.",
    )  # fmt: skip
    for name in (
        "metastore.max.open.txns", "hive.lock.numretries", "hive.lock.sleep.between.retries",
    ):  # fmt: skip
        if value := survey.setting(name):
            yield Fact(name, value)
    if survey.features.cleans_by_write_id:
        yield _judged_fact(
            "metastore.txn.use.minhistorywriteid",
            "true: the cleaner keeps the files of tables that readers have registered",
            survey.features.registers_readers,
            "The server does not know the call add_write_ids_to_min_history, so acidsql cannot "
            "register what it reads: a compaction by others may delete files that a DataFrame, or "
            "a long transaction, still needs. It then fails (SnapshotTooOldError), and shows no "
            "wrong rows. Set it to false.",
        )


_TASKS, _ICEBERG = "metastore.task.threads.remote", "IcebergHouseKeeperService"
# So much longer than its time-out a dead transaction may be open: the server looks once a minute,
# and clocks differ.
_GRACE_MS = 600_000


def _housekeeping_facts(survey: Survey) -> Iterator[Fact]:
    """Yield a warning if a transaction is open that the server should have aborted long ago: no
    setting tells that the server's housekeeping has not started. Yield a fact if it may not start,
    because it needs a class of Iceberg's."""
    if _ICEBERG in survey.setting(_TASKS):
        yield Fact(
            _TASKS,
            f"with {_ICEBERG}: if hive-iceberg-handler is not on the server's class path, the "
            "server aborts no dead transaction, and says so in its log only",
        )
    latest_ms = time.time() * 1000 - (survey.abilities.txn_timeout_ms or 0) - _GRACE_MS
    dead_numbers = [
        txn.txn_id
        for txn in survey.show_txns()
        if txn.state is TxnState.OPEN and 0 < txn.last_heartbeat_ms < latest_ms
    ]
    if dead_numbers:
        numbers = ", ".join(map(str, dead_numbers[:MOST_NAMES]))
        more = f" and {len(dead_numbers) - MOST_NAMES} more" * (len(dead_numbers) > MOST_NAMES)
        yield Fact(
            "dead transactions",
            f"open, though their heartbeat stopped long ago: {numbers}{more}",
            Level.WARNING,
            f"No server aborts them, so their locks stay, and nothing is cleaned. Look for 'class "
            f"not found' in the log of the server with metastore.housekeeping.threads.on: it "
            f"starts no housekeeping at all if one class of {_TASKS} is missing. ABORT "
            "TRANSACTIONS ends one. (A transaction of Hive's replication may be that old.)",
        )


_INITIATOR = "metastore.compactor.initiator.on"
# Settings that should be true → what the server does then, and what to do if they are not.
_REQUIRED_SETTINGS = {
    "metastore.housekeeping.threads.on": (
        "the server aborts transactions that have timed out",
        "Set it to true on one server: else locks of a dead program stay for ever.",
    ),
    _INITIATOR: (
        "the server finds out which tables need a compaction",
        "Set it to true on one server, or run ALTER TABLE … COMPACT yourself.",
    ),
    "metastore.compactor.cleaner.on": (
        "the server deletes files that a compaction has replaced",
        "Set it to true on one server: else old files stay for ever.",
    ),
}
_REQUIRED_SETTINGS_OF_HIVE3 = {
    _INITIATOR: (
        "the server aborts transactions that have timed out, finds out which tables need a "
        "compaction, and deletes files that a compaction has replaced",
        "Set it to true on one server: else locks of a dead program, and old files, stay for ever.",
    ),
}


def _compaction_facts(survey: Survey) -> Iterator[Fact]:
    """Yield a fact for each of the server's settings for compaction, other ones for Hive 3; a
    warning with advice if it is not ``true``, or the server does not tell. The last fact is the
    number of workers, with a warning if they run in the metastore and are 0 or -1."""
    required = _REQUIRED_SETTINGS_OF_HIVE3 if survey.features.is_hive3 else _REQUIRED_SETTINGS
    for name, (meaning, advice) in required.items():
        value = survey.setting(name)
        if value.lower() == "true":
            yield Fact(name, f"true: {meaning}")
        else:
            yield Fact(name, value or "not told", Level.WARNING, f"Off at this server. {advice}")
    # Hive 4.0 knows the first name, vendors' versions the second; Hive 4.2 has no such setting.
    named_places = map(survey.setting, ("hive.metastore.runworker.in", "metastore.runworker.in"))
    default = "metastore" if survey.features.is_hive3 else "hs2"
    where = next(filter(None, named_places), default)
    number = survey.setting("metastore.compactor.worker.threads") or "not told"
    message = f"{number} (they run in the {'metastore' if where == 'metastore' else 'HiveServer2'})"
    yield _judged_fact(
        "metastore.compactor.worker.threads",
        message,
        where != "metastore" or number not in ("0", "-1"),
        "No worker of this server compacts. Set it to 1 or more on one server.",
    )


# ── directories ──────────────────────────────────────────────────────────────────────────────


def _database_lookups(
    survey: Survey, requested_names: Sequence[str]
) -> Iterator[Fact | tuple[str, str]]:
    """Yield the name and directory of each requested database, in lower case and in the order of
    the request, or a warning for one that is not there. Without requested names, yield all
    databases, by name."""
    locations = {database.name: database.location for database in survey.databases()}
    for name in (requested_name.lower() for requested_name in requested_names):
        if name in locations:
            yield name, locations[name]
        else:
            advice = f"These are there: {', '.join(sorted(locations))}."
            yield Fact(f"database {name}", "There is no such database.", Level.WARNING, advice)
    if not requested_names:
        yield from sorted(locations.items())


def _directory_facts(
    places: dict[str, str], spark: Callable[[], SparkSession] | None
) -> Iterator[Fact]:
    """Yield, for each directory, a fact that it can be read from this machine, or a warning; then,
    with ``spark``, the same from executors, by host; without, one fact that they were not tried.
    ``places``: location → what it is, in words."""
    for location, place_name in places.items():
        yield _directory_fact(place_name, location, "this machine", listing_problem(location))
    if spark is None:
        yield Fact("executors", "not tried: --executors tries them, too")
        return
    for location, host, problem in list_on_executors(spark(), list(places)):
        yield _directory_fact(places[location], location, f"an executor on {host}", problem)


def _directory_fact(place_name: str, location: str, where: str, problem: str) -> Fact:
    """Return the fact that a directory can be read, or a warning if ``problem`` is not ""."""
    about = f"{place_name}, from {where}"
    if not problem:
        return Fact(about, f"{location} can be read")
    return Fact(
        about, f"{location} cannot be read: {problem}", Level.WARNING,
        "The same path must lead to the same files here and in Hive: mount the file system, or "
        "set up Hadoop's client (docs/limits.md, 'Files and formats'). A new database has its "
        "directory only with its first table.",
    )  # fmt: skip


# ── tables ───────────────────────────────────────────────────────────────────────────────────


def _judge_table(survey: Survey, table: FoundTable) -> Verdict:
    """Return what acidsql can do with a table. For an ACID table this lists directories."""
    level = Level.FINE
    if table.is_acid:
        message, level = _acid_table_support(survey, table)
    else:
        message = _other_table_support(survey, table)
    return Verdict(str(table.name), table.kind.value, table.format, message, level)


def _acid_table_support(survey: Survey, table: FoundTable) -> tuple[str, Level]:
    """Return, in words, what acidsql can do with an ACID table, and how bad this is: FINE, or
    WARNING if the table is refused (dropped, not readable, updates in Hive 2's layout), or dead
    sessions left hidden directories in it. Its directories are listed. An error is not raised, but
    returned as words with a warning."""
    try:
        catalog_table = acid_table(survey.find(table.name))
        if catalog_table is None:
            raise CatalogError("it was dropped meanwhile")
        if problem := listing_problem(catalog_table.location):
            raise CatalogError(f"{catalog_table.location} cannot be read: {problem}")
        partitions = survey.partitions(table.name) if catalog_table.partition_columns else None
        places = (
            [catalog_table.location]
            if partitions is None
            else [partition.location for partition in partitions]
        )
        if table.kind.name == "FULL_ACID" and (old := _hive2_update_file(places)):
            return (
                f"refused until Hive has run a major compaction: {old} has changes in the layout "
                "of Hive 2",
                Level.WARNING,
            )
        entries = filesystem_for(catalog_table.location).list_if_there(catalog_table.location)
        litter = sorted(
            directory.name for directory in orphaned_directories(survey, table.name, entries)
        )
    except (AcidSqlError, OSError) as error:
        return f"refused: {getattr(error, 'message', error)}", Level.WARNING
    message = "reads, inserts, updates, deletes, merges"
    if table.kind.name == "INSERT_ONLY":
        message = "reads, inserts, overwrites"
    if not litter:
        return message, Level.FINE
    more = f" and {len(litter) - MOST_NAMES} more" if len(litter) > MOST_NAMES else ""
    return (
        f"{message}. Sessions that died left hidden directories, which nobody reads: "
        f"{', '.join(litter[:MOST_NAMES])}{more} in {catalog_table.location}. acid.clean() deletes "
        "them.",
        Level.WARNING,
    )


def _hive2_update_file(directories: Sequence[str]) -> str | None:
    """Return the path of a file that has updates in Hive 2's layout, looking into the first 20
    (`MOST_PARTITIONS`) directories only; None: none was found there."""
    for place in directories[:MOST_PARTITIONS]:
        files = filesystem_for(place)
        for entry in files.list_if_there(place):
            if entry.is_dir and (
                old_file := find_old_update(entry, files.list_if_there(entry.path))
            ):
                return old_file
    return None


def _other_table_support(survey: Survey, table: FoundTable) -> str:
    """Return, in words, what acidsql can do with a view or a table that is not ACID: ``reads in
    queries``, with what limits that, or ``refused`` and why. For a view nothing is looked up. An
    error is not raised, but returned as such words."""
    if table.kind.name == "VIEW":
        return "reads in queries, if Spark understands its text"
    try:
        catalog_entry = survey.find(table.name)
        if isinstance(catalog_entry, ForeignTable):
            catalog_entry = survey.with_partitions(catalog_entry)
    except AcidSqlError as error:
        return f"refused: {error.message}"
    if not isinstance(catalog_entry, ForeignTable) or catalog_entry.table is not None:
        return "reads in queries; changes are Spark's or Hive's"
    return f"refused: it {catalog_entry.refusal}"
