"""INSERT … REPLACE: conditions mean the same for old and new rows. The oracle test has random
ones."""

from __future__ import annotations

import pytest
from kit import fill, ordered, refused, table

from acidsql.errors import ConstraintError

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("partitioned", [", c CHAR(3))", ") PARTITIONED BY (c CHAR(3))"])
def test_a_char_is_compared_as_readers_compare_it(acid, partitioned):
    fill(acid, f"t (a INT{partitioned}", "1, 'a'", "2, 'b'")
    acid.sql("INSERT INTO t REPLACE WHERE default.t.c = 'a' SELECT 3, 'a'")
    assert table(acid) == ordered([(3, "a  "), (2, "b  ")])
    with pytest.raises(ConstraintError, match="REPLACE_WHERE_MISMATCH"):
        acid.sql("INSERT INTO t REPLACE WHERE c <> 'a' SELECT 4, 'a'")
    acid.sql("INSERT INTO t REPLACE USING (c) VALUES (5, 'b'), (6, 'c')")
    assert table(acid) == ordered([(3, "a  "), (5, "b  "), (6, "c  ")])


def test_an_empty_source_replaces_what_the_condition_names_and_no_equal_rows(acid):
    fill(acid, "t (a INT)", "1", "2")
    acid.sql("INSERT INTO t REPLACE USING (a) SELECT 1 WHERE false")
    assert table(acid) == [(1,), (2,)]
    acid.sql("INSERT INTO t REPLACE WHERE a = 1 SELECT 1 WHERE false")
    assert table(acid) == [(2,)]


def test_a_char_inside_of_a_value_is_compared_as_readers_see_it(acid):
    fill(acid, "t (k ARRAY<CHAR(2)>, s STRUCT<c: CHAR(3)>, v INT)")
    acid.sql("INSERT INTO t SELECT array('a'), named_struct('c', 'x'), 1")
    acid.sql("INSERT INTO t REPLACE USING (k, s) SELECT array('a'), named_struct('c', 'x'), 2")
    acid.sql("INSERT INTO t REPLACE WHERE s.c = 'x  ' SELECT k, s, v + 1 FROM t")
    assert [row[2] for row in table(acid)] == [3]


def test_a_condition_is_refused_where_it_is_wrong(acid):
    fill(acid, "t (a INT, d DOUBLE)", "1, 1")
    insert = "INSERT INTO t REPLACE WHERE "
    refused(acid, insert + "string(struct(*)) = '{1, 1.0}' SELECT 1, 1", "UNSUPPORTED_FEATURE", "*")
    refused(acid, insert + "hash(t.*) = 1 SELECT 1, 1", "UNSUPPORTED_FEATURE.STAR", "t.*")
    error = refused(acid, insert + "d SELECT 1, 1", "DATATYPE_MISMATCH", "d")
    assert "acidsql" not in error.message
    refused(acid, insert + "a IN (SELECT 1) SELECT 1, 1", "UNSUPPORTED_FEATURE")
    acid.sql(insert + "a * 2 = 2 TABLE t")
    assert table(acid) == [(1, 1.0)]
