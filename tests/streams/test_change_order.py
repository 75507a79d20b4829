"""The order values of change records: a table that follows them equals its source.

Histories of a source come from a small model: transactions that overlap, hold the locks of the rows
that they change, and end in any order; and snapshots that see what is committed. The records are
what the tools' connectors write for them.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict

import pytest
from over_hive import needs
from test_changes import debezium, goldengate, maxwell, read, texts

pytestmark = pytest.mark.spark
SCHEMA = "id INT, name STRING"


class Source:
    """A database with one table, and the records of its changes.

    Attributes:
        rows: The committed rows.
        sent: The records, in the order in which the connector sends them.
    """

    def __init__(self, name, connector, seed):
        self.name, self.connector, self.random = name, connector, random.Random(seed)
        self.rows, self.sent, self.open = {}, [], []
        self.place, self.last_commit, self.value = 1000, None, 0
        self.streams = False  # the connector sends changes from the snapshot on

    def source(self, place, commit, number):
        """The block of a record; commit: the place of the transaction's commit."""
        if self.connector == "postgresql":
            last = None if self.last_commit is None else str(self.last_commit)
            return {"lsn": place, "sequence": json.dumps([last, str(place)])}
        if self.connector == "oracle":
            redo = {"rs_id": f" 0x00009a.{place:08x}.0010 ", "ssn": number}
            return {"scn": str(place // 4), "commit_scn": str(commit // 4), **redo}
        if self.connector == "sqlserver":
            lsns = {"commit_lsn": f"00000027:{commit:08x}:0001"}
            return lsns | {"change_lsn": f"00000027:{place:08x}:0002", "event_serial_no": number}
        file, pos = divmod(commit, 64)  # a binary log gets whole transactions when they commit
        return {"file": f"binlog.{999975 + file:06}", "pos": 4 + pos, "row": number}

    def snapshot_source(self):
        if self.connector == "postgresql":
            last = None if self.last_commit is None else str(self.last_commit)
            return {"lsn": self.place, "sequence": json.dumps([last, str(self.place)])}
        if self.connector == "oracle":
            return {"scn": str(self.place // 4)}
        if self.connector == "sqlserver":
            return {"commit_lsn": f"00000027:{self.place:08x}:0001"}
        file, pos = divmod(self.place, 64)
        return {"file": f"binlog.{999975 + file:06}", "pos": 4 + pos, "row": 0}

    def record(self, op, before, after, source):
        images = [one and dict(zip(("id", "name"), one, strict=True)) for one in (before, after)]
        table = {"schema": "s", "table": self.name}
        self.sent.append(debezium(op, *images, self.connector, **table, **source))

    def snapshot(self):
        self.place += 4
        if self.connector == "oracle":
            self.place += -self.place % 4 + 3  # AS OF SCN: later commits have a higher SCN
        for row in self.rows.items():
            self.record("r", None, row, self.snapshot_source())
        self.streams = True

    def change(self, transaction):
        key = self.random.randrange(4)
        if any(key in other["view"] for other in self.open if other is not transaction):
            return  # another transaction holds the row's lock
        self.place += self.random.choice((1, 1, 5))
        view, old = transaction["view"], None
        old = view[key] if key in view else self.rows.get(key)
        self.value += 1
        new = None if old is not None and self.random.random() < 0.3 else f"v{self.value}"
        view[key] = new
        op = "d" if new is None else "c" if old is None else "u"
        transaction["changes"].append((op, key, old, new, self.place))

    def commit(self, transaction):
        self.open.remove(transaction)
        self.place += 4
        for number, (op, key, old, new, place) in enumerate(transaction["changes"], 1):
            before = None if op == "c" else (key, old)
            if self.streams:
                after = None if op == "d" else (key, new)
                self.record(op, before, after, self.source(place, self.place, number))
        for key, new in transaction["view"].items():
            self.rows.pop(key, None)
            if new is not None:
                self.rows[key] = new
        if self.streams and transaction["changes"]:
            self.last_commit = self.place

    def run(self):
        first, again = sorted(self.random.sample(range(10, 70), 2))
        for step in range(80):
            if step == first or (step == again and self.random.random() < 0.5):
                self.snapshot()
            if len(self.open) < 3 and self.random.random() < 0.3:
                self.open.append({"view": {}, "changes": []})
            if self.open:
                transaction = self.random.choice(self.open)
                act = self.commit if self.random.random() < 0.25 else self.change
                act(transaction)
        for transaction in list(self.open):
            self.commit(transaction)
        return self


@pytest.fixture(scope="module")
def sources():
    kinds = ("postgresql", "oracle", "sqlserver", "mysql", "mariadb")
    return [Source(f"{kind}{seed}", kind, seed).run() for kind in kinds for seed in range(40)]


def test_the_newest_record_of_each_key_is_the_source_s_row(acid, sources):
    records = [record for source in sources for record in source.sent]
    random.Random(1).shuffle(records)
    newest = defaultdict(dict)
    for row in read(acid, "debezium", records):
        found = newest[row._table].setdefault(row.id, {})
        change = (row._op == "delete", row.name)
        assert found.setdefault(row._sequence, change) == change
    wrong = []
    for source in sources:
        rows = {}
        for key, changes in newest[f"s.{source.name}"].items():
            is_delete, name = changes[max(changes)]
            if not is_delete:
                rows[key] = name
        wrong += [source.name] * (rows != source.rows)
    assert wrong == []


@needs("keeps_state_tables")
def test_auto_cdc_makes_the_table_equal_to_the_source(acid, sources):
    by_seed = [source for source in sources if source.connector == "postgresql"]
    source = max(by_seed, key=lambda one: len(one.sent))
    acid.sql("CREATE TABLE t (id INT, name STRING)")
    cdc = acid.auto_cdc(
        "t", keys="id", sequence_by="_sequence", apply_as_deletes="_op = 'delete'",
        column_list=["id", "name"],
    )  # fmt: skip
    records = list(source.sent)
    random.Random(2).shuffle(records)
    half = len(records) // 2
    for some in (records[:half], records[half:], records):
        cdc.apply(acid.changes_from("debezium", texts(acid.spark, *some), SCHEMA))
    assert dict(acid.sql("SELECT * FROM t").collect()) == source.rows


def test_places_are_compared_as_numbers(acid):
    row = {"id": 1, "name": "a"}
    feeds = {
        "debezium": [
            debezium("c", None, row, "mysql", file=file, pos=pos, row=number)
            for file, pos, number in (
                ("binlog.000999", 900, 0), ("binlog.001000", 4, 9), ("binlog.001000", 4, 10),
                ("binlog.999999", 4, 0), ("binlog.1000000", 4, 0),
            )
        ] + [
            debezium("c", None, row, lsn=lsn, sequence=f'["{commit}","{lsn}"]')
            for commit, lsn in ((9999999, 5), (10000000, 4), (1 << 40, 3), (1 << 60, 2))
        ],
        "goldengate": [goldengate("I", pos, None, row) for pos in (9, 10, 10**19)],
        "maxwell": [
            maxwell("insert", row, place, **more)
            for place, more in (
                ("b.000009:99", {"commit": True}), ("b.000010:4", {"xoffset": 9}),
                ("b.000010:4", {"xoffset": 10}), ("b.000010:4", {"commit": True}),
                ("b.000010:31", {"xoffset": 0}),
            )
        ],
    }  # fmt: skip
    for format, records in feeds.items():
        found = [one._sequence for one in read(acid, format, records, keys="id")]
        parts = [found] if format != "debezium" else [found[:5], found[5:]]
        for orders in parts:
            assert sorted(set(orders)) == orders


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (debezium("c", None, {"id": 1}, "oracle", scn="1000"), "no known order"),
        (debezium("c", None, {"id": 1}, "sqlserver", commit_lsn="1:2:3", change_lsn="x"), "no kno"),
        (debezium("c", None, {"id": 1}, lsn="1.5"), "no known order"),
        (maxwell("insert", {"id": 1}, "b.1:4", xid=1), "output_xoffset=true"),
    ],
)
def test_a_record_without_its_whole_place_is_refused(acid, record, said):
    format = "maxwell" if "database" in record else "debezium"
    with pytest.raises(Exception, match=said):
        read(acid, format, [record], "id INT", keys="id")
