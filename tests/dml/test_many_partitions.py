"""Of a table with many partitions only what matters is looked at: counted, not timed."""

from __future__ import annotations

import re

import pytest
from kit import rows

from acidsql.storage import orc_schema
from acidsql.storage.filesystem import LocalFileSystem


@pytest.fixture
def t(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), 'a', CAST(id AS INT) FROM range(0, 60, 1, 2)")
    return acid


@pytest.fixture
def listed(monkeypatch):
    """Partitions whose directories are listed."""
    found, listing = set(), LocalFileSystem.list

    def note(self, path):
        found.update(re.findall(r"/(p=\d+)", path))
        return listing(self, path)

    monkeypatch.setattr(LocalFileSystem, "list", note)
    return found


@pytest.mark.parametrize(
    "statement",
    ["UPDATE t SET v = 'b' WHERE p = 7", "DELETE FROM t WHERE p IN (7, 1000) AND v = 'a'"],
)
def test_only_the_partitions_that_a_statement_can_change_are_listed(t, listed, statement):
    t.sql(statement)
    assert listed == {"p=7"}
    assert rows(t, "SELECT count(*) FROM t WHERE v = 'a'") == [(59,)]


def test_a_partition_that_comes_between_is_seen(t, listed):
    t.sql("INSERT INTO t VALUES (100, 'a', 100)")
    t.sql("UPDATE t SET v = 'b' WHERE p >= 58")
    assert {"p=58", "p=59", "p=100"} <= listed
    assert rows(t, "SELECT id FROM t WHERE v = 'b'") == [(100,), (58,), (59,)]


def test_one_footer_tells_the_names_of_columns_for_all_that_a_statement_wrote(t, monkeypatch):
    looked, look = [], orc_schema.read_file_info

    def note(path):
        looked.append(path)
        return look(path)

    monkeypatch.setattr(orc_schema, "read_file_info", note)
    t.sql("INSERT INTO t SELECT id + 100, v, p FROM t")
    looked.clear()
    assert rows(t, "SELECT count(*) FROM t") == [(120,)]
    assert len(looked) == 2
