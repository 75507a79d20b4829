"""The file system of LOAD DATA's path."""

from __future__ import annotations

import pytest

from acidsql.acid.table import Column, Table, TableName
from acidsql.errors import AnalysisError
from acidsql.sql.parsed.statements import LoadData
from acidsql.sql.queries.references import Span
from acidsql.statements.dml.load import absolute_path


def loaded(inpath: str, location: str) -> str:
    local = inpath.startswith("LOCAL ")
    path = inpath.removeprefix("LOCAL ")
    statement = LoadData(("t",), path, Span(0, len(path)), local)
    table = Table(TableName("default", "t"), location, (Column("id", "int"),))
    return absolute_path(statement, path, table)


@pytest.mark.parametrize(
    ("inpath", "location", "expected"),
    [
        ("/in", "/warehouse/t", "/in"),
        ("file:/in", "/warehouse/t", "/in"),
        ("LOCAL /in", "hdfs://a:8020/t", "/in"),
        ("file:///in", "hdfs://a:8020/t", "/in"),
        ("/in", "hdfs://a:8020/t", "hdfs://a:8020/in"),
        ("hdfs:///in", "hdfs://a:8020/t", "hdfs://a:8020/in"),
        ("hdfs://b:8020/in", "hdfs://a:8020/t", "hdfs://b:8020/in"),
        ("hdfs:///in", "/warehouse/t", "hdfs:/in"),
        # The table's file system is the default one: its location names no host.
        ("/in", "hdfs:///warehouse/t", "hdfs:/in"),
        ("//in", "hdfs:///warehouse/t", "hdfs:/in"),
        ("hdfs:///in", "hdfs:/warehouse/t", "hdfs:/in"),
    ],
)
def test_a_path_without_a_file_system_is_on_the_tables(inpath, location, expected):
    assert loaded(inpath, location) == expected


@pytest.mark.parametrize("inpath", ["LOCAL hdfs:///in", "in/here", "", "/", "LOCAL /", "file:///"])
def test_paths_that_say_too_little_or_too_much_are_refused(inpath):
    with pytest.raises(AnalysisError):
        loaded(inpath, "/warehouse/t")
