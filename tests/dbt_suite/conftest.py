"""Fixtures of dbt's own conformance suite for adapters (``make test-dbt``).

Each test class of the suite makes a dbt project with a schema of its own, and runs dbt in this
process. All share one Spark and one warehouse.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent))  # this conftest is the first one: make test-dbt

os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
HAS_DBT = find_spec("dbt") is not None and find_spec("dbt.tests") is not None
if not HAS_DBT:
    # The tests of the day run without dbt, whose suite has its own virtual environment.
    collect_ignore_glob = ["suite/*"]


@pytest.fixture(scope="session")
def dbt_profile_target(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The target of the profile that the projects use. Spark runs in this process already, and is
    small: connections open sessions of it."""
    from small_spark import small_spark

    from acidsql.java import use_java

    use_java()
    warehouse = tmp_path_factory.mktemp("warehouse")
    small_spark(warehouse / "sparks", threads=2, memory="1500m")
    return {
        "type": "acidsql",
        "method": "session",
        "threads": 2,
        "warehouse": str(warehouse),
        "compactor": "off",
    }
