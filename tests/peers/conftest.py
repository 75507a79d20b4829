"""A session of acidsql for all cases of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

# Tables are tiny, and hardly two statements are alike: to compile them takes longer than to run
# them. The oracle has these settings, too.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


@pytest.fixture(scope="module")
def peer(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on a warehouse of its own: each case has a database in it."""
    import acidsql

    warehouse = str(tmp_path_factory.mktemp("peers") / "warehouse")
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    with acidsql.connect(spark, warehouse=warehouse, compactor="off") as session:
        yield session
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)
    spark.catalog.setCurrentDatabase("default")
