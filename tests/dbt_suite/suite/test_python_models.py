"""Python models, which run in dbt's own process."""

from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests as TestPythonEmpty,
)
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonIncrementalTests as TestPythonIncremental,
)
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonMetaGetTests as TestPythonMetaGet,
)
from dbt.tests.adapter.python_model.test_python_model import BasePythonModelTests as TestPythonModel
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonSampleTests as TestPythonSample,
)
from dbt.tests.adapter.python_model.test_spark import BasePySparkTests
from dbt.tests.util import run_dbt


class TestPySpark(BasePySparkTests):
    def test_different_dataframes(self, project):
        """As in dbt-spark, without Koalas, which has become pandas on Spark."""
        results = run_dbt(["run", "--exclude", "koalas_df"])
        assert len(results) == 3
