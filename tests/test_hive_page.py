"""``docs/hive-metastore.md``: its code runs, from top to bottom."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

import acidsql

PAGE = Path(__file__).parent.parent / "docs" / "hive-metastore.md"


@pytest.mark.skipif("ACIDSQL_OVER_HIVE" in os.environ, reason="needs acidsql's own metastore, too")
def test_the_page_about_hive_runs(spark, acid, hive_metastore):
    """``thrift://hms1:9083`` is the tests' server, and ``acid`` the session without it."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert len(blocks) == 2
    text = "\n".join(blocks).replace("thrift://hms1:9083", hive_metastore.url)
    names = {"spark": spark, "acidsql": _Connected(acid)}
    exec(compile(text, str(PAGE), "exec"), names)
    for database in ("shop", "fleet"):
        names["acid"].sql(f"DROP DATABASE {database} CASCADE")
    names["acid"].close()


class _Connected:
    """``acidsql`` for the page's code, but without a metastore ``connect`` returns the session."""

    def __init__(self, session: acidsql.Session) -> None:
        self._session = session

    def connect(self, *args: object, **keywords: object) -> acidsql.Session:
        inspect.signature(acidsql.connect).bind(*args, **keywords)
        if "metastore" in keywords:
            return acidsql.connect(*args, **keywords)
        return self._session


def test_links_of_the_page_and_to_it_lead_somewhere():
    readme = PAGE.parent.parent / "README.md"
    assert "(docs/hive-metastore.md)" in readme.read_text()
    assert "## With your Hive" in readme.read_text()
    for target in re.findall(r"\]\(([^)#]+)", PAGE.read_text()):
        assert (PAGE.parent / target).exists(), target
