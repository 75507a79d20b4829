"""Runs workloads on one engine in this process, and writes the timings as JSON.

    python run.py --engine delta_dv --scale 0.2 --only W1,W4 --out results/delta_dv.json

Directories: --work (tables and inputs, else $BENCH_WORK), --jars (else $BENCH_JARS). Run it with
the Python whose pyspark fits the engine's jars.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
import traceback
from pathlib import Path

import psutil
from engines import registry
from workloads import DIM, FACT, WORKLOADS, Data, Sizes, checksum_sql, summary


class Meter:
    """Spark jobs, task time and other processes' CPU between start and stop."""

    def __init__(self, spark):
        self.sc = spark.sparkContext._jsc.sc()
        self.process = psutil.Process(spark.sparkContext._gateway.proc.pid)

    def _cpu(self):
        total = psutil.cpu_times()
        busy = total.user + total.nice + total.system + total.irq + total.softirq
        own = 0.0
        for p in [psutil.Process(), self.process, *self.process.children(recursive=True)]:
            times = p.cpu_times()
            own += times.user + times.system
        return busy, own

    def _jobs(self):
        self.sc.listenerBus().waitUntilEmpty()
        return self.sc.dagScheduler().nextJobId()

    def _stages(self, jobs):
        """(tasks, executor seconds) of each stage of the jobs that ran."""
        store = self.sc.statusStore()
        for ids in (store.job(j).stageIds() for j in jobs):
            for k in range(ids.size()):
                stage = store.lastStageAttempt(ids.apply(k))
                if stage.numCompleteTasks():
                    yield stage.numCompleteTasks(), stage.executorRunTime() / 1000

    def start(self):
        self.before, self.cpu, self.t0 = self._jobs(), self._cpu(), time.perf_counter()

    def stop(self):
        seconds = time.perf_counter() - self.t0
        busy, own = (b - a for a, b in zip(self.cpu, self._cpu(), strict=False))
        jobs = range(self.before, self._jobs())
        stages = list(self._stages(jobs))
        return {
            "s": seconds,
            "jobs": len(jobs),
            "stages": len(stages),
            "tasks": sum(n for n, _ in stages),
            "task_s": sum(t for _, t in stages),
            "cpu_s": own,
            "other_cpu_s": max(0.0, busy - own),
        }


class Bench:
    """Times the steps of the workloads and keeps the records."""

    def __init__(self, engine, repeat=None, quiet=False):
        self.engine, self.spark = engine, engine.spark
        self.repeat, self.quiet = repeat, quiet
        self.meter = Meter(self.spark)
        self.phases, self.checks, self.sizes, self.failures = {}, [], [], []

    def reps(self, default):
        return self.repeat or default

    def _record(self, workload, phase, sample):
        self.phases.setdefault((workload, phase), []).append(sample)
        if not self.quiet:
            print(
                f"  {workload} {phase:24} {sample['s']:8.2f} s  jobs {sample['jobs']:3} "
                f"tasks {sample['tasks']:4} task {sample['task_s']:6.1f} s "
                f"written {sample.get('written', 0) / 1e6:8.1f} MB "
                f"(other cpu {sample['other_cpu_s']:.1f} s)",
                flush=True,
            )

    def time(self, workload, phase, action, needs=None, changed=0):
        """Times one statement and the bytes it adds below the tables' directories."""
        if needs and needs not in self.engine.can:
            return
        before = self._files()
        self.meter.start()
        action()
        sample = self.meter.stop()
        after = self._files()
        sample["written"] = sum(
            size for path, (size, mtime) in after.items() if before.get(path) != (size, mtime)
        )
        sample["files"] = sum(path not in before for path in after)
        sample["changed"] = changed
        self._record(workload, phase, sample)

    def _files(self):
        return {**self.engine.files(DIM), **self.engine.files(FACT)}

    def load(self, table, view, workload=None):
        self.engine.create(table)
        if workload:
            self.time(workload, "load", lambda: self.engine.load(table, view))
        else:
            self.engine.load(table, view)

    def query(self, workload, phase, table, sql):
        text = sql.format(t=self.engine.table(table.name))
        for _ in range(self.reps(3)):
            self.meter.start()
            self.engine.sql(text).collect()
            self._record(workload, phase, self.meter.stop())

    def check(self, workload, table):
        row = self.engine.sql(checksum_sql(table, self.engine.table(table.name))).first()
        self.checks.append({"workload": workload, "table": table.name, **row.asDict()})

    def size(self, workload, when, table):
        self.sizes.append(
            {
                "workload": workload,
                "when": when,
                "disk": sum(s for s, _ in self.engine.files(table).values()),
                "live": self.engine.live_bytes(table),
            }
        )

    def results(self):
        phases = [
            {"workload": w, "phase": p, **summary([s["s"] for s in samples]), "samples": samples}
            for (w, p), samples in self.phases.items()
        ]
        return {
            "phases": phases,
            "checks": self.checks,
            "sizes": self.sizes,
            "failures": self.failures,
        }


def run_one(bench, data, name):
    try:
        WORKLOADS[name](bench, data)
    except Exception as error:
        text = str(error).split("\n")[0][:500]
        print(f"  {name} FAILED: {text}", file=sys.stderr, flush=True)
        traceback.print_exc(limit=-3)
        bench.failures.append({"workload": name, "error": text})


def main():
    engines = registry()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", required=True, choices=sorted(engines))
    parser.add_argument("--scale", type=float, default=1.0, help="1 is 5M dim and 10M fact rows")
    parser.add_argument("--only", default=",".join(WORKLOADS), help="workloads, comma-separated")
    parser.add_argument("--reps", type=int, help="repetitions instead of each phase's own")
    parser.add_argument(
        "--rounds",
        type=int,
        default=1,
        help="times that each workload runs at full size; of several, the first is not counted",
    )
    parser.add_argument(
        "--cold",
        action="store_true",
        help="one round at full size and none before it: each phase's first sample is of a fresh JVM",
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=os.environ.get("BENCH_WORK"))
    parser.add_argument("--jars", type=Path, default=os.environ.get("BENCH_JARS"))
    args = parser.parse_args()
    if unknown := set(args.only.split(",")) - WORKLOADS.keys():
        parser.error(f"no workload {', '.join(sorted(unknown))} (W6 is the end of W5)")
    if not args.work or not args.jars:
        parser.error("--work and --jars (or $BENCH_WORK and $BENCH_JARS) are needed")

    engine = engines[args.engine](args.work.resolve(), args.jars.resolve())
    shutil.rmtree(engine.work, ignore_errors=True)
    spark = engine.start()
    sizes = Sizes().scaled(args.scale)
    inputs = args.work.resolve() / "inputs"
    data, small = Data(spark, sizes, inputs), Data(spark, sizes.warmup(), inputs)
    bench = Bench(engine, args.reps)
    started = time.time()
    print(f"{engine.name} on Spark {spark.version}, scale {args.scale}", flush=True)
    for name in args.only.split(","):
        warm = Bench(engine, 2, quiet=True)
        rounds = 1 if args.cold else args.rounds
        if not args.cold:
            run_one(warm, small, name)
        for k in range(rounds if not warm.failures else 0):
            run_one(warm if k == 0 and rounds > 1 else bench, data, name)
        bench.failures += warm.failures
        result = {
            "engine": engine.name,
            "spark": spark.version,
            "scale": args.scale,
            "rounds": rounds,
            "cold": args.cold,
            "jars": [Path(j).name for j in engine.jar_files],
            "sizes": sizes.__dict__,
            "started": started,
            "elapsed": time.time() - started,
            **bench.results(),
        }
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(result, indent=1, default=str))
    spark.stop()
    shutil.rmtree(engine.work, ignore_errors=True)
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
