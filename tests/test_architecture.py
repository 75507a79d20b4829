"""Tests of the package's structure: layers, homes of libraries, sizes (see ARCHITECTURE.md)."""

from __future__ import annotations

import ast
import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "acidsql"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# From the bottom up. A unit imports from lower rows and from itself, not from others of its row.
ROWS = [
    {"errors", "java"},  # the error tree; a Java that PySpark can run on
    {"arguments"},  # the types of public methods' arguments
    {"settings", "acid"},  # limits; the rules of the format, as pure values
    {"metastore"},  # where tables, transactions and locks are kept
    {"sql", "storage", "txn"},  # the language; directories of ORC; the life of a transaction
    {"plan"},  # the meaning of statements
    {"compaction"},  # background work
    {"statements"},  # runs each statement
    {"streams"},  # sinks of streaming queries: they run statements
    {"opening", "picture", "top"},  # the needs of a new session; health, and what goes on, in words
    # a look at a Hive Metastore; moves; older versions; checks; health; statements from DataFrames
    {"hive_check", "migration", "history", "checks", "health", "dataframes"},
    {"render", "session"},  # rows as text; the public API
    {"completion", "progress"},  # words that may follow; what a statement does now
    {"terminal"},  # results in a terminal
    {"shell"},  # statements typed in a terminal
    {"magic", "cli"},  # notebook and command line
    {"__main__"},  # python -m acidsql
]
# The packages of storage/, from the bottom up; ``words`` are the modules beside the packages.
ROOMS = ["orc", "words", "files", "spark", "writing", "reading", "folding", "checking"]
ROW_OF = {unit: number for number, row in enumerate(ROWS) for unit in row}
# acidsql/__init__.py exports lazily, so importing it imports nothing: every module may do so.
ROW_OF["__init__"] = -1

# Each library is imported in one place only.
HOMES = {
    "sqlglot": {"sql/tokens.py"},
    "sqlalchemy": {"metastore/embedded/"},
    "sqlite3": {"metastore/embedded/"},
    "alembic": {"metastore/embedded/migrations/"},
    "thrift": {"metastore/hive/"},
    "puresasl": set(),  # Thrift imports this library
    "kerberos": {"metastore/hive/security.py"},
    "psycopg": set(),  # SQLAlchemy imports this library and the next one; acidsql does not
    "pymysql": set(),
    "pyarrow.orc": {"storage/reading/orc_reader.py", "storage/orc/writer.py"},
    "pyarrow.parquet": {"storage/files/parquet.py"},
    "pyarrow.fs": {"storage/files/"},
    "pyarrow.dataset": {"storage/orc/batches.py"},
    "pyorc": set(),  # only tests use it
    "IPython": {"magic.py"},
    "click": {"cli.py"},
    "rich": {"terminal.py"},
    "prompt_toolkit": {"shell.py"},
    "pygments": {"shell.py"},
    "jdk": {"java.py"},
    "py4j": {"storage/spark/jvm.py"},
    "pandas": set(),  # PySpark imports it; acidsql does not
    "pyarrow": {"storage/"},
    "numpy": {"storage/"},
    # The runner and the modules that it calls pass DataFrames on; the public API makes and shows
    # them.
    "pyspark": {
        "storage/", "compaction/", "statements/", "streams/",
        "plan/lower.py", "plan/missing_names.py", "plan/names.py", "plan/targets.py",
        "render.py", "session.py", "opening.py", "hive_check.py", "history.py", "checks.py",
        "health.py",
        "dataframes/", "magic.py", "completion.py", "terminal.py", "shell.py",
        "cli.py",
    },
}  # fmt: skip
JVM = {"_jvm", "_jdf", "_jsparkSession", "sparkContext", "_sc"}
JVM_HOMES = (
    "storage/spark/jvm.py",
    "storage/spark/zones.py",
    "storage/spark/jobs.py",
    "storage/spark/streaming.py",
    "storage/spark/temporary.py",
    "storage/spark/store_conf.py",
    "storage/spark/uploads.py",
    "storage/spark/job_progress.py",
    "storage/spark/repeatable.py",
    "storage/spark/clocks.py",
    "storage/spark/views.py",
    "storage/spark/columns/nodes.py",
    "storage/reading/sargs.py",
)

# The modules that may bring rows to the driver, and how many rows at most.
COLLECTS = {
    "storage/spark/jobs.py": "one number: how many tasks run at once",
    "storage/spark/store_conf.py": "the settings of a server of Spark Connect",
    "storage/spark/zones.py": "one name: the time zone of a server of Spark Connect",
    "storage/reading/server.py": "one row: what a worker of a server of Spark Connect sees",
    "storage/writing/job.py": "one record for each file (I7); the buckets of six values",
    "storage/writing/load.py": "one record for each file (I7)",
    "storage/folding/compact.py": "one record for each file (I7)",
    "storage/folding/rebalance.py": "one record for each file (I7), one count",
    "storage/checking/job.py": "a few findings for each damaged file, 200 of a task",
    "storage/spark/literal_rows.py": "up to acidsql.values.max.rows",
    "storage/spark/few_rows.py": "up to acidsql.driver.max.rows, or ten times as many row ids",
    "storage/reading/partition_columns.py": "names of partitions",
    "storage/spark/catalog_names.py": "names of tables",
    "storage/reading/source_partitions.py": "1,000 values of columns that a source must equal",
    "statements/time_travel.py": "one time",
    "statements/statistics.py": "one row of counts",
    "statements/existing_rows.py": "the number of rows that break a constraint, and one of them",
    "statements/partition_specs.py": "the values of PARTITION clauses; names of partitions",
    "storage/reading/reachable.py": "one record for each directory and host",
    "storage/reading/known_partitions.py": "names and values of partitions",
    "statements/auto_cdc.py": "the text of a plan",
    "statements/waiting.py": "one record for each application and pending table",
    "statements/undo.py": "counts of ten versions",
    "statements/skipped_conflicts.py": "one row of counts of keys",
    "statements/cdc_records.py": "counts, of each key if they are few; three keys that are refused",
    "streams/upsert.py": "one key that an upsert refuses",
    "streams/several.py": "names of targets, and a few names of none",
    "streams/bad_records.py": "three counts",
    "streams/commit_points.py": "counts for each target and form of records",
    "render.py": "as many rows as a person asked to see",
    "cli.py": "the findings of a check, at most 1,001; one record for each partition",
    "magic.py": "all rows, if a person asks for them as a pandas DataFrame or an Arrow table",
    "terminal.py": "csv and json, row by row, because a person asked for them",
    "completion.py": "names of databases, tables and columns, and Spark's keywords",
}
COLLECTORS = {
    "collect", "toPandas", "toArrow", "toLocalIterator", "head", "tail", "first", "foreach",
}  # fmt: skip
SQLALCHEMYS_OWN = "metastore/embedded/"  # Result.first() there

# Modules that run in Spark's workers, and modules that those import.
WORKER_MODULES = [
    "acidsql.storage.writing.event_writer",
    "acidsql.storage.writing.delete_writer",
    "acidsql.storage.reading.event_reader",
    "acidsql.storage.files.file_info",
    "acidsql.storage.orc.event_file",
    "acidsql.storage.reading.orc_reader",
    "acidsql.storage.writing.bucketing",
    "acidsql.storage.files.filesystem",
    "acidsql.storage.files.store_options",
    "acidsql.storage.reading.originals",
    "acidsql.storage.orc.row_schema",
    "acidsql.storage.files.listing",
    "acidsql.storage.spark.worker_process",
    "acidsql.storage.folding.fold",
    "acidsql.storage.checking.deletes",
]
DRIVERS_ONLY = [
    "pyspark", "py4j", "pandas", "sqlalchemy", "alembic", "sqlglot", "IPython", "click", "rich",
]  # fmt: skip

LONGEST_FUNCTION = 60


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def unit_of(name: str) -> str:
    """The part of the package to which a file belongs: its directory, or the module itself."""
    return name.split("/")[0].removesuffix(".py")


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> Iterator[str]:
    """All modules that a file imports anywhere; ``from a import b`` counts as a and a.b."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_path(module: str) -> str | None:
    """The file of a module of acidsql; None for a name inside of a module, and for other
    modules."""
    inner = module.removeprefix("acidsql").removeprefix(".").replace(".", "/")
    for name in (f"{inner}.py", f"{inner}/__init__.py".lstrip("/")):
        if module.split(".")[0] == "acidsql" and (PACKAGE / name).is_file():
            return name
    return None


def own_imports(path: Path) -> set[str]:
    """The files of acidsql that a file imports; for ``from package import module`` only the
    module."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {module_path(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = module_path(f"{node.module}.{alias.name}")
                found.add(inner or module_path(node.module))
    return {name for name in found if name}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_go_down(path):
    unit = unit_of(name_of(path))
    assert unit in ROW_OF, f"{unit} has no row: give it one above, and in ARCHITECTURE.md"
    for name in own_imports(path):
        other = unit_of(name)
        if other not in (unit, "__init__"):
            assert ROW_OF[other] < ROW_OF[unit], f"{name_of(path)} imports {name}"


def room_of(name: str) -> int:
    """The level of a module of storage/."""
    inner = name.split("/")[1:]
    return ROOMS.index(inner[0] if len(inner) > 1 else "words")


@pytest.mark.parametrize("path", [p for p in SOURCES if "storage/" in name_of(p)], ids=name_of)
def test_imports_of_storages_rooms_go_down(path):
    name = name_of(path)
    for other in own_imports(path):
        if other.startswith("storage/") and other.count("/") > 1 and name.count("/") > 1:
            is_same = other.split("/")[1] == name.split("/")[1]
            assert is_same or room_of(other) < room_of(name), f"{name} imports {other}"


@pytest.mark.parametrize(
    "path", [p for p in SOURCES if p.name == "__init__.py" and p.parent != PACKAGE], ids=name_of
)
def test_a_package_says_what_it_knows_and_what_to_read_first(path):
    if "migrations" in name_of(path):
        return
    told = ast.get_docstring(tree_of(path)) or ""
    assert "must not" in told and "first" in told, f"{name_of(path)} does not say it"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_library_has_one_home(path):
    name = name_of(path)
    for module, (library, homes) in itertools.product(imports(path), HOMES.items()):
        if module == library or module.startswith(f"{library}."):
            at_home = any(name == h or (h.endswith("/") and name.startswith(h)) for h in homes)
            assert at_home, f"{name} imports {module}"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_py4j_is_imported_where_it_is_called(path):
    """PySpark's client of Spark Connect comes without it."""
    own = [node for node in tree_of(path).body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not any("py4j" in ast.unparse(node) for node in own)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_the_jvm_has_one_home(path):
    if name_of(path) in JVM_HOMES:
        return
    for node in ast.walk(tree_of(path)):
        found = None
        if isinstance(node, ast.Attribute):
            found = node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = node.value  # getattr(spark, "_jvm")
        assert found not in JVM, f"{name_of(path)}:{node.lineno} touches {found}"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_i7_rows_stay_away_from_the_driver(path):
    name = name_of(path)
    if name in COLLECTS or name.startswith(SQLALCHEMYS_OWN):
        return
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in COLLECTORS, f"{name}:{node.lineno} calls {node.func.attr}"


def test_the_places_that_collect_are_real():
    assert [name for name in COLLECTS if not (PACKAGE / name).is_file()] == []


def test_there_is_no_import_cycle():
    graph = {name_of(path): own_imports(path) - {"__init__.py"} for path in SOURCES}
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " → ".join([*above[above.index(name) :], name])
        if name not in done:
            for other in sorted(graph[name] - {name}):
                visit(other, (*above, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_workers_need_only_pyarrow():
    """In an interpreter in which all other modules are blocked, and looked for by name."""
    program = f"""
import importlib, importlib.abc, sys

class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {DRIVERS_ONLY!r}:
            raise ImportError(f"{{name}} in a worker")

sys.meta_path.insert(0, Block())
for name in {WORKER_MODULES!r}:
    importlib.import_module(name)
ours = sorted(name for name in sys.modules if name.split(".")[0] == "acidsql")
wrong = [n for n in ours if n.split(".")[1:2] not in ([], ["acid"], ["errors"], ["storage"])]
assert not wrong, wrong
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr


def test_java_needs_only_the_standard_library():
    """``make install`` runs it before any other package is certain to be installed."""
    known = {*sys.stdlib_module_names, "__future__"}
    assert {module.split(".")[0] for module in imports(PACKAGE / "java.py")} <= known


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_functions_are_short(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{name_of(path)}: {node.name} has {length} lines"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_module_says_what_it_is(path):
    assert ast.get_docstring(tree_of(path)), f"{name_of(path)} has no docstring"


def test_an_init_is_a_docstring_and_exports():
    for path in SOURCES:
        if path.name == "__init__.py" and path.parent != PACKAGE:
            wrong = [
                type(node).__name__
                for node in tree_of(path).body
                if not isinstance(node, ast.Expr | ast.ImportFrom | ast.Assign)
            ]
            assert not wrong, f"{name_of(path)}: {wrong}"


def test_the_top_level_is_tidy():
    """The files that a newcomer sees in the repository, and none that a tool has left there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    top = {name.split("/")[0] for name in listed.stdout.split("\0") if name}
    assert top <= {
        "pyproject.toml", "acidsql", "pyspark_acidsql", "grammar", "tests", "examples",
        "benchmarks", "Makefile", "README.md", "docs", "mkdocs.yml", "ARCHITECTURE.md",
        "CHANGELOG.md", "LICENSE", ".gitignore", ".ci",
    }  # fmt: skip
