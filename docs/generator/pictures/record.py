"""Runs statements, and returns what the pictures show: output, directories, events, times.

All together needs a Java, and takes some minutes. Only ``top`` needs no Spark: it has a
metastore alone, as ``acidsql top`` does.
"""

from __future__ import annotations

import getpass
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from notebook import run_cells
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from terminal import ENTER, Terminal

import acidsql
from acidsql.acid.bucket_codec import decode
from acidsql.acid.table import TableName
from acidsql.api.opening import open_metastore
from acidsql.metastore.compaction_queue import CompactionRequest, CompactionType
from acidsql.metastore.interface import LockComponent, LockType
from acidsql.settings import Settings

Facts = dict[str, Any]
SHOWN_WAREHOUSE = "/srv/airline"  # instead of a directory of this machine
_INSERT = "INSERT INTO planes VALUES ('N10156', 55), ('N102UW', 182)"
_UPDATE = "UPDATE planes SET seats = 180 WHERE tailnum = 'N102UW'"
_CELLS = (
    "%%acidsql\n"
    "UPDATE stock SET pieces = pieces - :sold WHERE name = 'nut';\n"
    "SELECT * FROM stock ORDER BY id",
    "%%acidsql --preview\nUPDATE stock SET pieces = pieces + 5 WHERE pieces < 20",
    "%acidsql DELETE FROM stock WHERE pieces = 0",
)
_SHELL = (
    "SELECT month, count(*) AS flights, max(delay) AS worst FROM flights GROUP BY month;",
    "BEGIN;",
    "UPDATE flights SET delay = delay - 5 WHERE month = 1 AND delay > 5;",
    "DELETE FROM flights LIMIT 1;",
    "COMMIT;",
    "SHOW PARTITIONS flights;",
)


def record(spark: Any, name: str, stream_s: float = 60) -> Facts:
    """Return the facts of a picture that needs Spark, but the shell.

    Args:
        spark: The session.
        name: The picture.
        stream_s: How many seconds the stream of the lag runs.
    """
    recorders: dict[str, Callable[[], Facts]] = {
        "update": lambda: _update(spark),
        "snapshot": lambda: _snapshots(spark),
        "compaction": lambda: _compaction(spark),
        "phases": lambda: _phases(spark),
        "health": lambda: _health(spark),
        "notebook": lambda: _notebook(spark),
        "lag": lambda: _lag(spark, stream_s),
    }
    return recorders[name]()


@contextmanager
def _session(spark: Any, **options: Any) -> Iterator[acidsql.Session]:
    """A session in a warehouse of its own, which goes with the block."""
    with (
        tempfile.TemporaryDirectory(
            prefix="acidsql-pictures-", ignore_cleanup_errors=True
        ) as place,
        acidsql.connect(
            spark, warehouse=place, **{"compactor": "off", "settings": None, **options}
        ) as session,
    ):
        yield session


def _directories(acid: acidsql.Session, table: str) -> list[Facts]:
    """The directories of a table in the order of their write ids, each with its file, state, number
    of events, and the events as texts."""
    rows = acid.files(table).where("file LIKE 'bucket_0%'").collect()
    rows.sort(key=lambda row: (row.max_write_id, row.statement_id or 0, row.directory))
    return [
        {
            "directory": row.directory,
            "file": row.file,
            "state": row.state,
            "rows": row.rows,
            "events": [_event_text(event) for event in acid.events(row.path).collect()],
        }
        for row in rows
    ]


def _event_text(event: Any) -> str:
    """An event as a line of text: ``insert (1, 0, 0)  N10156, 55``."""
    row_id = f"({event.originalTransaction}, {decode(event.bucket).bucket_id}, {event.rowId})"
    if event.row is None:
        return f"delete {row_id}"
    return f"insert {row_id}  {', '.join(map(str, event.row))}"


def _update(spark: Any) -> Facts:
    """An UPDATE of a row: the files before it, and after it."""
    with _session(spark) as acid:
        acid.sql("CREATE TABLE planes (tailnum STRING, seats INT)")
        acid.sql(_INSERT)
        before = _directories(acid, "planes")
        acid.sql(_UPDATE)
        return {
            "statement": _UPDATE,
            "before": before,
            "after": _directories(acid, "planes"),
            "receipt": str(acid.last),
        }


def _snapshots(spark: Any) -> Facts:
    """A table with an old change, a compaction, and a transaction that is open."""
    with _session(spark) as acid:
        acid.sql("CREATE TABLE planes (tailnum STRING, seats INT)")
        acid.sql(_INSERT)
        acid.sql(_UPDATE)
        names = {"base": "major compaction of write ids 1 and 2"}
        with acidsql.connect(spark, warehouse=acid.warehouse, compactor="off") as reader:
            with reader.snapshot():
                reader.table("planes").count()
                acid.compact("planes", kind="major", wait=True)
            acid.sql("INSERT INTO planes VALUES ('N103US', 97)")
            acid.sql("BEGIN")
            acid.sql("DELETE FROM planes WHERE seats < 60")
            txn_id = acid.txn_id
            made_by = {1: "INSERT, write id 1", 2: "UPDATE, write id 2",
                       3: "INSERT, write id 3", 4: "DELETE, write id 4, not committed"}  # fmt: skip
            files = _directories(acid, "planes")
            snapshots = []
            for name, says, write_ids, session, query in (
                ("version 2", "VERSION AS OF 2", "default.planes:2:9223372036854775807::", reader,
                 "SELECT * FROM planes VERSION AS OF 2"),
                ("newest", "valid: 1, 2, 3", "default.planes:4:4:4:", reader,
                 "SELECT * FROM planes"),
                ("its own transaction", "valid: 1, 2, 3, 4",
                 "default.planes:4:9223372036854775807::", acid, "SELECT * FROM planes"),
            ):  # fmt: skip
                rows = sorted(session.sql(query).collect())
                shown = [f"{row.tailnum}, {row.seats}" for row in rows]
                snapshots.append(
                    {"name": name, "says": says, "write_ids": write_ids, "rows": shown}
                )
            acid.sql("ROLLBACK")
        directories = [
            {
                "name": file["directory"],
                "made_by": names.get(file["directory"][:4])
                or made_by[int(file["directory"].split("_")[-2])],
            }
            for file in files
        ]
        return {
            "directories": directories,
            "snapshots": snapshots,
            "txns": f"{txn_id + 1}:9223372036854775807::",
        }


def _compaction(spark: Any) -> Facts:
    """A major compaction, step by step, while a reader still needs the old files."""
    with _session(spark) as acid:
        acid.sql(
            "CREATE TABLE planes (tailnum STRING, seats INT) "
            "TBLPROPERTIES ('acidsql.history.retention' = '0s')"
        )
        acid.sql(_INSERT)
        acid.sql(_UPDATE)
        acid.sql("INSERT INTO planes VALUES ('N103US', 97)")
        acid.compact("planes", kind="major")
        steps = [_compaction_step(acid, "after three commits", "COMPACT waits in the queue")]
        with (
            acidsql.connect(spark, warehouse=acid.warehouse, compactor="off") as reader,
            reader.snapshot(),
        ):
            reader.table("planes").count()
            acid.compact("planes", kind="major", wait=True)
            steps.append(_compaction_step(acid, "after the worker", "an older reader is open"))
        acid.clean()
        steps.append(_compaction_step(acid, "after the cleaner", "that reader has ended"))
        rows = sorted(acid.table("planes").collect())
        return {
            "steps": steps,
            "rows": ", ".join(f"({row.tailnum}, {row.seats})" for row in rows),
        }


def _compaction_step(acid: acidsql.Session, name: str, says: str) -> Facts:
    """What is there now, as a session sees it that ends then, so that it keeps no old file."""
    with acidsql.connect(acid.spark, warehouse=acid.warehouse, compactor="off") as looker:
        state = looker.sql("SHOW COMPACTIONS planes").first().state
        directories = _directories(looker, "planes")
    return {"name": name, "says": says, "state": state, "directories": directories}


def _phases(spark: Any) -> Facts:
    """The receipt of an UPDATE of many rows."""
    with _session(spark) as acid:
        acid.sql("CREATE TABLE flights (id BIGINT, delay INT)")
        acid.sql("INSERT INTO flights SELECT id, CAST(id % 90 AS INT) FROM range(1000000)")
        statement = "UPDATE flights SET delay = delay - 5 WHERE delay > 60"
        acid.sql(statement)
        receipt = acid.last
        assert receipt is not None
        return {
            "statement": statement,
            "receipt": str(receipt),
            "seconds": dict(receipt.seconds),
        }


def _health(spark: Any) -> Facts:
    """A table whose partitions differ: compacted, changed since, and with files that are kept."""
    with _session(spark) as acid:
        acid.sql("CREATE TABLE flights (id BIGINT, carrier STRING, delay INT) "
                 "PARTITIONED BY (month INT)")  # fmt: skip
        acid.sql("INSERT INTO flights SELECT id, uuid(), CAST(id % 90 AS INT), "
                 "CAST(1 + id % 4 AS INT) FROM range(40000)")  # fmt: skip
        acid.sql("DELETE FROM flights WHERE month = 2 AND delay > 40")
        acid.sql("ALTER TABLE flights PARTITION (month = 2) COMPACT 'major' AND WAIT")
        acid.sql("UPDATE flights SET carrier = uuid() WHERE month = 3 AND delay > 45")
        acid.sql("INSERT INTO flights PARTITION (month = 4) SELECT id, uuid(), 3 FROM range(9000)")
        health = acid.health("flights")
        picture = health._repr_html_()  # type: ignore[operator]
        lines = [
            title.split("</title>", 1)[0].replace("&#x27;", "'").replace("&amp;", "&")
            for title in picture.split("<title>")[1:]
        ]
        return {"call": "%acidsql --health flights", "svg": picture, "lines": lines}


def _notebook(spark: Any) -> Facts:
    """Cells with a receipt, a table, and a preview."""
    from IPython.core.interactiveshell import InteractiveShell

    with _session(spark) as acid:
        acid.sql("CREATE TABLE stock (id INT, name STRING, pieces INT)")
        acid.sql("INSERT INTO stock VALUES (1, 'nut', 10), (2, 'bolt', 25), (3, 'cog', 0)")
        InteractiveShell.instance().user_ns["sold"] = 3
        return {"cells": run_cells(_CELLS)}


def _lag(spark: Any, seconds: float) -> Facts:
    """How old the rows of each batch of a stream are at their COMMIT."""
    rate = 50
    with _session(spark, compactor="background") as acid:
        acid.sql("CREATE TABLE events (timestamp TIMESTAMP, value BIGINT)")
        rows = spark.readStream.format("rate").option("rowsPerSecond", rate).load()
        query = (
            acid.write_stream(rows.selectExpr("to_timestamp_ntz(timestamp) AS timestamp", "value"))
            .option("checkpointLocation", f"{acid.warehouse}/_checkpoint")
            .trigger(processingTime="2 seconds")
            .toTable("events")
        )
        time.sleep(seconds)
        query.stop()
        history = acid.history("events").collect()
        committed = {row.version: row.timestamp.timestamp() for row in history if row.version}
        start = min(committed.values())
        rows = acid.sql(
            "SELECT row__id.writeid AS version, unix_micros(to_timestamp_ltz(timestamp)) AS born "
            "FROM events"
        )
        batches = rows.groupBy("version").agg(
            F.min("born").alias("first"),
            F.max("born").alias("last"),
            F.count("*").alias("rows"),
        )
        shown = [
            {
                "version": batch.version,
                "at": round(committed[batch.version] - start, 1),
                "newest": round(committed[batch.version] - batch.last / 1e6, 2),
                "oldest": round(committed[batch.version] - batch["first"] / 1e6, 2),
                "count": batch.rows,
            }
            for batch in batches.orderBy("version").collect()
        ]
        compactions = [
            row.timestamp.timestamp() - start
            for row in history
            if (row.operation or "").startswith("COMPACT")
        ]
        return {
            "rate": rate,
            "trigger": "a batch every 2 seconds",
            "rows": sum(batch["count"] for batch in shown),
            "batches": shown,
            "compactions": sorted(round(at, 1) for at in compactions),
        }


def record_shell(warehouse: Path) -> Facts:
    """What a person sees who types into ``acidsql``. It starts a Spark of its own."""
    command = _acidsql_command(warehouse, "--master", "local[2]")
    environment = {
        **os.environ,
        "HOME": str(warehouse),
        "XDG_STATE_HOME": str(warehouse),
    }
    shell = Terminal(command, environment, (42, 112))
    try:
        shell.wait_for("default>")
        shell.type(
            "CREATE TABLE flights (carrier STRING, delay INT) PARTITIONED BY (month INT); "
            "INSERT INTO flights VALUES ('UA', 2, 1), ('B6', 31, 1), ('AA', 12, 2);" + ENTER
        )
        shell.wait_for("3 inserted")
        shell.type("\x0c")  # Ctrl-L: a clean screen
        for statement, sign in zip(
            _SHELL,
            ("2 rows", "(txn", "1 updated", "^^^^^", "2 files", "month=2"),
            strict=True,
        ):
            shell.wait_for("> ")
            shell.type(statement + ENTER)
            shell.wait_for(sign)
        shell.wait_for("default> ")
        lines = shell.lines()
    finally:
        shell.close()
    return {"lines": _without_names(lines, str(warehouse))}


def record_top(directory: Path, wait_s: float = 0) -> Facts:
    """What ``acidsql top`` shows: two writers of a partition, and a compaction at work.

    Args:
        directory: An empty directory.
        wait_s: How long the transactions are open before somebody looks.
    """
    warehouse = directory / "airline"
    with closing(open_metastore(None, str(warehouse), Settings())) as store:
        for user, host, statement in (
            ("ann", "db1", "UPDATE flights SET delay = delay - 5 WHERE month = 1"),
            ("bob", "db2", "DELETE FROM flights WHERE month = 1 AND delay IS NULL"),
        ):
            txn_id = store.open_txn(user=user, host=host, agent_info=statement)
            lock = LockComponent(LockType.EXCL_WRITE, "default", "flights", "month=1")
            store.lock(txn_id, [lock], agent_info=statement)
            time.sleep(wait_s / 4)
        why = "11 deltas; above 10 (hive.compactor.delta.num.threshold)"
        queued = store.compact(
            CompactionRequest(
                TableName("default", "flights"),
                "month=2",
                CompactionType.MINOR,
                "ann",
                why=why,
            )
        )
        worker = store.open_txn(user="ann", host="db1", agent_info="compactor")
        store.take_next(worker, "db1-17", only=queued.id)
        store.note_progress(queued.id, worker, "merge 12/40, 4 run, 1.2 GB")
        time.sleep(wait_s)
        top = Terminal(_acidsql_command(warehouse, "top"), os.environ, (36, 112))
        try:
            top.wait_for("12/40")  # in the last line
            lines = top.lines()
            top.type("q")
        finally:
            top.close()
    return {"lines": _without_names(lines, str(warehouse))}


def _acidsql_command(warehouse: Path, *arguments: str) -> list[str]:
    """Return the command line of ``acidsql`` on a warehouse, with further arguments."""
    return [sys.executable, "-m", "acidsql", "--warehouse", str(warehouse), *arguments]


def _without_names(lines: list[list[tuple[str, str]]], warehouse: str) -> list[list[list[str]]]:
    """The lines with a public name for the warehouse, the user and the host of this machine."""
    shown = []
    for line in lines:
        texts = []
        for text, kinds in line:
            public = text.replace(warehouse, SHOWN_WAREHOUSE)
            public = public.replace(f"{getpass.getuser()}@{socket.gethostname()}", "ann@db1")
            texts.append([public, kinds])
        shown.append(texts)
    return shown
