"""Spark's own examples run while acidsql extends their session.

PySpark ships its doctests with the modules. Each module runs in a Python of its own, because the
examples need a session with Hive's names and their own tables.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import doctest, importlib, os, sys, warnings
warnings.simplefilter("ignore")
module = importlib.import_module(sys.argv[1])
directory = sys.argv[2]
os.chdir(directory)
from pyspark.sql import Row, SparkSession
import acidsql
spark = (
    SparkSession.builder.master("local[2]").appName("doctests")
    .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.warehouse.dir", directory + "/spark").getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL

class Runner(doctest.DocTestRunner):
    def report_failure(self, out, test, example, got):
        failed.add(test.name)
    def report_unexpected_exception(self, out, test, example, exc_info):
        failed.add(test.name)

names = {"spark": spark, "sc": spark.sparkContext, "SparkSession": SparkSession, "Row": Row}
tests = doctest.DocTestFinder().find(module, globs={**vars(module), **names})
# PySpark itself runs this one over Connect only.
tests = [test for test in tests if test.examples and "registerProgressHandler" not in test.name]
failed = set()
with acidsql.connect(spark, warehouse=directory + "/acid", compactor="off", extend=True):
    for test in tests:
        Runner(optionflags=flags, verbose=False).run(test, out=lambda text: None)
print("RESULT", len(tests), sorted(failed), sep="|")
spark.stop()
"""


@pytest.mark.classic
@pytest.mark.slow
@pytest.mark.parametrize("module", ["readwriter", "catalog", "session", "streaming.readwriter"])
def test_the_examples_of_a_module_pass(module, java_home, tmp_path):
    outcome = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), f"pyspark.sql.{module}", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    results = [line for line in outcome.stdout.splitlines() if line.startswith("RESULT")]
    assert results, outcome.stderr[-2000:]
    _, number, failed = results[0].split("|")
    assert int(number) > 0
    assert failed == "[]", results[0]
