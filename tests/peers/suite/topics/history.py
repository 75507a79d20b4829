"""Older versions, RESTORE, and the feed of changes."""

from __future__ import annotations

from typing import Any

from suite.case import Case, Table
from suite.tables import ALL_LAYOUTS, PARTS, T

STEPS = ("UPDATE t SET n = n + 1 WHERE id < 3", "DELETE FROM t WHERE id = 2",
         "INSERT INTO t VALUES (9, 'z', 90)")  # fmt: skip
MERGE = (
    "MERGE INTO t USING (SELECT * FROM VALUES (1, 'x', 11), (5, 'z', 51) AS q(id, v, n)) AS s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


def at(
    name: str, query: str, *, setup: tuple[str, ...] = STEPS, table: Table = T, **more: Any
) -> Case:
    """A query over older versions, after the steps. The statement in question is a query, too."""
    return Case(name, (table,), "SELECT 1", setup=setup, query=query, **more)


TRAVEL = [
    at("version: after the first step", "SELECT * FROM t VERSION AS OF {v1}", layouts=ALL_LAYOUTS),
    at("version: after the second step", "SELECT * FROM t VERSION AS OF {v2}", layouts=ALL_LAYOUTS),
    at("version: the newest", "SELECT * FROM t VERSION AS OF {v3}"),
    at("version: one that never was", "SELECT * FROM t VERSION AS OF 99"),
    at("version: with an alias", "SELECT x.id FROM t VERSION AS OF {v1} AS x WHERE x.n > 20"),
    at("version: two in one query", "SELECT a.id, a.n, b.n AS later FROM t VERSION AS OF {v1} a LEFT JOIN t VERSION AS OF {v3} b ON a.id = b.id"),
    at("version: beside the newest rows", "SELECT id FROM t VERSION AS OF {v1} EXCEPT SELECT id FROM t"),
    at("version: in a subquery", "SELECT * FROM (SELECT count(*) AS c, sum(n) AS s FROM t VERSION AS OF {v2})"),
    at("version: in a WITH", "WITH old AS (SELECT * FROM t VERSION AS OF {v1}) SELECT id FROM old WHERE id = 2"),
    at("version: as a source of INSERT", "SELECT * FROM t", setup=(*STEPS[:2],)),
    at("version: before an OVERWRITE", "SELECT * FROM t VERSION AS OF {v1}", setup=("UPDATE t SET v = 'u'", "INSERT OVERWRITE t VALUES (0, 'o', 0)")),
    at("version: after an OVERWRITE", "SELECT * FROM t VERSION AS OF {v2}", setup=("UPDATE t SET v = 'u'", "INSERT OVERWRITE t VALUES (0, 'o', 0)", "DELETE FROM t")),
    at("version: before all rows were deleted", "SELECT * FROM t VERSION AS OF {v1}", setup=("UPDATE t SET n = 0", "DELETE FROM t")),
    at("version: a partitioned table", "SELECT * FROM t VERSION AS OF {v1} WHERE p = 'x'", table=PARTS, setup=("UPDATE t SET p = 'x' WHERE id = 3", "DELETE FROM t WHERE p = 'x'")),
    at("version: FOR VERSION AS OF", "SELECT * FROM t FOR VERSION AS OF {v1}"),
    at("version: FOR SYSTEM_VERSION AS OF", "SELECT * FROM t FOR SYSTEM_VERSION AS OF {v1}"),
    at("version: a text", "SELECT * FROM t VERSION AS OF 'x'"),
    at("time: long before", "SELECT * FROM t TIMESTAMP AS OF '2001-01-01'"),
    at("time: no time", "SELECT * FROM t TIMESTAMP AS OF 'yesterday-ish'"),
    at("time: by the function of now", "SELECT * FROM t TIMESTAMP AS OF current_timestamp()"),
    Case("version: UPDATE of an older one", (T,), "UPDATE t VERSION AS OF 1 SET v = 'x'"),
    Case("version: INSERT of older rows", (T,), "INSERT INTO t SELECT * FROM t VERSION AS OF {v1} WHERE id = 2", setup=STEPS, layouts=ALL_LAYOUTS),
    Case("version: MERGE of older rows", (T,), "MERGE INTO t USING (SELECT * FROM t VERSION AS OF {v1}) s ON t.id = s.id "
         "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT *", setup=STEPS, layouts=ALL_LAYOUTS),
    Case("version: OVERWRITE by older rows", (T,), "INSERT OVERWRITE t SELECT * FROM t VERSION AS OF {v1}", setup=STEPS),
    Case("version: DELETE of rows that an older one has", (T,), "DELETE FROM t WHERE id IN (SELECT id FROM t VERSION AS OF {v1})", setup=STEPS,
         peer="MERGE INTO t USING (SELECT id FROM t VERSION AS OF {v1}) s ON t.id = s.id WHEN MATCHED THEN DELETE"),
]  # fmt: skip


def restore(
    name: str,
    statement: str | tuple[str, ...],
    *,
    setup: tuple[str, ...] = STEPS,
    table: Table = T,
    **more: Any,
) -> Case:
    """A RESTORE, and what follows."""
    return Case(name, (table,), statement, setup=setup, **more)


_BACK = "RESTORE TABLE t TO VERSION AS OF {v1}"
RESTORE = [
    restore("restore: after an UPDATE, a DELETE and an INSERT", _BACK, layouts=ALL_LAYOUTS),
    restore("restore: to the newest", "RESTORE TABLE t TO VERSION AS OF {v3}"),
    restore("restore: one that never was", "RESTORE TABLE t TO VERSION AS OF 99"),
    restore("restore: twice", (_BACK, "RESTORE TABLE t TO VERSION AS OF {v2}")),
    restore("restore: the same twice", (_BACK, _BACK)),
    restore("restore: and undone", (_BACK, "RESTORE TABLE t TO VERSION AS OF {v3}")),
    restore("restore: then an UPDATE", (_BACK, "UPDATE t SET v = 'again' WHERE id = 2"), layouts=ALL_LAYOUTS),
    restore("restore: then a MERGE", (_BACK, MERGE)),
    restore("restore: after an OVERWRITE", _BACK, setup=("UPDATE t SET v = 'u'", "INSERT OVERWRITE t VALUES (0, 'o', 0)")),
    restore("restore: after all rows were deleted", _BACK, setup=("UPDATE t SET n = 0", "DELETE FROM t")),
    restore("restore: after a MERGE", _BACK, setup=("INSERT INTO t VALUES (7, 'q', 7)", MERGE)),
    restore("restore: rows that moved to another partition", _BACK, table=PARTS, setup=("UPDATE t SET v = upper(v)", "UPDATE t SET p = 'y'")),
    restore("restore: equal rows", _BACK, setup=("INSERT INTO t VALUES (1, 'a', 10), (1, 'a', 10)", "DELETE FROM t WHERE id = 1")),
    restore("restore: without the word TABLE", "RESTORE t TO VERSION AS OF {v1}"),
    restore("restore: a column was added since", _BACK, setup=("UPDATE t SET v = 'u'", "ALTER TABLE t ADD COLUMNS (more STRING)", "UPDATE t SET more = 'm'"), query="SELECT id, v, n FROM t"),
    restore("restore: a table that does not exist", "RESTORE TABLE missing TO VERSION AS OF 1"),
    restore("restore: a time long before", "RESTORE TABLE t TO TIMESTAMP AS OF '2001-01-01'"),
]  # fmt: skip

KEYED = Table("t", "id INT, v STRING, n INT", T.rows, properties="'acidsql.key'='id'")
FEED = "SELECT id, v, n, _change_type FROM table_changes('t', "


def changes(
    name: str,
    *steps: str,
    since: str = "{v1}",
    until: str = ", {v2}",
    table: Table = KEYED,
    **more: Any,
) -> Case:
    """The changes of the second step and later ones."""
    query = f"{FEED}{since}{until})"
    return Case(name, (table,), "SELECT 1", setup=steps, query=more.pop("query", query), **more)


_FIRST = "INSERT INTO t VALUES (7, 'q', 7)"
CHANGES = [
    changes("changes: INSERT", _FIRST, "INSERT INTO t VALUES (8, 'r', 8)", since="{v2}"),
    changes("changes: UPDATE", _FIRST, "UPDATE t SET n = n + 1 WHERE id < 3", since="{v2}", layouts=ALL_LAYOUTS),
    changes("changes: UPDATE of all rows", _FIRST, "UPDATE t SET v = 'all'", since="{v2}"),
    changes("changes: DELETE", _FIRST, "DELETE FROM t WHERE id > 2", since="{v2}", layouts=ALL_LAYOUTS),
    changes("changes: DELETE of all rows", _FIRST, "DELETE FROM t", since="{v2}"),
    changes("changes: MERGE", _FIRST, MERGE, since="{v2}", layouts=ALL_LAYOUTS),
    changes("changes: MERGE of all kinds", _FIRST, f"{MERGE} WHEN NOT MATCHED BY SOURCE THEN DELETE", since="{v2}"),
    changes("changes: MERGE that updates by source", _FIRST, f"{MERGE} WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN UPDATE SET v = 'gone'", since="{v2}"),
    changes("changes: OVERWRITE", _FIRST, "INSERT OVERWRITE t VALUES (0, 'o', 0)", since="{v2}"),
    changes("changes: two versions", _FIRST, "UPDATE t SET n = 0 WHERE id = 1", since="{v1}"),
    changes("changes: two changes of a row", "UPDATE t SET n = 1 WHERE id = 1", "UPDATE t SET n = 2 WHERE id = 1", since="{v1}"),
    changes("changes: inserted and deleted", _FIRST, "DELETE FROM t WHERE id = 7", since="{v1}"),
    changes("changes: until now", _FIRST, "DELETE FROM t WHERE id = 7", since="{v1}", until=""),
    changes("changes: the first version", _FIRST, since="{v1}", until=", {v1}"),
    changes("changes: a value that stays", _FIRST, "UPDATE t SET v = v WHERE id = 1", since="{v2}"),
    changes("changes: a value becomes NULL", _FIRST, "UPDATE t SET v = NULL WHERE id = 1", since="{v2}"),
    changes("changes: RESTORE", "UPDATE t SET n = 0 WHERE id = 1", "DELETE FROM t WHERE id = 2", "RESTORE TABLE t TO VERSION AS OF 1", since="{v3}", until=", {v3}"),
    changes("changes: a range that ends before it begins", _FIRST, "DELETE FROM t", since="{v2}", until=", {v1}"),
    changes("changes: a version that never was", _FIRST, since="99", until=", 99"),
    changes("changes: of a filter", _FIRST, "UPDATE t SET n = n + 1", query=f"{FEED}{{v2}}, {{v2}}) WHERE id = 1 AND _change_type = 'update_postimage'"),
    changes("changes: counted", _FIRST, "UPDATE t SET n = n + 1", MERGE, query="SELECT _change_type, count(*) AS c FROM table_changes('t', {v1}) GROUP BY 1"),
    changes("changes: as the source of a MERGE", _FIRST, "UPDATE t SET n = n + 1 WHERE id = 1", query="SELECT max(n) AS n FROM table_changes('t', {v2}, {v2})"),
]  # fmt: skip

CASES = [*TRAVEL, *RESTORE, *CHANGES]
