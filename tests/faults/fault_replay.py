"""Remembers Spark's answers: a statement that runs a hundred times asks Spark once.

Only pure questions are remembered: the analysis of a text over given stand-ins, and the rows of
given files. The keys name everything that the answer depends on. All code that touches files or the
store runs each time. The events of a job are replayed through the functions that its tasks run.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from acidsql.acid.table import Table
from acidsql.plan.analysis import lower
from acidsql.statements import runner
from acidsql.statements.dml import write as writer
from acidsql.statements.queries import filler, statement_demands, table_rows
from acidsql.storage import event_records as ew
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.reading import read
from acidsql.storage.spark.session import temporary
from acidsql.storage.writing import delete_writer, event_writer, load, save
from acidsql.storage.writing import job as write

_STANDIN = re.compile(r"__acidsql_[0-9a-f]+_\d+")


class Memory:
    """Answers by question. They live as long as this object, so ``id`` is a name for them."""

    def __init__(self) -> None:
        self._answers: dict[Any, Any] = {}

    def ask(self, key: Any, question: Callable[[], Any]) -> Any:
        """The remembered answer; the first time, the question is really asked."""
        if key not in self._answers:
            self._answers[key] = question()
        return self._answers[key]


def install(patch: pytest.MonkeyPatch, memory: Memory) -> None:
    """Put a memory between acidsql and Spark."""
    _remember_frames(patch, memory)
    _remember_scans(patch, memory)
    frame_of_counts, replayed = runner.counts_frame, functools.partial(_write_events, memory)
    patch.setattr(save, "write_events", replayed)
    patch.setattr(
        save,
        "collect_events_if_few",
        functools.partial(_collect_few, memory, save.collect_events_if_few),
    )
    patch.setattr(writer, "stage_rows", _staged)
    patch.setattr(load, "copy_in_tasks", lambda _spark, *args: load.copy_in_driver(*args))
    patch.setattr(temporary, "is_temp_view", lambda _spark, _name: False)
    patch.setattr(
        runner,
        "counts_frame",
        lambda spark, receipt: memory.ask("counts", lambda: frame_of_counts(spark, receipt)),
    )


def _remember_frames(patch: pytest.MonkeyPatch, memory: Memory) -> None:
    ask_spark = lower.frame

    def frame(
        spark: Any, text: Any, views: Any, args: Any = None, time: Any = None, **options: Any
    ) -> Any:
        # Stand-ins have new names each time, but in the same order.
        numbers = {name: f"standin{i}" for i, name in enumerate(sorted(views, key=_by_number))}
        shown = tuple(sorted((numbers[name], id(view)) for name, view in views.items()))
        sql = _STANDIN.sub(lambda found: numbers.get(found[0], found[0]), text.sql)

        def ask() -> Any:
            found = ask_spark(spark, text, views, args, time, **options)
            found.collect = functools.cache(found.collect)
            return found

        return memory.ask((sql, shown, repr(args)), ask)

    patch.setattr(lower, "frame", frame)


def _by_number(name: str) -> tuple[str, int]:
    head, _, number = name.rpartition("_")
    return head, int(number) if number.isdigit() else 0


def _remember_scans(patch: pytest.MonkeyPatch, memory: Memory) -> None:
    scan, empty, shaped = read.scan, filler.empty_scan, table_rows.select_standin_columns
    patch.setattr(
        read,
        "scan",
        lambda spark, what: memory.ask(_scan_key(what), lambda: scan(spark, what)),
    )
    patch.setattr(
        filler,
        "empty_scan",
        lambda spark, table, virtual: memory.ask(
            (repr(table), virtual), lambda: empty(spark, table, virtual)
        ),
    )
    for module in (filler, statement_demands, table_rows):
        patch.setattr(
            module,
            "select_standin_columns",
            lambda rows, standin: memory.ask(
                (id(rows), standin.is_target, standin.virtual), lambda: shaped(rows, standin)
            ),
        )


def _scan_key(what: Any) -> Any:
    """A key for everything that the rows depend on, the bytes of the files included."""
    files = []
    for listing in what.listings:
        for file in (*listing.data, *listing.deletes):
            content = hashlib.md5(Path(file.path).read_bytes()).hexdigest()
            files.append((listing.partition, file.path, content))
    filtered = any(listing.needs_filter for listing in what.listings)
    shown = (tuple(what.virtual), what.with_deleted)
    return repr(what.table), tuple(files), shown, repr(what.write_ids) if filtered else ""


def _collect_few(
    memory: Memory,
    collect: Callable[..., Any],
    events: Any,
    table: Table,
    limit: int,
    *,
    if_small: bool,
) -> pa.Table | None:
    found: pa.Table | None = memory.ask(
        ("few", id(events), limit), lambda: collect(events, table, limit, if_small=if_small)
    )
    return found


@contextmanager
def _staged(rows: Any, location: str, txn_id: int) -> Iterator[Any]:
    """The rows themselves. They are remembered, so later changes of the source do not matter."""
    path = f"{location}/_tmp_source_{txn_id:07d}"
    try:
        filesystem_for(location).create_directory(path)
        yield rows
    finally:
        filesystem_for(location).delete_directory(path)


def _write_events(
    memory: Memory, events: Any, table: Table, spec: ew.WriteSpec, *, is_fast: bool = True
) -> list[ew.Record]:
    """Replaces ``write.write_events``: two tasks run here, one after the other."""
    rows: pa.Table = memory.ask(
        ("events", id(events)),
        lambda: write._arrange_rows(events, table, spec, may_use_sql=is_fast).toArrow(),
    )
    half = (rows.num_rows + 1) // 2
    parts = [rows.slice(0, half), rows.slice(half)]
    tasks = [(ew.Task(number, 100 + number), part) for number, part in enumerate(parts)]
    if ew.ACTION not in rows.column_names:
        return [
            record
            for task, part in tasks
            for record in event_writer.write_inserts(spec, task, part.combine_chunks().to_batches())
        ]
    keys = [
        batch
        for task, part in tasks
        for batch in event_writer.write_inserts_pass_deletes(
            spec, task, part.combine_chunks().to_batches()
        )
    ]
    order = [ew.PARTITION, ew.BUCKET_ID, ew.WRITE_ID, ew.BUCKET_PROPERTY, ew.ROW_ID]
    table_of_keys = pa.Table.from_batches(keys, ew.KEY_SCHEMA)
    ordered = table_of_keys.sort_by([(name, "ascending") for name in order]).combine_chunks()
    return list(delete_writer.write_deletes(spec, ew.Task(0, 200), ordered.to_batches()))
