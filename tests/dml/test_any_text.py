"""Any text as a name, a value of a partition, or a location.

It is either refused by name before anything is made, or every statement works with it, DROP
included. (``tests/acid/test_paths.py`` says which names and locations are allowed.)
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from over_hive import needs

from acidsql.errors import AcidSqlError

ODD = [
    "a", "A", "_b", ".a", "..", ".", "a/b", "../a", "a/../b", "a//b", "a b", " a", "a ", "a\nb",
    "a\tb", "a\rb", "x=1", "base_5", "delta_0000001_0000001_0000", "_tmp_0000001_0000_x", "a%2Fb",
    "%", "a:b", "a*", "a?b", "[a]", "{a,b}", "a\\b", "a'b", 'a"b', "a`b", "a;b", "a#b", "a,b", "é",
    "😀", "a\u0301", "\u2028", "ſ", "İ", "\u212a", "null", "select", "1", "-1", "", "$", "~",
    "a.crc", "a\x7f", "__acidsql_a", "row__id", "000000_0", "x" * 128, "x" * 129, "é" * 120,
]  # fmt: skip


def name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def tree(root: Path) -> list[str]:
    """All files and directories in a place, without the metastore's."""
    return sorted(str(path) for path in root.rglob("*") if ".acidsql" not in path.parts)


def is_made(acid: Any, root: Path, text: str) -> bool:
    """Whether a statement succeeds. If not, it has a named error and has made nothing."""
    before = tree(root)
    try:
        acid.sql(text)
    except AcidSqlError as error:
        assert error.condition and error.sqlstate, (text, error)
        assert not error.condition.startswith("METASTORE"), (text, error)
        assert tree(root) == before, text
        return False
    return True


def test_any_text_as_a_tables_name(acid, tmp_path):
    before = tree(tmp_path)
    for text in ODD:
        if is_made(acid, tmp_path, f"CREATE TABLE {name(text)} (id INT)"):
            acid.sql(f"INSERT INTO {name(text)} VALUES (1)")
            assert acid.table(name(text)).collect() == [(1,)]
            acid.sql(f"ALTER TABLE {name(text)} RENAME TO {name(text[:100] + '_2')}")
            acid.sql(f"DROP TABLE {name(text[:100] + '_2')}")
        assert tree(tmp_path) == before, text


@needs("a warehouse of its own")
def test_any_text_as_a_databases_name(acid, tmp_path):
    for text in ODD:
        if is_made(acid, tmp_path, f"CREATE DATABASE {name(text)}"):
            before = tree(tmp_path)
            acid.sql(f"CREATE TABLE {name(text)}.t (id INT)")
            place = Path(acid._table(f"{text}.t").location)
            assert place.parent.parent == tmp_path / "warehouse"
            acid.sql(f"INSERT INTO {name(text)}.t VALUES (1)")
            acid.sql(f"DROP TABLE {name(text)}.t")
            left = set(tree(tmp_path)) - {str(place.parent)}  # the database's own directory
            assert left == set(before) - {str(place.parent)}
            acid.sql(f"DROP DATABASE {name(text)}")


@needs("any text")
@pytest.mark.parametrize("role", ["data", "partition"])
def test_any_text_as_a_columns_name(acid, tmp_path, role):
    before, good = tree(tmp_path), list[str]()
    for text in ODD:
        column = f"{name(text)} INT"
        ddl = f"({column})" if role == "data" else f"(id INT) PARTITIONED BY ({column})"
        if is_made(acid, tmp_path, f"CREATE TABLE t {ddl}"):
            acid.sql("DROP TABLE t")
            good += [text] if text.lower() not in map(str.lower, good) else []
    assert tree(tmp_path) == before
    chosen = good if role == "data" else good[:15]  # a path has a greatest length
    columns = ", ".join(f"{name(text)} INT" for text in chosen)
    ddl = f"({columns})" if role == "data" else f"(id INT) PARTITIONED BY ({columns})"
    acid.sql(f"CREATE TABLE t {ddl}")
    row = tuple(range(len(chosen) + (role == "partition")))
    acid.sql(f"INSERT INTO t VALUES {row}")
    acid.sql(f"UPDATE t SET {name(chosen[0]) if role == 'data' else 'id'} = 0")
    assert acid.sql("SELECT * FROM t").collect() == [row]
    shown = ", ".join(map(name, reversed(chosen)))
    assert acid.sql(f"SELECT {shown} FROM t").collect() == [row[: -len(chosen) - 1 : -1]]
    acid.sql("DROP TABLE t")
    assert tree(tmp_path) == before


@needs("any text")
def test_any_text_as_a_partitions_value(acid, tmp_path):
    before = tree(tmp_path)
    acid.sql("CREATE TABLE t (id INT) PARTITIONED BY (p STRING)")
    values = [text for text in ODD if text]  # there the empty text is NULL
    marks = ", ".join(f"({number}, ?)" for number in range(len(values)))
    acid.sql(f"INSERT INTO t VALUES {marks}", values)
    expected = list(enumerate(values))
    assert sorted(map(tuple, acid.table("t").collect())) == expected
    acid.sql("DELETE FROM t WHERE p = ?", [values[0]])
    assert sorted(map(tuple, acid.table("t").collect())) == expected[1:]
    acid.sql("DROP TABLE t")
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "text", ["a b ", "a%2Fb%20", "a:b=1", "[a]{b,c}*?", "é😀a\u0301", "a\\b'\"`;#$~", "_base_5"]
)
def test_any_text_as_a_place(acid, tmp_path, text):
    place = tmp_path / "ext" / text
    place.parent.mkdir()
    before = tree(tmp_path)
    acid.sql(f"CREATE TABLE t (id INT) PARTITIONED BY (p INT) LOCATION {literal(str(place))}")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    acid.sql("DELETE FROM t WHERE id = 2")
    assert place.is_dir() and os.listdir(place.parent) == [text]
    assert acid.sql("SELECT * FROM t").collect() == [(1, 1)]
    acid.sql("DROP TABLE t")
    assert tree(tmp_path) == before
