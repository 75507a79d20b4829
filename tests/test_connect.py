"""Arguments that ``connect`` refuses."""

from __future__ import annotations

import pytest

import acidsql
from acidsql.errors import SettingError


def test_a_warehouse_that_cannot_be_made_is_said(spark, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SettingError, match=r"/file/warehouse' cannot be made: .*Not a directory"):
        acidsql.connect(spark, warehouse=f"{tmp_path}/file/warehouse")


def test_sqlite_is_not_put_on_a_file_system_of_others(spark, hdfs):
    with pytest.raises(SettingError, match="not on this machine: pass metastore="):
        acidsql.connect(spark, warehouse=f"{hdfs}/warehouse")
