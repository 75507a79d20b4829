"""Tests of the package's structure: layers, homes of libraries, sizes (see ARCHITECTURE.md)."""

from __future__ import annotations

import ast
import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "acidsql"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# The rooms of the house, from the bottom up. A module imports from its own room and from lower
# rows, not from other rooms of its row. A directory that has no row belongs to the one around it.
ROWS = [
    # the error tree; a Java for PySpark; what a statement costs; names for misspelt ones
    {"errors", "java", "costs", "suggestions"},
    {"arguments"},  # the types of public methods' arguments
    {"settings", "acid/values"},  # limits; types and what is known of values
    {"acid"},  # the rules of the format, as pure values
    {"metastore"},  # the interface to tables, transactions and locks, and its rules
    {"metastore/hive/wire", "metastore/embedded/database"},  # Thrift's calls; the database
    {"metastore/hive/locking", "metastore/embedded/records"},
    {"metastore/hive/catalog", "metastore/embedded"},  # a Hive Metastore's tables; our own store
    {"metastore/hive"},  # a Hive Metastore's transactions
    {"txn", "storage/orc/encoding", "sql/text"},  # the life of a transaction; bytes; tokens
    {"storage/orc", "sql/queries"},  # files of events; the tables of a query
    {"storage", "storage/files/options"},  # the words of storage's rooms; object stores' settings
    {"storage/files", "sql/parsed"},  # file systems; statements as values
    {"storage/spark/session", "storage/tables"},  # the JVM and its jobs; listings and footers
    {"storage/spark", "sql/grammar"},  # rows and columns of Spark's; readers of statements
    {"storage/writing/buckets", "sql/commands"},  # hashes; the other readers
    {"storage/writing", "sql"},  # rows → files → directories; the parser and the binder
    {"storage/reading/pruning"},  # which files hold rows of interest
    {"storage/reading/events"},  # events, read without Spark's ORC reader
    {"storage/reading"},  # snapshots → live rows
    {"storage/folding"},  # many files → few
    {"storage/checking", "streams/source"},  # damaged files; a table as a stream's source
    {"plan/values"},  # which value may go into which column
    {"plan/standins"},  # what a name in a query means
    {"plan/rows"},  # INSERT, UPDATE and DELETE as queries of events
    {"plan/merging", "plan/analysis"},  # MERGE; Spark's analysis
    {"plan"},  # the rewrite of each statement; locks
    {"plan/cdc", "compaction"},  # AUTO CDC as queries; background work
    {"statements/context", "statements/directories"},  # what statements share; where tables lie
    {"statements/queries"},  # SELECT and its kin
    {"statements/ddl", "statements/maintenance"},  # the catalog; the state of tables
    {"statements/dml", "statements/show"},  # changes of rows; SHOW and DESCRIBE
    {"statements/cdc"},  # AUTO CDC, step by step
    {"statements"},  # runs each statement
    {"streams/envelopes"},  # change records of other tools
    {"streams"},  # sinks of streaming queries: they run statements
    {"api"},  # the public API
    {"terminal", "dbt_adapter"},  # where a person types; where dbt's models run
    {"__main__"},  # python -m acidsql
]
# No module of one imports a module of another, whatever their rows.
STRANGERS = ["sql", "storage", "txn"]
ROW_OF = {room: number for number, row in enumerate(ROWS) for room in row}
# acidsql/__init__.py exports lazily, so importing it imports nothing: every module may do so.
ROW_OF["__init__"] = -1

MOST_MODULES = 15

# Each library is imported in one place only.
HOMES = {
    "sqlglot": {"sql/text/tokens.py"},
    "sqlalchemy": {"metastore/embedded/"},
    "sqlite3": {"metastore/embedded/"},
    "alembic": {"metastore/embedded/database/migrations/"},
    "thrift": {"metastore/hive/"},
    "puresasl": set(),  # Thrift imports this library
    "kerberos": {"metastore/hive/wire/security.py"},
    "psycopg": set(),  # SQLAlchemy imports this library and the next one; acidsql does not
    "pymysql": set(),
    "pyarrow.orc": {"storage/reading/events/orc_reader.py", "storage/orc/writer.py"},
    "pyarrow.parquet": {"storage/tables/parquet.py"},
    "pyarrow.fs": {"storage/files/"},
    "hdfs_native": {"storage/files/hdfs.py"},
    "pyarrow.dataset": {"storage/orc/batches.py"},
    "pyorc": set(),  # only tests use it
    "IPython": {"terminal/magic.py"},
    "click": {"terminal/cli.py"},
    "rich": {"terminal/terminal.py"},
    "prompt_toolkit": {"terminal/shell.py"},
    "pygments": {"terminal/shell.py"},
    "jdk": {"java.py"},
    "py4j": {"storage/spark/session/jvm.py"},
    "dbt": {"dbt_adapter/"},
    "pandas": set(),  # PySpark imports it; acidsql does not
    "pyarrow": {"storage/"},
    "numpy": {"storage/"},
    # The runner and the modules that it calls pass DataFrames on; the public API makes and shows
    # them.
    "pyspark": {
        "storage/", "compaction/", "statements/", "streams/", "api/", "terminal/", "dbt_adapter/",
        "plan/analysis/", "plan/standins/names.py", "plan/rows/targets.py",
    },
}  # fmt: skip
JVM = {"_jvm", "_jdf", "_jsparkSession", "sparkContext", "_sc"}
JVM_HOMES = (
    "storage/spark/session/jvm.py",
    "storage/spark/session/zones.py",
    "storage/spark/session/jobs.py",
    "storage/spark/session/streaming.py",
    "storage/spark/session/temporary.py",
    "storage/spark/session/store_conf.py",
    "storage/spark/session/uploads.py",
    "storage/spark/session/job_progress.py",
    "storage/spark/session/quiet.py",
    "storage/spark/session/data_source.py",
    "storage/spark/repeatable.py",
    "storage/spark/clocks.py",
    "storage/spark/views.py",
    "storage/spark/columns/nodes.py",
    "storage/reading/pruning/sargs.py",
)

# The modules that may bring rows to the driver, and how many rows at most.
COLLECTS = {
    "storage/spark/session/jobs.py": "one number: how many tasks run at once",
    "storage/spark/session/store_conf.py": "the settings of a server of Spark Connect",
    "storage/spark/session/zones.py": "one name: the time zone of a server of Spark Connect",
    "storage/reading/server.py": "one row: what a worker of a server of Spark Connect sees",
    "storage/writing/job.py": "one record for each file (I7); the buckets of six values",
    "storage/writing/load.py": "one record for each file (I7)",
    "storage/folding/compact.py": "one record for each file (I7)",
    "storage/folding/rebalance.py": "one record for each file (I7), one count",
    "storage/checking/job.py": "a few findings for each damaged file, 200 of a task",
    "storage/spark/literal_rows.py": "up to acidsql.values.max.rows",
    "storage/spark/few_rows.py": "up to acidsql.driver.max.rows, or ten times as many row ids",
    "storage/reading/pruning/partition_columns.py": "names of partitions",
    "storage/spark/catalog_names.py": "names of databases and tables",
    "storage/reading/pruning/source_partitions.py": "1,000 values that a source must equal",
    "statements/context/time_travel.py": "one time",
    "statements/maintenance/statistics.py": "one row of counts",
    "statements/ddl/existing_rows.py": "the number of rows that break a constraint, and one",
    "statements/context/partition_specs.py": "the values of PARTITION clauses; names of partitions",
    "storage/reading/pruning/reachable.py": "one record for each directory and host",
    "storage/reading/pruning/known_partitions.py": "names and values of partitions",
    "statements/cdc/auto_cdc.py": "the text of a plan",
    "statements/context/result.py": "the text of EXPLAIN and the like, if a person sees it",
    "statements/dml/repeated_matches.py": "three rows that a MERGE has matched twice",
    "statements/show/waiting.py": "one record for each application and pending table",
    "statements/queries/undo.py": "counts of ten versions",
    "statements/queries/skipped_conflicts.py": "one row of counts of keys",
    "statements/cdc/records.py": "counts, of each key if they are few; three keys that are refused",
    "api/extension/extension.py": "what spark.catalog lists: databases, partitions, properties",
    "streams/upsert.py": "one key that an upsert refuses",
    "streams/several.py": "names of targets, and a few names of none",
    "streams/bad_records.py": "three counts",
    "streams/commit_points.py": "counts for each target and form of records",
    "terminal/render.py": "as many rows as a person asked to see",
    "terminal/cli.py": "the findings of a check, at most 1,001; one record for each partition",
    "terminal/magic.py": "all rows, if a person asks for a pandas DataFrame or an Arrow table",
    "dbt_adapter/dbt/adapters/acidsql/session.py": "the rows that a macro of dbt's asks for",
    "terminal/terminal.py": "csv and json, row by row, because a person asked for them",
}
COLLECTORS = {
    "collect", "toPandas", "toArrow", "toLocalIterator", "head", "tail", "first", "foreach",
}  # fmt: skip
SQLALCHEMYS_OWN = "metastore/embedded/"  # Result.first() there

# Modules that run in Spark's workers, and modules that those import.
WORKER_MODULES = [
    "acidsql.storage.writing.event_writer",
    "acidsql.storage.writing.delete_writer",
    "acidsql.storage.reading.events.event_reader",
    "acidsql.storage.tables.file_info",
    "acidsql.storage.orc.event_file",
    "acidsql.storage.reading.events.orc_reader",
    "acidsql.storage.writing.buckets.bucketing",
    "acidsql.storage.files.filesystem",
    "acidsql.storage.files.options.store_options",
    "acidsql.storage.reading.events.originals",
    "acidsql.storage.orc.row_schema",
    "acidsql.storage.tables.listing",
    "acidsql.storage.spark.session.worker_process",
    "acidsql.storage.folding.fold",
    "acidsql.storage.checking.deletes",
]
DRIVERS_ONLY = [
    "pyspark", "py4j", "pandas", "sqlalchemy", "alembic", "sqlglot", "IPython", "click", "rich",
]  # fmt: skip

LONGEST_FUNCTION = 60

# Names that say nothing about the thing that is named: a reader who sees the name alone cannot say
# what it is.
EMPTY_NAMES = {
    "one", "ones", "found", "said", "told", "kept", "known", "asked", "seen", "meant", "wanted",
    "other", "others", "some", "given", "gone", "left", "again", "way", "whole", "it", "its",
    "what", "who", "which", "mine", "theirs", "both", "each", "all_of", "of_all", "of_it",
    "such", "thing", "things", "had", "has_been", "made", "taken", "read_it", "done", "past",
    "beside", "behind", "its_own", "these", "those", "here", "there",
}  # fmt: skip
MOST_EMPTY_NAMES = 0.003


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(name: str) -> str:
    """The room to which a file belongs: its directory, or the nearest above that has a row; of the
    modules in front, the module itself."""
    room = name.rpartition("/")[0] or name.removesuffix(".py")
    while room not in ROW_OF and "/" in room:
        room = room.rpartition("/")[0]
    return room


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


@cache
def imports(path: Path) -> list[str]:
    """All modules that a file imports anywhere; ``from a import b`` counts as a and a.b."""
    names: list[str] = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module is not None
            names.append(node.module)
            names += (f"{node.module}.{alias.name}" for alias in node.names)
    return names


@cache
def module_path(module: str) -> str | None:
    """The file of a module of acidsql; None for a name inside of a module, and for other
    modules."""
    inner = module.removeprefix("acidsql").removeprefix(".").replace(".", "/")
    for name in (f"{inner}.py", f"{inner}/__init__.py".lstrip("/")):
        if module.split(".")[0] == "acidsql" and (PACKAGE / name).is_file():
            return name
    return None


@cache
def own_imports(path: Path) -> set[str]:
    """The files of acidsql that a file imports; for ``from package import module`` only the
    module."""
    files = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            files |= {module_path(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = module_path(f"{node.module}.{alias.name}")
                files.add(inner or module_path(node.module))
    return {name for name in files if name}


def own_arrows() -> Iterator[tuple[str, str]]:
    """Each file with each file of acidsql that it imports."""
    for path in SOURCES:
        for imported in sorted(own_imports(path)):
            yield name_of(path), imported


def test_each_room_has_a_row():
    rooms = {room_of(name_of(path)) for path in SOURCES}
    assert rooms - ROW_OF.keys() == set(), "give it a row above, and in ARCHITECTURE.md"
    assert ROW_OF.keys() - rooms == set()


def test_imports_go_down():
    """``acidsql/__init__.py`` shows type checkers what it exports; these imports never run
    (tests/test_public_api.py)."""
    wrong = [
        f"{name} imports {imported}"
        for name, imported in own_arrows()
        if name != "__init__.py"
        for room, other in [(room_of(name), room_of(imported))]
        if other not in (room, "__init__") and ROW_OF[other] >= ROW_OF[room]
    ]
    assert wrong == []


def test_strangers_stay_strangers():
    wrong = [
        f"{name} imports {imported}"
        for name, imported in own_arrows()
        for package, other in [(name.split("/")[0], imported.split("/")[0])]
        if package != other and package in STRANGERS and other in STRANGERS
    ]
    assert wrong == []


def test_no_folder_has_too_many_modules_beside_each_other():
    counts = Counter(
        name.rpartition("/")[0]
        for name in map(name_of, SOURCES)
        if "/" in name and not name.endswith("__init__.py")
    )
    assert {folder: number for folder, number in counts.items() if number > MOST_MODULES} == {}


def test_a_package_says_what_it_knows_and_what_to_read_first():
    wrong = []
    for path in SOURCES:
        if path.name == "__init__.py" and path.parent != PACKAGE and "migrations" not in path.parts:
            docstring = ast.get_docstring(tree_of(path)) or ""
            if "must not" not in docstring or "first" not in docstring:
                wrong.append(name_of(path))
    assert wrong == []


def is_at(home: str, name: str) -> bool:
    """Whether a file is this file, or in this folder."""
    return name.startswith(home) if home.endswith("/") else name == home


def test_a_library_has_one_home():
    wrong = [
        f"{name} imports {module}"
        for path in SOURCES
        for name in [name_of(path)]
        for module, (library, homes) in itertools.product(imports(path), HOMES.items())
        if (module == library or module.startswith(f"{library}."))
        and not any(
            name == home or (home.endswith("/") and name.startswith(home)) for home in homes
        )
    ]
    assert wrong == []


def test_py4j_is_imported_where_it_is_called():
    """PySpark's client of Spark Connect comes without it."""
    wrong = [
        name_of(path)
        for path in SOURCES
        for node in tree_of(path).body
        if isinstance(node, ast.Import | ast.ImportFrom) and "py4j" in ast.unparse(node)
    ]
    assert wrong == []


def test_the_jvm_has_one_home():
    wrong = []
    for path in SOURCES:
        if name_of(path) in JVM_HOMES:
            continue
        for node in nodes_of(path):
            name = None
            if isinstance(node, ast.Attribute):
                name = node.attr
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                name = node.value  # getattr(spark, "_jvm")
            if name in JVM:
                wrong.append(f"{name_of(path)}:{node.lineno} touches {name}")
    assert wrong == []


def test_i7_rows_stay_away_from_the_driver():
    wrong = [
        f"{name}:{node.lineno} calls {node.func.attr}"
        for path in SOURCES
        for name in [name_of(path)]
        if name not in COLLECTS and not name.startswith(SQLALCHEMYS_OWN)
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in COLLECTORS
    ]
    assert wrong == []


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
rooms = ([], ["acid"], ["costs"], ["errors"], ["storage"])
wrong = [n for n in ours if n.split(".")[1:2] not in rooms]
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


def test_functions_are_short():
    """Nine of ten have at most 30 lines."""
    lengths = {
        f"{name_of(path)}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in SOURCES
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    too_long = {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION}
    assert too_long == {}
    assert sorted(lengths.values())[len(lengths) * 9 // 10] <= 30


def test_a_module_says_what_it_is():
    assert [name_of(path) for path in SOURCES if not ast.get_docstring(tree_of(path))] == []


def test_names_say_the_thing():
    """A name that fits everything tells a reader nothing. Other projects have 0.2 % of these."""
    names = [name.strip("_").lower() for path in SOURCES for name in names_of(path)]
    empty = Counter(name for name in names if name in EMPTY_NAMES)
    assert empty.total() <= MOST_EMPTY_NAMES * len(names), empty.most_common(20)


def names_of(path: Path) -> Iterator[str]:
    """All names that a file binds or reads."""
    for node in nodes_of(path):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


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
