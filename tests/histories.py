"""Random histories of a table, and what its rows were after each transaction."""

from __future__ import annotations

import random
from typing import Any

Rows = list[tuple[Any, ...]]


class History:
    """Random statements on ``t (id INT, v INT, p INT)``, and the rows after each of them."""

    def __init__(self, acid: Any, seed: int) -> None:
        self.acid, self.random = acid, random.Random(seed)
        self.rows: Rows = []
        self.versions: dict[int, Rows] = {0: []}
        self.next_id = 1

    def write(self) -> None:
        """One transaction of one to three statements; now and then it is rolled back."""
        before = list(self.rows)
        if (many := self.random.randrange(4)) < 2:
            self._statement()
            self._keep(self.acid.last.write_ids)
            return
        self.acid.sql("BEGIN")
        for _ in range(many):
            self._statement(overwrite=False)
        if self.random.random() < 0.3:
            self.acid.sql("ROLLBACK")
            self.rows = before
        else:
            self.acid.sql("COMMIT")
            self._keep(self.acid.last.write_ids)

    def _keep(self, write_ids: dict[str, int]) -> None:
        for number in write_ids.values():
            self.versions[number] = sorted(self.rows)

    def _statement(self, *, overwrite: bool = True) -> None:
        acts = [self._insert, self._insert, self._update, self._delete, self._merge]
        self.random.choice([*acts, self._overwrite] if overwrite else acts)()

    def _new(self) -> tuple[int, int, int]:
        self.next_id += 1
        return self.next_id, self.random.randrange(9), self.random.randrange(2)

    def _insert(self) -> None:
        new = [self._new() for _ in range(self.random.randint(1, 3))]
        self.acid.sql(f"INSERT INTO t VALUES {', '.join(map(str, new))}")
        self.rows += new

    def _third(self) -> int:
        return self.random.randrange(3)

    def _update(self) -> None:
        third = self._third()
        self.acid.sql(f"UPDATE t SET v = v + 10 WHERE id % 3 = {third}")
        self.rows = [(i, v + 10 if i % 3 == third else v, p) for i, v, p in self.rows]

    def _delete(self) -> None:
        third = self._third()
        self.acid.sql(f"DELETE FROM t WHERE id % 3 = {third} AND v % 2 = 0")
        self.rows = [one for one in self.rows if one[0] % 3 != third or one[1] % 2]

    def _merge(self) -> None:
        new = self._new()
        third = self._third()
        self.acid.sql(
            f"MERGE INTO t USING (SELECT id, p FROM t WHERE id % 3 = {third} UNION ALL "
            f"SELECT {new[0]}, {new[2]}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = -1 "
            "WHEN NOT MATCHED THEN INSERT VALUES (s.id, 100, s.p)"
        )
        self.rows = [(i, -1 if i % 3 == third else v, p) for i, v, p in self.rows]
        self.rows.append((new[0], 100, new[2]))

    def _overwrite(self) -> None:
        new = self._new()
        self.acid.sql(f"INSERT OVERWRITE t PARTITION (p = {new[2]}) VALUES ({new[0]}, {new[1]})")
        self.rows = [one for one in self.rows if one[2] != new[2]] + [new]
