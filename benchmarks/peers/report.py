"""Side-by-side tables of the JSON files that run.py wrote.

    python report.py results/s0.2/*.json [--stat min] > RESULTS.md

A time whose workload did not end in the majority's rows is marked WRONG, one
during which other processes took over 25 % of a core is marked '~'.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from statistics import median

NOISY = 0.25


def ratio(x):
    return f"{x:,.0f}" if x >= 10 else f"{x:.2g}"


def rounds(n):
    return f"{n} rounds, the first not counted" if n > 1 else "1 round"


class Report:
    def __init__(self, runs, stat="median", order=()):
        rank = {name: k for k, name in enumerate(order)}
        self.runs = {
            r["engine"]: r
            for r in sorted(runs, key=lambda r: (rank.get(r["engine"], len(rank)), r["engine"]))
        }
        self.stat = {"median": median, "min": min}[stat]
        self.cells = {
            (p["workload"], p["phase"], e): p["samples"]
            for e, r in self.runs.items()
            for p in r["phases"]
        }
        rows = dict.fromkeys(
            (p["workload"], p["phase"]) for r in self.runs.values() for p in r["phases"]
        )
        self.rows = sorted(rows, key=lambda row: (row[0], self._position(row)))
        self.wrong = self._wrong()

    def _position(self, row):
        return min(
            ([p["workload"], p["phase"]] != list(row) and 1000) or k
            for r in self.runs.values()
            for k, p in enumerate(r["phases"])
        )

    def _complete(self, engine, workload):
        """Whether the engine ran every phase of the workload that others ran."""
        return all((w, p, engine) in self.cells for w, p in self.rows if w == workload)

    def _wrong(self):
        votes = {}
        for engine, run in self.runs.items():
            for c in run["checks"]:
                if self._complete(engine, c["workload"]):
                    told = votes.setdefault(c["workload"], {}).setdefault(engine, [])
                    told.append((c["n"], c["x"], c["s"]))
        wrong = set()
        for workload, by_engine in votes.items():
            right = Counter(map(tuple, by_engine.values())).most_common(1)[0][0]
            wrong |= {(workload, e) for e, v in by_engine.items() if tuple(v) != right}
        return wrong

    def table(self, cell, only=lambda row: True):
        lines = ["| | " + " | ".join(self.runs) + " |", "|---" * (len(self.runs) + 1) + "|"]
        for row in filter(only, self.rows):
            texts = cell(row)
            if any(texts):
                lines.append(f"| {row[0]} {row[1]} | " + " | ".join(t or "" for t in texts) + " |")
        return "\n".join(lines)

    def value(self, row, engine, key):
        samples = self.cells.get((*row, engine))
        if not samples or key not in samples[0]:
            return None
        return self.stat([s[key] for s in samples])

    def times(self, row):
        values = {e: self.value(row, e, "s") for e in self.runs}
        best = min(
            (v for e, v in values.items() if v is not None and (row[0], e) not in self.wrong),
            default=None,
        )
        for engine, v in values.items():
            if v is None:
                yield ""
                continue
            other = self.stat([s["other_cpu_s"] / s["s"] for s in self.cells[(*row, engine)]])
            text = f"{v:.2f} (×{v / best:.1f})" + ("~" if other > NOISY else "")
            yield "WRONG " + text if (row[0], engine) in self.wrong else text

    def cpu(self, row):
        """CPU seconds do not grow with other load on the machine, unlike wall time."""
        values = {e: self.value(row, e, "cpu_s") for e in self.runs}
        best = min(
            (v for e, v in values.items() if v and (row[0], e) not in self.wrong), default=None
        )
        return [f"{v:.2f} (×{v / best:.1f})" if v and best else "" for v in values.values()]

    def written(self, row):
        for engine in self.runs:
            v, changed = (self.value(row, engine, k) for k in ("written", "changed"))
            yield f"{v / 1e6:.3g}" + (f" (×{ratio(v / changed)})" if changed else "") if v else ""

    def jobs(self, row):
        for engine in self.runs:
            v = [self.value(row, engine, k) for k in ("jobs", "stages", "tasks")]
            cpu, s = self.value(row, engine, "cpu_s"), self.value(row, engine, "s")
            yield f"{v[0]:.0f}/{v[1]:.0f}/{v[2]:.0f}, {cpu / s:.1f}" if s else ""

    def sizes(self):
        lines = [
            "| engine | disk before | live before | disk after | live after |",
            "|---" * 5 + "|",
        ]
        for engine, run in self.runs.items():
            at = {s["when"]: s for s in run["sizes"]}
            if at:

                def mb(v):
                    return f"{v / 1e6:.1f}" if v else ""

                lines.append(
                    f"| {engine} | "
                    + " | ".join(
                        mb(at.get(w, {}).get(k))
                        for w in ("before", "after")
                        for k in ("disk", "live")
                    )
                    + " |"
                )
        return "\n".join(lines)

    def failures(self):
        return (
            "\n".join(
                f"- {e} {f['workload']}: {f['error']}"
                for e, r in self.runs.items()
                for f in r["failures"]
            )
            or "none"
        )

    def render(self):
        head = "\n".join(
            f"- {e}: Spark {r['spark']}, {', '.join(r['jars']) or 'no jars'}, "
            f"scale {r['scale']}, {rounds(r['rounds'])}, {r['elapsed']:.0f} s"
            for e, r in self.runs.items()
        )
        return f"""{head}

### Seconds (× the best)

{self.table(lambda row: list(self.times(row)))}

### CPU seconds of our processes (× the best)

{self.table(self.cpu)}

### MB written per statement (× the bytes of the changed rows)

{self.table(lambda row: list(self.written(row)))}

### Spark jobs/stages/tasks per statement, cores busy in our processes

{self.table(lambda row: list(self.jobs(row)))}

### Table size around compaction, MB

{self.sizes()}

### Failures

{self.failures()}

Wrong results: {", ".join(f"{e} {w}" for w, e in sorted(self.wrong)) or "none"}
"""


ORDER = (
    "plain_parquet",
    "plain_orc",
    "rewrite",
    "delta_cow",
    "delta_dv",
    "iceberg_cow",
    "iceberg_mor_v2",
    "iceberg_mor_v3",
    "hudi_cow",
    "hudi_mor",
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--stat", choices=("median", "min"), default="median")
    args = parser.parse_args()
    runs = [json.loads(p.read_text()) for p in args.results]
    print(Report(runs, args.stat, ORDER).render())


if __name__ == "__main__":
    main()
