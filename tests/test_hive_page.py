"""``docs/hive-metastore.md``: its code runs, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

import acidsql

PAGE = Path(__file__).parent.parent / "docs" / "hive-metastore.md"


def test_the_page_about_hive_runs(spark, hive_metastore):
    """``thrift://hms1:9083`` is the tests' server, and ``/srv/warehouse`` its warehouse."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert len(blocks) == 2
    text = "\n".join(blocks).replace("thrift://hms1:9083", hive_metastore.url)
    text = text.replace("/srv/warehouse", str(hive_metastore.warehouse))
    names = {"spark": spark, "acidsql": acidsql}
    exec(compile(text, str(PAGE), "exec"), names)
    for database in ("shop", "fleet"):
        names["acid"].sql(f"DROP DATABASE {database} CASCADE")
    names["acid"].close()
    names["own"].close()


@pytest.mark.parametrize("page", sorted(PAGE.parent.glob("*.md")), ids=lambda page: page.name)
def test_links_of_a_page_and_to_it_lead_somewhere(page):
    readme = PAGE.parent.parent / "README.md"
    assert f"(docs/{page.name})" in readme.read_text()
    assert "## With your Hive" in readme.read_text()
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
