"""CHECK constraints that one of Hive and acidsql makes and the other enforces."""

from __future__ import annotations

import pytest

from acidsql.errors import ConstraintError


def test_each_enforces_the_checks_of_the_other(both):
    both.acid.sql("CREATE TABLE ours (n INT CHECK (n > 0))")
    both.hive.sql(
        "CREATE TABLE theirs (n INT CHECK (n > 0) ENABLE NOVALIDATE) STORED AS ORC "
        "TBLPROPERTIES ('transactional'='true')"
    )
    for table in ("ours", "theirs"):
        both.run("acidsql", f"INSERT INTO {table} VALUES (1)")
        both.run("hive", f"INSERT INTO {table} VALUES (2)")
        with pytest.raises(ConstraintError, match="`?n`? > 0 is false for n = -1"):
            both.acid.sql(f"INSERT INTO {table} VALUES (-1)")
        plan = both.hive.sql(f"EXPLAIN INSERT INTO {table} VALUES (-2)")
        assert "enforce_constraint" in str(plan)
        with pytest.raises(Exception, match="FAILED: Execution Error"):  # the log has the reason
            both.hive.sql(f"INSERT INTO {table} VALUES (-2)")
        assert both.rows(table) == [(1,), (2,)]
