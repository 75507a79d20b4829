"""A table as a plain Python list, for the oracle test. It uses no code of acidsql."""

from __future__ import annotations

from dataclasses import dataclass

Row = tuple[int | None, str | None, int | None, str | None]  # id, v, n, p
COLUMNS = ("id", "v", "n", "p")
CHECK = "n < 4 OR p <> 'x'"


def text(value: object) -> str:
    """A literal."""
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)


def values(rows: list[Row]) -> str:
    """A VALUES list whose columns have types even if all are null."""
    return ", ".join(
        f"(CAST({text(a)} AS INT), CAST({text(b)} AS STRING), CAST({text(c)} AS INT), "
        f"CAST({text(d)} AS STRING))"
        for a, b, c, d in rows
    )


@dataclass(frozen=True)
class Condition:
    """``column op constant`` with SQL's three results: True, False, None."""

    column: str
    op: str
    constant: int | None

    def sql(self, prefix: str = "") -> str:
        if self.op == "IS NULL":
            return f"{prefix}{self.column} IS NULL"
        return f"{prefix}{self.column} {self.op} {text(self.constant)}"

    def of(self, row: Row) -> bool | None:
        value = row[COLUMNS.index(self.column)]
        if self.op == "IS NULL":
            return value is None
        if value is None or self.constant is None:
            return None
        assert isinstance(value, int)
        return {"=": value == self.constant, "<": value < self.constant,
                "<>": value != self.constant}[self.op]  # fmt: skip


class Model:
    """The rows of a table. ``p`` may be a partition column.

    Attributes:
        touched: The values of ``p`` in rows that were changed since the table was last emptied.
        checked: There is a CHECK: ``CHECK``.
    """

    def __init__(self, partitioned: bool, checked: bool = False) -> None:
        self.partitioned, self.checked = partitioned, checked
        self.rows: list[Row] = []
        self.touched: set[str | None] = set()

    def is_broken(self) -> bool:
        """Whether the CHECK is false for a row. NULL is not false."""
        return self.checked and any(
            row[2] is not None and row[2] >= 4 and row[3] == "x" for row in self.rows
        )

    def stored(self, row: Row) -> Row:
        """NULL and the empty text share the partition of NULL."""
        return (*row[:3], None) if self.partitioned and row[3] == "" else row

    def insert(self, rows: list[Row]) -> tuple[int, int, int]:
        new = [self.stored(row) for row in rows]
        self.rows = self.rows + new
        self.touched |= {row[3] for row in new}
        return len(rows), 0, 0

    def overwrite(self, rows: list[Row]) -> tuple[int, int, int]:
        new = [self.stored(row) for row in rows]
        replaced = {row[3] for row in new}
        self.touched |= replaced
        self.rows = [r for r in self.rows if self.partitioned and r[3] not in replaced] + new
        return len(rows), 0, 0

    def replace_where(self, rows: list[Row], test: Condition) -> tuple[int, int, int]:
        """``REPLACE WHERE test``, of the rows that satisfy it."""
        *_, gone = self.delete(test)
        return (*self.insert([row for row in rows if test.of(row) is True])[:2], gone)

    def replace_using(self, rows: list[Row], columns: list[str]) -> tuple[int, int, int]:
        """``REPLACE USING (columns)``. A NULL equals nothing."""
        at = [COLUMNS.index(column) for column in columns]
        keys = {tuple(self.stored(row)[i] for i in at) for row in rows}
        keys = {key for key in keys if None not in key}
        gone = [row for row in self.rows if tuple(row[i] for i in at) in keys]
        self.rows = [row for row in self.rows if tuple(row[i] for i in at) not in keys]
        self.touched |= {row[3] for row in gone}
        return (*self.insert(rows)[:2], len(gone))

    def delete(self, test: Condition) -> tuple[int, int, int]:
        kept = [row for row in self.rows if test.of(row) is not True]
        gone = len(self.rows) - len(kept)
        self.touched |= {row[3] for row in self.rows if test.of(row) is True}
        self.rows = kept
        return 0, 0, gone

    def update(self, test: Condition, v: str | None, plus: int) -> tuple[int, int, int]:
        """``SET v = …, n = n + plus``."""
        hit = [test.of(row) is True for row in self.rows]
        self.touched |= {row[3] for row, h in zip(self.rows, hit, strict=True) if h}
        self.rows = [
            (row[0], v, None if row[2] is None else row[2] + plus, row[3]) if h else row
            for row, h in zip(self.rows, hit, strict=True)
        ]
        return 0, sum(hit), 0

    def move(self, test: Condition, p: str | None) -> tuple[int, int, int]:
        """``SET p = …, id = id + 1``: rows change their partition, or their bucket."""
        hit = [test.of(row) is True for row in self.rows]
        moved = [
            self.stored((None if row[0] is None else row[0] + 1, *row[1:3], p)) if h else row
            for row, h in zip(self.rows, hit, strict=True)
        ]
        self.touched |= {
            place
            for row, new, h in zip(self.rows, moved, hit, strict=True)
            for place in (row[3], new[3])
            if h
        }
        self.rows = moved
        return 0, sum(hit), 0

    def merge(self, source: list[Row], clauses: list[Clause]) -> tuple[int, int, int] | None:
        """MERGE ON id = id. None for a cardinality violation, which changes nothing."""
        new, done = [], {"insert": 0, "update": 0, "delete": 0}
        touched = set()
        matched = [c for c in clauses if c.when == "MATCHED"]
        exempt = len(matched) == 1 and matched[0].action == "delete" and not matched[0].test
        for row in self.rows:
            partners = [s for s in source if s[0] is not None and s[0] == row[0]]
            if len(partners) > 1 and matched and not exempt:
                return None
            when = "MATCHED" if partners else "NOT MATCHED BY SOURCE"
            clause = first(clauses, when, row)
            if clause is None:
                new.append(row)
                continue
            done["delete" if clause.action == "delete" else "update"] += 1
            touched.add(row[3])
            if clause.action == "update":
                new.append((row[0], partners[0][1] if partners else "gone", 7, row[3]))
            if clause.action == "move":
                new.append(self.stored((*row[:1], partners[0][1], 7, partners[0][3])))
                touched.add(new[-1][3])
        ids = {row[0] for row in self.rows}
        for row in source:
            alone = row[0] is None or row[0] not in ids
            if alone and first(clauses, "NOT MATCHED", row) is not None:
                new.append(self.stored(row))
                touched.add(new[-1][3])
                done["insert"] += 1
        self.rows = new
        self.touched |= touched
        return done["insert"], done["update"], done["delete"]


@dataclass(frozen=True)
class Clause:
    """A WHEN clause. Its test reads the target's row, or the source's if there is no target row."""

    when: str
    action: str
    test: Condition | None

    def sql(self) -> str:
        side = "s." if self.when == "NOT MATCHED" else "t."
        condition = f" AND {self.test.sql(side)}" if self.test else ""
        v = "s.v" if self.when == "MATCHED" else "'gone'"
        action = {
            "delete": "DELETE",
            "move": "UPDATE SET p = s.p, v = s.v, n = 7",
            "update": f"UPDATE SET v = {v}, n = 7",
            "insert": "INSERT (p, n, v, id) VALUES (s.p, s.n, s.v, s.id)",
        }[self.action]
        return f"WHEN {self.when}{condition} THEN {action}"


def first(clauses: list[Clause], when: str, row: Row) -> Clause | None:
    """The first clause that is true."""
    for clause in clauses:
        if clause.when == when and (clause.test is None or clause.test.of(row) is True):
            return clause
    return None
