"""``docs/hive-metastore.md``: its code runs, from top to bottom."""

from __future__ import annotations

import pytest
from pages import DOCS, blocks

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

import acidsql

PAGE = DOCS / "hive-metastore.md"


def test_the_page_about_hive_runs(spark, hive_metastore):
    """``thrift://hms1:9083`` is the tests' server, and ``/srv/warehouse`` its warehouse."""
    found = [block.text for block in blocks(PAGE)]
    assert len(found) == 2
    text = "\n".join(found).replace("thrift://hms1:9083", hive_metastore.url)
    text = text.replace("/srv/warehouse", str(hive_metastore.warehouse))
    names = {"spark": spark, "acidsql": acidsql}
    exec(compile(text, str(PAGE), "exec"), names)
    for database in ("shop", "fleet"):
        names["acid"].sql(f"DROP DATABASE {database} CASCADE")
    names["acid"].close()
    names["own"].close()
