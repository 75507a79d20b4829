"""Data generator and workload definitions, independent of any engine.

A workload is a function of a `Bench` (the measuring context, see run.py) and a
`Data` (deterministic inputs of one scale).  It speaks to the engine only through
the row-level operations of `engines.base.Engine`, so the same steps run on all.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

SEED = 20240607
DAYS = 10
FIRST_DAY = "DATE'2024-01-01'"


# ---------------------------------------------------------------- statements


@dataclass(frozen=True)
class Table:
    name: str
    columns: dict  # column name -> SQL type
    partition: str = ""  # partition column
    buckets: int = 0  # buckets on `id`, where the format has them

    @property
    def names(self):
        return list(self.columns)


@dataclass(frozen=True)
class Merge:
    """MERGE of view `source` on `keys`.

    Without `op`: matched rows are updated and the others inserted.  With it, the
    source column of that name says what happens: 'U'pdate, 'D'elete, 'I'nsert.
    `prune` is a predicate on the target alone that all changes satisfy.
    """

    source: str
    keys: tuple = ("id",)
    op: str = ""
    prune: str = ""


DIM = Table(
    "dim",
    {
        "id": "BIGINT",
        "name": "STRING",
        "a": "INT",
        "b": "DOUBLE",
        "c": "DECIMAL(12,2)",
        "d": "DATE",
        "e": "STRING",
    },
)
FACT = Table(
    "fact",
    {
        "id": "BIGINT",
        "qty": "INT",
        "price": "DOUBLE",
        "amount": "DECIMAL(12,2)",
        "note": "STRING",
        "day": "DATE",
    },
    partition="day",
    buckets=4,
)


# ----------------------------------------------------------------- generator


@dataclass(frozen=True)
class Sizes:
    dim: int = 5_000_000
    merge: int = 500_000
    delete: int = 100_000
    fact: int = 10_000_000
    changes: int = 1_000_000
    micro: int = 50_000
    merges: int = 20  # micro-merges (not scaled)
    appends: int = 20  # successive small appends (not scaled)
    append_rows: int = 5_000
    point: int = 5  # repetitions of each point statement

    def scaled(self, scale):
        rows = {
            k: max(1000, int(getattr(self, k) * scale))
            for k in ("dim", "merge", "delete", "fact", "changes", "micro")
        }
        return Sizes(**rows)

    def warmup(self):
        small = self.scaled(0.004)
        return Sizes(
            **{**small.__dict__, "merges": 3, "appends": 4, "point": 3, "append_rows": 500}
        )


def _hash(key, version, n):
    return f"xxhash64({key}, {SEED}L, {version}L, {n}L)"


def dim_columns(key="id", version="0"):
    """The dim row of `key` in its `version`, as a select list."""

    def h(n):
        return _hash(key, version, n)

    return f"""
        {key} AS id,
        concat('customer-', {key}, '-v', {version}) AS name,
        cast(pmod({h(1)}, 100000) AS INT) AS a,
        cast(pmod({h(2)}, 10000000) AS DOUBLE) / 100 AS b,
        cast(cast(pmod({h(3)}, 1000000000) AS DECIMAL(12,0)) / 100 AS DECIMAL(12,2)) AS c,
        date_add(DATE'2020-01-01', cast(pmod({h(4)}, 1500) AS INT)) AS d,
        substr(md5(cast({h(5)} AS STRING)), 1, 20) AS e"""


def fact_columns(key="id", version="0"):
    def h(n):
        return _hash(key, version, n)

    return f"""
        {key} AS id,
        cast(pmod({h(1)}, 1000) AS INT) AS qty,
        cast(pmod({h(2)}, 10000000) AS DOUBLE) / 100 AS price,
        cast(cast(pmod({h(3)}, 1000000000) AS DECIMAL(12,0)) / 100 AS DECIMAL(12,2)) AS amount,
        substr(md5(cast({h(4)} AS STRING)), 1, 20) AS note,
        date_add({FIRST_DAY}, cast(pmod(xxhash64({key}), {DAYS}) AS INT)) AS day"""


def _permuted(i, n, prime):
    """A bijection of [0, n): every range of `i` spreads over all ids."""
    return f"(({i}) * {prime}L) % {n}L"


class Data:
    """Parquet inputs of one scale; generated once, then shared by all engines."""

    P1, P2, P3 = 2654435761, 2246822519, 3266489917

    def __init__(self, spark, sizes, root: Path):
        self.spark, self.sizes = spark, sizes
        self.root = Path(root) / f"dim{sizes.dim}-fact{sizes.fact}"

    def _view(self, name, rows, select, files=4):
        path = self.root / name
        if not (path / "_SUCCESS").exists():
            (
                self.spark.range(0, rows, 1, files)
                .selectExpr("id AS i")
                .createOrReplaceTempView("seq")
            )
            self.spark.sql(select).write.mode("overwrite").parquet(str(path))
        self.spark.read.parquet(str(path)).createOrReplaceTempView(name)
        return name

    def dim(self):
        n = self.sizes.dim
        key = _permuted("i", n, self.P1)
        return self._view(
            "dim_base", n, f"SELECT {dim_columns('id')} FROM (SELECT {key} AS id FROM seq)"
        )

    def upserts(self, rep, rows=None, label="upsert"):
        """Half of the rows match (updates, all over the table), half are new."""
        n, rows = self.sizes.dim, rows or self.sizes.merge
        half = rows // 2
        key = (
            f"CASE WHEN i % 2 = 0 THEN {_permuted(f'{rep}L * {half} + i div 2', n, self.P2)} "
            f"ELSE {n}L + {rep}L * {half} + i div 2 END"
        )
        return self._view(
            f"{label}_{rep}",
            rows,
            f"SELECT {dim_columns('id', str(rep + 1))} FROM (SELECT {key} AS id FROM seq)",
            files=2,
        )

    def micro(self, rep):
        return self.upserts(rep, self.sizes.micro, "micro")

    def delete_keys(self):
        n = self.sizes.dim
        return self._view(
            "delete_keys",
            self.sizes.delete,
            f"SELECT {_permuted('i', n, self.P3)} AS id FROM seq",
            files=1,
        )

    def fact(self):
        n = self.sizes.fact
        return self._view(
            "fact_base",
            n,
            f"SELECT {fact_columns('id')} FROM "
            f"(SELECT {_permuted('i', n, self.P1)} AS id FROM seq)",
        )

    def changes(self, rep, days=DAYS):
        """50 % updates, 30 % inserts, 20 % deletes, of the first `days` partitions."""
        n, rows = self.sizes.fact, self.sizes.changes
        key = (
            f"CASE WHEN i % 10 < 7 THEN {_permuted(f'{rep}L * {rows} + i', n, self.P2)} "
            f"ELSE {n}L + {rep}L * {rows} + i END"
        )
        op = "CASE WHEN i % 10 < 5 THEN 'U' WHEN i % 10 < 7 THEN 'D' ELSE 'I' END"
        return self._view(
            f"changes_{rep}_{days}",
            rows,
            f"SELECT {fact_columns('id', str(rep + 1))}, op FROM "
            f"(SELECT {key} AS id, {op} AS op FROM seq) "
            f"WHERE pmod(xxhash64(id), {DAYS}) < {days}",
            files=2,
        )

    def bytes_per_row(self, view):
        path = self.root / view
        size = sum(f.stat().st_size for f in path.glob("*.parquet"))
        return size / self.spark.read.parquet(str(path)).count()


def dim_values(first, count, version=99):
    """Literal rows for INSERT ... VALUES."""
    return [
        (
            first + k,
            f"customer-{first + k}-v{version}",
            k % 100000,
            k * 0.25,
            f"{k % 1000000}.50",
            "2024-02-03",
            f"{(first + k) * 2654435761 % 10**20:020d}",
        )
        for k in range(count)
    ]


def values_sql(rows):
    return ", ".join(
        f"({i}, '{n}', {a}, {b}D, CAST({c} AS DECIMAL(12,2)), DATE'{d}', '{e}')"
        for i, n, a, b, c, d, e in rows
    )


def one_row_sql(row):
    """A source of one row, as a program writes it to upsert one record."""
    values = values_sql([row])[1:-1].split(", ")
    return (
        "(SELECT " + ", ".join(f"{v} AS {c}" for v, c in zip(values, DIM.names, strict=True)) + ")"
    )


# ----------------------------------------------------------------- workloads

SCAN = {
    "dim": "SELECT sum(a), sum(b), sum(c) FROM {t}",
    "fact": "SELECT sum(qty), sum(price), sum(amount) FROM {t}",
}


def w1_upsert(bench, data):
    """Dimension upsert: half of the source updates, half inserts."""
    bench.load(DIM, data.dim())
    sources = [data.upserts(r) for r in range(bench.reps(3))]
    row = data.bytes_per_row("dim_base")
    for source in sources:
        bench.time(
            "W1",
            "merge",
            lambda: bench.engine.merge(DIM, Merge(source)),
            needs="merge",
            changed=data.sizes.merge * row,
        )
    bench.check("W1", DIM)


def w2_delete(bench, data):
    """Delete 2 % of the table by a key list, then 2 % by a range."""
    bench.load(DIM, data.dim())
    keys, row, n = data.delete_keys(), data.bytes_per_row("dim_base"), data.sizes.delete
    lo = data.sizes.dim * 2 // 5
    bench.time(
        "W2",
        "delete by keys",
        lambda: bench.engine.delete_keys(DIM, keys),
        needs="delete",
        changed=n * row,
    )
    bench.time(
        "W2",
        "delete by range",
        lambda: bench.engine.delete(DIM, f"id >= {lo} AND id < {lo + n}"),
        needs="delete",
        changed=n * row,
    )
    bench.check("W2", DIM)


def w3_fact(bench, data):
    """Mixed changes into a partitioned fact table: all partitions, then 2 of 10."""
    bench.load(FACT, data.fact(), workload="W3")
    everywhere, two = data.changes(0), data.changes(1, days=2)
    row, n = data.bytes_per_row("fact_base"), data.sizes.changes
    two_days = f"day IN ({FIRST_DAY}, DATE'2024-01-02')"
    bench.time(
        "W3",
        "merge 10/10 partitions",
        lambda: bench.engine.merge(FACT, Merge(everywhere, ("id", "day"), "op")),
        needs="merge",
        changed=n * row,
    )
    bench.time(
        "W3",
        "merge 2/10 partitions",
        lambda: bench.engine.merge(FACT, Merge(two, ("id", "day"), "op", two_days)),
        needs="merge",
        changed=n * 2 / DAYS * row,
    )
    bench.query("W3", "scan after", FACT, SCAN["fact"])
    bench.query("W3", "scan 1 partition", FACT, SCAN["fact"] + f" WHERE day = {FIRST_DAY}")
    bench.check("W3", FACT)


def w4_point(bench, data):
    """Latency of statements that change one row or a few."""
    bench.load(DIM, data.dim())
    n, point = data.sizes.dim, data.sizes.point
    row = data.bytes_per_row("dim_base")
    for k in range(point):
        bench.time(
            "W4",
            "UPDATE 1 row",
            lambda: bench.engine.update(
                DIM, {"a": "a + 1", "name": "'changed'"}, f"id = {n // 3 + k}"
            ),
            needs="update",
            changed=row,
        )
    for k in range(point):
        source = one_row_sql(dim_values(n // 4 + k, 1)[0])
        bench.time(
            "W4",
            "MERGE 1 row",
            lambda: bench.engine.merge(DIM, Merge(source)),
            needs="merge",
            changed=row,
        )
    for k in range(point):
        bench.time(
            "W4",
            "DELETE 1 row",
            lambda: bench.engine.delete(DIM, f"id = {n // 2 + k}"),
            needs="delete",
            changed=row,
        )
    for k in range(point):
        rows = dim_values(10 * n + k, 1)
        bench.time(
            "W4",
            "INSERT VALUES 1 row",
            lambda: bench.engine.insert_values(DIM, values_sql(rows)),
            needs="insert",
            changed=row,
        )
    for k in range(point):
        rows = dim_values(11 * n + 1000 * k, 1000)
        bench.time(
            "W4",
            "INSERT VALUES 1000 rows",
            lambda: bench.engine.insert_values(DIM, values_sql(rows)),
            needs="insert",
            changed=1000 * row,
        )
    bench.check("W4", DIM)


def w5_growth(bench, data):
    """Reads of a fresh table and after k micro-merges; then (W6) folding them."""
    bench.load(DIM, data.dim())
    row, n, total = data.bytes_per_row("dim_base"), data.sizes.micro, data.sizes.merges
    one = f"SELECT * FROM {{t}} WHERE id = {data.sizes.dim // 7}"
    micros = [data.micro(k) for k in range(total)]
    bench.query("W5", "scan fresh", DIM, SCAN["dim"])
    bench.query("W5", "read 1 row fresh", DIM, one)
    if "merge" not in bench.engine.can:
        return
    for k, source in enumerate(micros, 1):
        phase = "merge 1-5" if k <= 5 else f"merge {(k - 1) // 5 * 5 + 1}-{(k - 1) // 5 * 5 + 5}"
        bench.time("W5", phase, lambda: bench.engine.merge(DIM, Merge(source)), changed=n * row)
        if k in (1, 5, 10, 20):
            bench.query("W5", f"scan after {k}", DIM, SCAN["dim"])
    bench.query("W5", f"read 1 row after {total}", DIM, one)
    bench.check("W5", DIM)
    bench.size("W6", "before", DIM)
    bench.time("W6", "optimize", lambda: bench.engine.optimize(DIM), needs="optimize")
    bench.size("W6", "after", DIM)
    bench.query("W6", "scan after optimize", DIM, SCAN["dim"])
    bench.check("W6", DIM)


def w7_bulk(bench, data):
    """INSERT INTO an empty table SELECT everything."""
    source = data.dim()
    for _ in range(bench.reps(2)):
        bench.engine.create(DIM)
        bench.time(
            "W7",
            "bulk insert",
            lambda: bench.engine.insert_select(DIM, source),
            needs="insert",
            changed=data.sizes.dim * data.bytes_per_row("dim_base"),
        )
    bench.check("W7", DIM)


def w8_appends(bench, data):
    """Commit latency of successive small appends from a DataFrame."""
    bench.engine.create(DIM)
    rows = data.sizes.append_rows
    for k in range(data.sizes.appends):
        frame = bench.spark.range(k * rows, (k + 1) * rows, 1, 1).selectExpr(
            "id AS key"
        ).createOrReplaceTempView("batch") or bench.spark.sql(
            f"SELECT {dim_columns('key')} FROM batch"
        )
        bench.time(
            "W8", f"append {rows} rows", lambda: bench.engine.append(DIM, frame), needs="insert"
        )
    bench.query("W8", "scan after", DIM, SCAN["dim"])
    bench.check("W8", DIM)


WORKLOADS = {
    "W1": w1_upsert,
    "W2": w2_delete,
    "W3": w3_fact,
    "W4": w4_point,
    "W5": w5_growth,
    "W7": w7_bulk,
    "W8": w8_appends,
}


def checksum_sql(table, name):
    """Row count and an order-independent hash of every column of every row."""
    row = f"xxhash64({', '.join(sorted(table.names))})"
    return (
        f"SELECT count(*) AS n, bit_xor({row}) AS x, "
        f"sum(cast(pmod({row}, 1000000007) AS BIGINT)) AS s FROM {name}"
    )


def summary(seconds):
    return {"min": min(seconds), "median": median(seconds)}
