"""Files of other writers with days that Spark's ORC reader shows as other days."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from foreign_orc import as_another_writers
from kit import rows
from over_hive import needs

import acidsql
from acidsql.acid.layout import delta_name
from acidsql.errors import AcidSqlError

INSERT_ONLY = "TBLPROPERTIES ('transactional_properties' = 'insert_only')"
LOST, KEPT = "1582-10-10", "1582-10-04"
_DAYS = {"0001-01-01": -719_162, KEPT: -141_438, LOST: -141_432, "1970-01-01": 0}


def put(path: Path, *days: str) -> Path:
    """Write a plain file as another writer does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = pa.array(range(len(days)), pa.int32())
    dates = pa.array([_DAYS[day] for day in days], pa.date32())
    orc.write_table(pa.table({"id": ids, "d": dates}), path)
    as_another_writers(path)
    return path


def shown(acid):
    return [day for (day,) in rows(acid, "SELECT string(d) FROM t")]


@pytest.fixture
def adopted(acid, tmp_path):
    """A table made of another writer's file, with a day that acidsql does not write."""
    put(tmp_path / "x" / "000000_0", "1970-01-01", LOST)
    acid.sql(f"CREATE TABLE t (id INT, d DATE) LOCATION '{tmp_path}/x'")
    return acid


@needs("can_work")
@pytest.mark.parametrize(
    "work",
    [
        "major' AND WAIT",
        pytest.param("rebalance' CLUSTERED INTO 2 BUCKETS AND WAIT", marks=needs("can_rebalance")),
    ],
)
def test_a_compaction_that_would_change_a_day_is_refused_by_name(adopted, work):
    with pytest.raises(AcidSqlError, match="Column 'd' has a day") as caught:
        adopted.sql(f"ALTER TABLE t COMPACT '{work}")
    assert LOST[:4] in str(caught.value)
    assert shown(adopted) == [LOST, "1970-01-01"]


def test_an_update_that_would_change_a_day_is_refused_and_others_are_not(adopted):
    with pytest.raises(AcidSqlError, match="Column 'd' has a day"):
        adopted.sql("UPDATE t SET id = 7 WHERE id = 1")
    adopted.sql("UPDATE t SET id = 7 WHERE id = 0")
    assert rows(adopted, "SELECT id, string(d) FROM t") == [(1, LOST), (7, "1970-01-01")]


@pytest.mark.parametrize("columns", ["id INT, d DATE", "id INT NOT NULL, d DATE"])
@pytest.mark.parametrize("properties", ["", INSERT_ONLY])
def test_a_loaded_day_is_shown_as_it_is_or_refused(acid, tmp_path, columns, properties):
    acid.sql(f"CREATE TABLE t ({columns}) {properties}")
    put(tmp_path / "in" / "0.orc", "0001-01-01", LOST)
    try:
        acid.sql(f"LOAD DATA INPATH '{tmp_path}/in' INTO TABLE t")
    except AcidSqlError as error:
        assert "Column 'd' has a day" in str(error) and (tmp_path / "in" / "0.orc").exists()
        assert shown(acid) == []
    else:
        assert shown(acid) == ["0001-01-01", LOST]
    put(tmp_path / "in" / "0.orc", "0001-01-01", KEPT, "1970-01-01")
    acid.sql(f"LOAD DATA INPATH '{tmp_path}/in' OVERWRITE INTO TABLE t")
    assert shown(acid) == ["0001-01-01", KEPT, "1970-01-01"]


def test_a_directory_of_an_insert_only_table_of_others_is_read_right(spark, tmp_path):
    put(tmp_path / delta_name(1, 0) / "000000_0", "1970-01-01", LOST)
    found = acidsql.read(spark, str(tmp_path), insert_only=True).selectExpr("id", "string(d)")
    assert sorted(map(tuple, found.collect())) == [(0, "1970-01-01"), (1, LOST)]


def test_an_insert_only_table_over_such_a_directory_is_refused(acid, tmp_path):
    file = put(tmp_path / "x" / delta_name(1, 0) / "000000_0", "1970-01-01", LOST)
    create = f"CREATE TABLE t (id INT, d DATE) LOCATION '{tmp_path}/x' {INSERT_ONLY}"
    with pytest.raises(AcidSqlError, match="may hold days") as caught:
        acid.sql(create)
    assert str(file) in str(caught.value)
    put(file, "1970-01-01")
    acid.sql(create)
    assert shown(acid) == ["1970-01-01"]
