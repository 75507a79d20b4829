"""The registration of the format ``acidsql``, where Spark differs from what is known of it."""

from __future__ import annotations

import pytest

from acidsql.storage.spark.session.data_source import register_data_source

WAREHOUSE = {"warehouse": "/warehouse"}


class Registry:
    """Notes the data sources that are registered by Spark's own method."""

    def __init__(self, error=None):
        self.sources, self.error = [], error

    def register(self, source):
        if self.error is not None:
            raise self.error
        self.sources.append(source.name())


class SparkSession:
    """A session whose parts inside are missing; ``failing``: what one of them raises."""

    _sc = object()

    def __init__(self, failing, registry):
        self._failing, self.dataSource = failing, registry

    @property
    def _jsparkSession(self):  # noqa: N802 - PySpark's name
        raise self._failing


@pytest.mark.parametrize("failing", [AttributeError("none"), TypeError("JavaPackage")])
def test_sparks_own_method_registers_where_its_inside_is_another(failing):
    registry = Registry()
    spark = SparkSession(failing, registry)
    register_data_source(spark, WAREHOUSE)
    register_data_source(spark, WAREHOUSE)
    assert registry.sources == ["acidsql"]
    register_data_source(spark, {"warehouse": "/other"})  # the newest session's
    assert registry.sources == ["acidsql", "acidsql"]


def test_a_spark_that_takes_no_source_is_no_error_and_is_asked_again():
    registry = Registry(RuntimeError("no Python"))
    spark = SparkSession(AttributeError("none"), registry)
    register_data_source(spark, WAREHOUSE)
    registry.error = None
    register_data_source(spark, WAREHOUSE)
    assert registry.sources == ["acidsql"]
