"""Tables and sources that many cases share."""

from __future__ import annotations

from typing import Any

from suite.case import LAYOUTS, Case, Table

T = Table("t", "id INT, v STRING, n INT", "(1,'a',10),(2,'b',20),(3,NULL,30),(4,'d',NULL)")
EMPTY = Table("t", "id INT, v STRING, n INT")
# A key that is NULL, a key twice, and text that looks like a number.
ODD = Table(
    "t", "id INT, v STRING, n INT", "(NULL,'a',1),(1,'10',2),(1,'x',3),(2,'',NULL),(NULL,NULL,NULL)"
)
# Two rows for each of two partitions, and one where the partition column is NULL.
PARTS = Table(
    "t", "id INT, v STRING", "(1,'a','x'),(2,'b','x'),(3,'c','y'),(4,'d','y'),(5,'e',NULL)",
    partitioned="p STRING",
)  # fmt: skip
S = "SELECT * FROM VALUES (1,'x',11),(3,'y',31),(5,'z',51),(6,NULL,NULL) AS s(id, v, n)"
NULLS = "SELECT * FROM VALUES (1,'x',11),(NULL,'y',12),(7,NULL,NULL) AS s(id, v, n)"
TWICE = "SELECT * FROM VALUES (1,'x',11),(1,'y',12),(9,'z',13) AS s(id, v, n)"
NOTHING = "SELECT * FROM VALUES (1,'x',11) AS s(id, v, n) WHERE id < 0"

ALL_LAYOUTS = LAYOUTS
# Where partitions have an influence: the order of columns, or what INSERT OVERWRITE replaces.
BUCKETED = ("plain", "bucketed")


def values(*rows: str, names: str = "id, v, n") -> str:
    """The query of a source: rows of VALUES without brackets."""
    return f"SELECT * FROM VALUES {', '.join(f'({row})' for row in rows)} AS s({names})"


def merge(
    name: str,
    clauses: str,
    *,
    source: str = S,
    on: str = "t.id = s.id",
    table: Table = T,
    **more: Any,
) -> Case:
    """A MERGE into ``t`` of the temporary view ``s``."""
    text = f"MERGE INTO t USING s ON {on} {clauses}"
    return Case(name, (table,), text, views={"s": source}, **more)
