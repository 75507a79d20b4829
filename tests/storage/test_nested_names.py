"""Fields of structs: Spark's reader and acidsql's find the same ones, whatever the case of names
is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyorc
import pytest

from acidsql.errors import CatalogError, FormatError
from acidsql.storage.orc.row_schema import RowSchema, conform, places_of_fields
from acidsql.storage.reading.events.originals import OriginalFile, read_originals

CASES = 40
NAMES = ["aa", "bb", "cc", "dd"]


def in_some_case(name: str, dice: random.Random) -> str:
    return "".join(dice.choice((letter.lower(), letter.upper())) for letter in name)


class Made:
    """A nested type in the table and in the file, a value in the file, and the value that is
    shown."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self.ours, self.theirs, self.written, self.shown = self._any(3)

    def _any(self, depth: int) -> tuple[str, str, Any, Any]:
        kind = self._dice.choice(["int", "array", "map", "struct", "struct"]) if depth else "int"
        if kind == "struct":
            return self._struct(depth - 1)
        if kind == "int":
            number = self._dice.randrange(1000)
            return "int", "int", number, number
        ours, theirs, written, shown = self._any(depth - 1)
        if kind == "array":
            return f"array<{ours}>", f"array<{theirs}>", [written, None], [shown, None]
        return f"map<int,{ours}>", f"map<int,{theirs}>", {7: written}, {7: shown}

    def _struct(self, depth: int) -> tuple[str, str, Any, Any]:
        names = self._dice.sample(NAMES, self._dice.randint(1, 3))
        only_ours = [] if len(names) == 1 else names[: self._dice.randint(0, 1)]
        parts = {name: self._any(depth) for name in names}
        in_file = [name for name in names if name not in only_ours]
        self._dice.shuffle(in_file)
        ours = ",".join(f"{name}:{parts[name][0]}" for name in names)
        theirs = [f"{in_some_case(name, self._dice)}:{parts[name][1]}" for name in in_file]
        written = [parts[name][2] for name in in_file]
        if self._dice.random() < 0.3:
            theirs.append("Surplus:int")
            written.append(1)
        shown = {name: None if name in only_ours else parts[name][3] for name in names}
        return f"struct<{ours}>", f"struct<{','.join(theirs)}>", tuple(written), shown


def plain(value: Any) -> Any:
    """Values from Spark and Arrow as dicts and lists."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        if value and type(value[0]) is tuple:  # one of Arrow's maps
            return {key: plain(part) for key, part in value}
        return [plain(part) for part in value]
    return value


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Made, str]]]:
    place, dice = tmp_path_factory.mktemp("nested"), random.Random(14)
    found = []
    for number in range(CASES):
        one = Made(dice)
        path = str(place / f"{number:06}_0")
        with (
            open(path, "wb") as file,
            pyorc.Writer(file, f"struct<c{number}:{one.theirs}>") as writer,
        ):
            writer.write((one.written,))
            writer.write((None,))
        found.append((one, path))
    yield found


def test_our_reader_finds_fields_whatever_their_case(made):
    for one, path in made:
        schema = RowSchema.from_fields([("c", one.ours)])
        (batch,) = read_originals(OriginalFile(path, 0, 0, 0, 0), schema)
        assert plain(batch.column(4).to_pylist()) == [one.shown, None], one.theirs


def test_sparks_reader_finds_the_same(made, spark):
    for one, path in made:
        read = spark.read.schema(f"c {one.ours}").option("orc.force.positional.evolution", "true")
        found = [plain(row[0]) for row in read.orc(path).collect()]
        assert found == [one.shown, None], one.theirs


@pytest.fixture
def addresses(spark, tmp_path):
    """A directory that Spark wrote, with fields in other cases than Hive would write."""
    path = str(tmp_path / "addresses")
    rows = spark.createDataFrame([((1, "Elm"),)], "addr struct<No: int, Street: string>")
    rows.coalesce(1).write.orc(path)
    return path


@pytest.mark.parametrize("kind", ["default", "insert_only"])
def test_loaded_files_show_their_fields_before_and_after_a_compaction(acid, addresses, kind):
    acid.sql(
        "CREATE TABLE t (addr STRUCT<no: INT, street: STRING>) "
        f"TBLPROPERTIES ('transactional_properties' = '{kind}')"
    )
    acid.sql(f"LOAD DATA LOCAL INPATH '{addresses}' INTO TABLE t")
    acid.sql("INSERT INTO t SELECT named_struct('no', 2, 'street', 'Oak')")
    query = "SELECT addr.no, addr.street FROM t ORDER BY 1"
    assert [tuple(row) for row in acid.sql(query).collect()] == [(1, "Elm"), (2, "Oak")]
    if kind == "default":
        for old, new in ((1, 3), (3, 1)):
            changed = f"named_struct('no', {new}, 'street', addr.street)"
            acid.sql(f"UPDATE t SET addr = {changed} WHERE addr.no = {old}")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert [tuple(row) for row in acid.sql(query).collect()] == [(1, "Elm"), (2, "Oak")]


def test_a_session_that_tells_names_apart_by_case_is_refused_where_they_differ(
    acid, addresses, spark
):
    acid.sql(
        "CREATE TABLE t (addr STRUCT<no: INT, street: STRING>) "
        "TBLPROPERTIES ('transactional_properties' = 'insert_only')"
    )
    acid.sql(f"LOAD DATA LOCAL INPATH '{addresses}' INTO TABLE t")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(FormatError, match=r"'No'.*caseSensitive"):
            acid.sql("SELECT * FROM t")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_directory_is_adopted_by_the_names_of_fields_not_by_their_places(acid, addresses):
    with pytest.raises(CatalogError, match=r"does not fit the table"):
        acid.sql(f"CREATE TABLE u (addr STRUCT<x: INT, y: STRING>) LOCATION '{addresses}'")
    acid.sql(f"CREATE TABLE t (addr STRUCT<street: STRING, no: INT>) LOCATION '{addresses}'")
    assert acid.sql("SELECT addr.no, addr.street FROM t").first() == (1, "Elm")


def test_a_name_that_could_mean_two_fields_is_refused():
    with pytest.raises(FormatError, match="several fields for 'a': 'a', 'A'"):
        places_of_fields(["a"], ["a", "A", "b"])
    assert places_of_fields(["b"], ["a", "A", "b"]) == [2]


def test_a_struct_without_any_of_the_fields_is_refused():
    rows = pa.array([{"s": {"x": 1}}], pa.struct([("s", pa.struct([("x", pa.int32())]))]))
    wanted = RowSchema.from_fields([("s", "struct<y:int>")])
    with pytest.raises(FormatError, match=r"the fields x, none of the table's y"):
        conform(rows, wanted, 2)
