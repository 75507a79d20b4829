"""acidsql and Hive change the same tables in turns; after each turn both see what a model sees.

``ACIDSQL_HIVE_TURNS=200`` runs so many turns on each kind of table (a turn takes about two
seconds), ``ACIDSQL_HIVE_SEED=7`` other ones.
"""

from __future__ import annotations

import os
import random

import pytest
from both import LONG

pytestmark = pytest.mark.slow

TURNS = int(os.environ.get("ACIDSQL_HIVE_TURNS", "2"))
SEED = os.environ.get("ACIDSQL_HIVE_SEED", "1")
PARTITIONS = (1, 2, 3)

KINDS = {
    "plain": "CREATE TABLE t (id INT, v INT, p INT)",
    "partitioned": "CREATE TABLE t (id INT, v INT) PARTITIONED BY (p INT)",
    "bucketed": "CREATE TABLE t (id INT, v INT, p INT) CLUSTERED BY (id) INTO 2 BUCKETS",
    "insert-only": "CREATE TABLE t (id INT, v INT, p INT)",
}
IN_HIVE = "{} STORED AS ORC TBLPROPERTIES ('transactional'='true'{})"
INSERT_ONLY = "'transactional_properties'='insert_only'"


class Turns:
    """Random turns on one table, and the rows that it must have: id → (v, p)."""

    def __init__(self, both, kind, chance):
        self.both, self.kind, self.chance = both, kind, chance
        self.model, self._next = {}, 1
        self.is_partitioned = kind == "partitioned"
        self.changes = [self.insert, self.overwrite, self.truncate, self.compact]
        self.changes += [self.insert, self.undo]
        if kind != "insert-only":
            self.changes += [self.update, self.delete, self.merge] * 3
        if self.is_partitioned:
            self.changes += [self.drop_partition]

    def create(self):
        """Either of both makes the table."""
        more = ("", ", " + INSERT_ONLY)[self.kind == "insert-only"]
        if self.chance.random() < 0.5:
            self.run("hive", IN_HIVE.format(KINDS[self.kind], more))
        else:
            only = f" TBLPROPERTIES ({INSERT_ONLY})" if more else ""
            self.run("acidsql", KINDS[self.kind] + only)
        self.insert()

    def run(self, who, statement):
        self.both.run(who, statement)

    def turn(self):
        self.chance.choice(self.changes)()

    def check(self):
        expected = sorted(((key, *values) for key, values in self.model.items()), key=repr)
        said = "\n".join(self.both.said)
        assert self.both.rows("t") == expected, said
        if self.kind != "insert-only":
            with_ids = self.both.rows_with_ids("t")
            assert sorted((one[1:] for one in with_ids), key=repr) == expected, said

    @property
    def who(self):
        return self.chance.choice(["acidsql", "hive"])

    def _new_rows(self, p=None):
        rows = {}
        for _ in range(self.chance.randint(1, 3)):
            place = p if p is not None else self.chance.choice(PARTITIONS)
            rows[self._next] = (self.chance.randint(0, 99), place)
            self._next += 1
        return rows

    def insert(self):
        rows = self._new_rows()
        self.model.update(rows)
        self.run(self.who, f"INSERT INTO t VALUES {_values(rows)}")

    def update(self):
        rest = self.chance.randrange(3)
        self.model = {
            key: (v + 100 if key % 3 == rest else v, p) for key, (v, p) in self.model.items()
        }
        self.run(self.who, f"UPDATE t SET v = v + 100 WHERE id % 3 = {rest}")

    def delete(self):
        rest, p = self.chance.randrange(3), self.chance.choice(PARTITIONS)
        self.model = {
            key: values for key, values in self.model.items() if key % 3 != rest or values[1] != p
        }
        self.run(self.who, f"DELETE FROM t WHERE id % 3 = {rest} AND p = {p}")

    def merge(self):
        """Delete a row, change a row, and add rows."""
        known = self.chance.sample(sorted(self.model), min(2, len(self.model)))
        source = self._new_rows() | {
            key: (self.model[key][0] + 7, self.model[key][1]) for key in known
        }
        gone = known[0] if known else -1
        self.model.update(source)
        self.model.pop(gone, None)
        rows = " UNION ALL ".join(
            f"SELECT {key} id, {v} v, {p} p" for key, (v, p) in source.items()
        )
        self.run(
            self.who,
            f"MERGE INTO t USING ({rows}) s ON t.id = s.id "
            f"WHEN MATCHED AND s.id = {gone} THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.p)",
        )

    def overwrite(self):
        if self.is_partitioned:
            p = self.chance.choice(PARTITIONS)
            rows = self._new_rows(p)
            self._forget(p)
            values = ", ".join(f"({key}, {v})" for key, (v, _) in rows.items())
            self.run(self.who, f"INSERT OVERWRITE TABLE t PARTITION (p = {p}) VALUES {values}")
        else:
            rows = self._new_rows()
            self.model.clear()
            self.run(self.who, f"INSERT OVERWRITE TABLE t VALUES {_values(rows)}")
        self.model.update(rows)

    def truncate(self):
        if self.chance.random() < 0.3:
            self.model.clear()
            self.run(self.who, "TRUNCATE TABLE t")

    def undo(self):
        self.run("acidsql", "BEGIN")
        self.run("acidsql", f"INSERT INTO t VALUES {_values(self._new_rows())}")
        if self.kind != "insert-only":
            self.run("acidsql", "DELETE FROM t")
        self.run("acidsql", "ROLLBACK")

    def drop_partition(self):
        p = self.chance.choice([values[1] for values in self.model.values()] or [1])
        self._forget(p)
        self.run(self.who, f"ALTER TABLE t DROP IF EXISTS PARTITION (p = {p})")

    def compact(self):
        what = "t"
        if self.is_partitioned:
            known = [values[1] for values in self.model.values()]
            if not known:
                return
            what = f"t PARTITION (p = {self.chance.choice(known)})"
        how = self.chance.choice(["minor", "major"])
        if self.who == "hive":
            self.both.compact_by_hive(what, how)
        else:
            self.run("acidsql", f"ALTER TABLE {what} COMPACT '{how}' AND WAIT")
        if self.chance.random() < 0.5:
            self.run("hive", "!cleaner")

    def _forget(self, p):
        self.model = {key: one for key, one in self.model.items() if one[1] != p}


def _values(rows):
    return ", ".join(f"({key}, {v}, {p})" for key, (v, p) in rows.items())


@pytest.mark.parametrize(
    "kind",
    [
        "plain",
        "partitioned",
        pytest.param("bucketed", marks=LONG),
        pytest.param("insert-only", marks=LONG),
    ],
)
def test_in_turns_both_see_the_rows_of_the_model(both, kind):
    turns = Turns(both, kind, random.Random(f"{kind} {SEED}"))
    turns.create()
    for _ in range(TURNS):
        turns.turn()
        turns.check()
