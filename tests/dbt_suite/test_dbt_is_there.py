"""Says by name that dbt's suite does not run, where dbt is not installed."""

import pytest


def test_dbts_suite_runs_here():
    pytest.importorskip(
        "dbt.tests", reason="dbt is not installed: make test-dbt runs its suite in .venv-dbt"
    )
