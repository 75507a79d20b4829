"""Fixtures of dbt's own conformance suite for adapters (``make test-dbt``).

Each test class of the suite makes a dbt project with a schema of its own, and runs dbt in this
process. All share one Spark and one warehouse.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent))  # this conftest is the first one: make test-dbt

os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
# The adapter alone makes a package dbt, too.
HAS_DBT = find_spec("dbt") is not None and find_spec("dbt.tests") is not None
if not HAS_DBT:
    # The tests of the day run without dbt, whose suite has its own virtual environment.
    collect_ignore_glob = ["suite/*"]


_EMPTY_SEEDS = "dbt-core 1.11 has no --empty for seeds"
_LOWER_CASE = "acidsql keeps names of columns in lower case, so no two differ in case alone"
_VOID = "acidsql refuses a column that is nothing but NULL, and asks for a CAST"
# Tests of the suite that cannot hold here, each with the reason. What is not here must pass.
SKIPPED = {
    "TestEmptySeedFlag::test_seed_empty_creates_table_with_zero_rows": _EMPTY_SEEDS,
    "TestEmptySeedFlag::test_seed_empty_preserves_column_types": _EMPTY_SEEDS,
    "TestEmptySeedFlag::test_build_empty_with_seed": _EMPTY_SEEDS,
    "TestSimpleSeedWithBOM::test_simple_seed": "dbt-tests-adapter lacks its file seed_bom.csv",
    "TestSeedWithWrongDelimiter::test_seed_with_wrong_delimiter": (
        "a column's name may have any characters, so such a file is a seed of one column"
    ),
    "TestGetIntervalsBetween::test_build_assert_equal": "writes days as 09/01/2023",
    "TestMixedNullCompare::test_build_assert_equal": _VOID,
    "TestNullCompare::test_build_assert_equal": _VOID,
    "TestEphemeralMulti::test_ephemeral_multi": "compares the text that dbt makes for PostgreSQL",
    "TestEmptyModelsArentRun::test_dbt_doesnt_run_empty_models": "asks an information_schema",
    "TestSimpleCopy::test_simple_copy_with_materialized_views": "acidsql has no materialized views",
    "TestPersistDocsQuotedDescriptionNotAppliedOnMismatch::"
    "test_quoted_description_not_applied_on_case_mismatch": _LOWER_CASE,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that cannot hold, by name."""
    for item in items:
        if reason := SKIPPED.get(item.nodeid.partition("::")[2]):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def spell_as_spark() -> Iterator[None]:
    """Let the sessions run the suite's own SQL in Spark's spelling."""
    if not HAS_DBT:
        yield
        return
    from dbt.adapters.acidsql.session import SessionHandle
    from sparks_spelling import as_spark_spells

    execute = SessionHandle.execute
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            SessionHandle,
            "execute",
            lambda handle, sql, bindings=None: execute(handle, as_spark_spells(sql), bindings),
        )
        yield


@pytest.fixture(scope="class")
def profile_user() -> None:
    """The owner of tables in the suite's catalogs: acidsql has none."""


@pytest.fixture(scope="session")
def dbt_profile_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """The target of the profile that the projects use. Spark runs in this process already, and is
    small: connections open sessions of it. With ``ACIDSQL_CONNECT=1`` it is a server of Spark
    Connect."""
    from connect_server import ConnectServer
    from small_spark import small_spark

    from acidsql.java import use_java

    use_java()
    warehouse = tmp_path_factory.mktemp("warehouse")
    target = {"type": "acidsql", "threads": 2, "warehouse": str(warehouse), "compactor": "off"}
    if not os.environ.get("ACIDSQL_CONNECT"):
        small_spark(warehouse / "sparks", threads=2, memory="1500m")
        yield {**target, "method": "session"}
        return
    server = ConnectServer(tmp_path_factory.mktemp("server"))
    yield {**target, "method": "connect", "host": server.url}
    server.close()
