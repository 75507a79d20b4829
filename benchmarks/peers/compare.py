"""acidsql compared with its peers: the same data, the same statements, one run.

    make bench ARGS="--scale 0.2 --only W1,W4"
    make bench ARGS="--rounds 3"

Each engine runs in a process of its own, one after the other. A small round first warms it up. Of
several rounds at full size the first does not count, because the JVM still compiles. The results
are printed, and written to ``benchmarks/RESULTS.md``. Scale 1 is a dimension of 5 million rows and
a fact table of 10 million. The goals are ratios: acidsql's time ÷ the best time of the others.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from report import ORDER, Report

HERE = Path(__file__).parent
RESULTS = HERE.parent / "RESULTS.md"
ENGINES = ("plain_orc", "iceberg_mor_v3", "delta_dv", "acidsql")
PEERS = ("iceberg_mor_v3", "delta_dv")
WORKLOADS = "W1,W2,W3,W4,W5,W7,W8"
# Workload and phase → the greatest ratio, acidsql's time ÷ the best peer's, that is allowed.
TO_REACH = {
    ("W1", "merge"): 0.65,
    ("W2", "delete by keys"): 1.0,
    ("W2", "delete by range"): 1.0,
    ("W3", "merge 10/10 partitions"): 0.5,
    ("W3", "merge 2/10 partitions"): 0.9,
    ("W4", "UPDATE 1 row"): 1.0,
    ("W4", "MERGE 1 row"): 1.0,
    ("W4", "DELETE 1 row"): 1.0,
    ("W4", "INSERT VALUES 1 row"): 0.25,
    ("W4", "INSERT VALUES 1000 rows"): 0.3,
    ("W5", "merge 1-5"): 0.7,
    ("W5", "merge 16-20"): 0.6,
    ("W5", "scan fresh"): 1.2,
    ("W5", "scan after 20"): 1.2,
    ("W6", "optimize"): 0.8,
    ("W7", "bulk insert"): 1.6,
    ("W8", "append 5000 rows"): 0.8,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scale", default="1")
    parser.add_argument("--only", default=WORKLOADS, help="workloads, comma-separated")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--rounds", default="1", help="of each workload; of several, not the first")
    args = parser.parse_args()
    work = Path("build/bench").resolve()
    runs = []
    for engine in args.engines.split(","):
        out = work / "out" / f"{engine}.json"
        command = [sys.executable, str(HERE / "run.py"), "--engine", engine, "--scale", args.scale]
        command += ["--only", args.only, "--rounds", args.rounds, "--out", str(out)]
        places = {"BENCH_WORK": str(work), "BENCH_JARS": str(work / "jars")}
        environment = {**os.environ, **places, "PYSPARK_PYTHON": sys.executable}
        subprocess.run(command, env=environment, check=False, stderr=subprocess.DEVNULL)
        runs.append(json.loads(out.read_text()))
    text = f"# Figures\n\n{machine()}\n\n{ratios(runs)}\n\n{Report(runs, order=ORDER).render()}"
    RESULTS.write_text(re.sub(r"\n{3,}", "\n\n", text))
    print(text)
    return any(run["failures"] for run in runs)


def machine() -> str:
    """The machine and the date."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{datetime.date.today()}, {platform.system()} {platform.machine()}, "
        f"{model[1] if model else 'unknown processor'}, {os.cpu_count()} cores, {memory:.0f} GiB, "
        f"Python {platform.python_version()}. Made by `make bench{_arguments()}`."
    )


def _arguments() -> str:
    """How this program was called: which engines and workloads are left out."""
    return f' ARGS="{shlex.join(sys.argv[1:])}"' if sys.argv[1:] else ""


def ratios(runs: list[dict[str, Any]]) -> str:
    """Ratios to the best peer, by time and by processor time, beside the goals."""
    times, cpu = figures(runs, "s"), figures(runs, "cpu_s")
    lines = ["| | best peer, s | acidsql, s | ratio | ratio of CPU | to reach |", "|---" * 6 + "|"]
    for key, limit in TO_REACH.items():
        peers = [engine for engine in PEERS if (*key, engine) in times]
        if (*key, "acidsql") not in times or not peers:
            continue
        best = min(times[*key, engine] for engine in peers)
        least = min(cpu[*key, engine] for engine in peers)
        ours = times[*key, "acidsql"]
        lines.append(
            f"| {' '.join(key)} | {best:.2f} | {ours:.2f} | {ours / best:.2f} "
            f"| {cpu[*key, 'acidsql'] / least:.2f} | {limit} |"
        )
    return "\n".join(lines)


def figures(runs: list[dict[str, Any]], what: str) -> dict[tuple[str, str, str], float]:
    """Medians by workload, phase and engine."""
    return {
        (phase["workload"], phase["phase"], run["engine"]): median(
            s[what] for s in phase["samples"]
        )
        for run in runs
        for phase in run["phases"]
    }


if __name__ == "__main__":
    sys.exit(main())
