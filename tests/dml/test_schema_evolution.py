"""WITH SCHEMA EVOLUTION: a statement gives its target the columns of its source, in its own
COMMIT."""

from __future__ import annotations

import itertools

import pyarrow.orc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit import fill, ordered, refused, rows, table
from over_hive import beside, needs

from acidsql.errors import SnapshotTooOldError, TxnError

pytestmark = [pytest.mark.spark, needs("alters_in_commit")]

_numbers = itertools.count()
_WIDTHS = ["TINYINT", "SMALLINT", "INT", "BIGINT"]


def columns(acid, name="t"):
    return [(row.col_name, row.data_type) for row in acid.sql(f"DESCRIBE {name}").collect()]


# ── random histories ─────────────────────────────────────────────────────────────────────────

cells = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.tuples(st.sampled_from(_WIDTHS), st.none() | st.integers(0, 99)),
)
sources = st.lists(
    st.tuples(st.integers(0, 5), cells), min_size=1, max_size=3, unique_by=lambda s: s[0]
)


class Model:
    """A table as a list of dictionaries, and the width of each column."""

    def __init__(self):
        self.rows, self.widths = [], {}

    def evolve(self, widths):
        for name, width in widths.items():
            self.widths[name] = max(self.widths.get(name, 0), width)

    def table(self):
        return ordered((row["id"], *(row.get(name) for name in self.widths)) for row in self.rows)


def as_query(source):
    """A query with the columns of the first row. Returns also their widths."""
    widths = {name: _WIDTHS.index(width) for name, (width, _) in source[0][1].items()}
    lines = [
        ", ".join(
            [f"{key} AS id"]
            + [
                f"CAST({'NULL' if name not in own or own[name][1] is None else own[name][1]} AS "
                f"{_WIDTHS[width]}) AS {name}"
                for name, width in widths.items()
            ]
        )
        for key, own in source
    ]
    values = [{"id": key} | {n: own.get(n, (0, None))[1] for n in widths} for key, own in source]
    return " UNION ALL ".join(f"SELECT {line}" for line in lines), widths, values


@settings(max_examples=3, deadline=None, database=None, derandomize=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(st.lists(st.tuples(st.sampled_from(["insert", "merge", "compact"]), sources), min_size=4,
                max_size=6))  # fmt: skip
def test_a_table_that_evolves_is_what_plain_python_says(acid, steps):
    name, model = f"t{next(_numbers)}", Model()
    acid.sql(f"CREATE TABLE {name} (id INT)")
    for kind, source in steps:
        query, widths, values = as_query(source)
        if kind == "compact":
            acid.compact(name, kind="major", wait=True)
            continue
        model.evolve(widths)
        if kind == "insert":
            acid.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {name} BY NAME {query}")
            model.rows += values
        elif len({row["id"] for row in model.rows}) < len(model.rows):
            continue  # the clauses below are about one row for each id
        else:
            acid.sql(
                f"MERGE WITH SCHEMA EVOLUTION INTO {name} USING ({query}) s ON {name}.id = s.id "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
            known = {row["id"]: row for row in model.rows}
            for value in values:
                known[value["id"]] = known.get(value["id"], {}) | value
            model.rows = list(known.values())
        assert table(acid, name) == model.table()
        expected = [(n, _WIDTHS[width].lower()) for n, width in model.widths.items()]
        assert columns(acid, name) == [("id", "int"), *expected]


# ── what evolves ─────────────────────────────────────────────────────────────────────────────


def test_merge_adds_what_star_names_and_returns_and_previews_it(acid):
    fill(acid, "t (id INT, n SMALLINT) PARTITIONED BY (p STRING)", "1, 1, 'x'", "2, 2, 'y'")
    merge = (
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS id, 70000 AS n, 'new' AS extra, "
        "'x' AS p UNION ALL SELECT 9, 9, 'nine', 'z') s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    shown = [row[:5] for row in rows(acid, f"EXPLAIN CHANGES {merge}")]
    assert shown == ordered(
        [
            (1, 1, None, "x", "update_preimage"),
            (1, 70000, "new", "x", "update_postimage"),
            (9, 9, "nine", "z", "insert"),
        ]
    )
    assert columns(acid)[:2] == [("id", "int"), ("n", "smallint")]  # nothing has happened
    found = rows(acid, f"{merge} RETURNING merge_action(), old.n, old.extra, t.*")
    assert found == ordered(
        [("UPDATE", 1, None, 1, 70000, "new", "x"), ("INSERT", None, None, 9, 9, "nine", "z")]
    )
    assert columns(acid)[:3] == [("id", "int"), ("n", "int"), ("extra", "string")]
    assert table(acid) == ordered([(1, 70000, "new", "x"), (2, 2, None, "y"), (9, 9, "nine", "z")])
    (newest,) = [f.path for f in acid.files("t").collect() if "p=z" in f.path]
    row = pyarrow.orc.read_table(newest).schema.field("row").type
    assert [field.name for field in row] == ["id", "n", "extra"]


def test_a_clause_adds_the_columns_of_the_source_that_it_names(acid):
    fill(acid, "t (id INT)", "1")
    source = "(SELECT 1 AS id, 5 AS a, 6 AS b, 7 AS c)"
    acid.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO t USING {source} s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET a = s.a + 1 "
        "WHEN NOT MATCHED THEN INSERT (id, b) VALUES (1, 2)"
    )
    assert columns(acid) == [("id", "int"), ("a", "int"), ("b", "int")]
    assert table(acid) == [(1, 6, None)]
    refused(
        acid,
        f"MERGE WITH SCHEMA EVOLUTION INTO t USING {source} s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET d = s.c",
        "UNRESOLVED_COLUMN",
        "d",
    )


def test_only_numbers_of_one_family_become_wider(acid):
    ddl = "t (i INT, f FLOAT, d DECIMAL(4, 1), v VARCHAR(3), b SMALLINT) "
    fill(acid, ddl + "CLUSTERED BY (b) INTO 2 BUCKETS", "1, 1.5, 1.5, 'a', 1")
    acid.sql(
        "INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 2.0D AS i, 2.5D AS f, "
        "CAST(20000.25 AS DECIMAL(9, 2)) AS d, 'b' AS v, 2 AS b"
    )
    assert columns(acid)[:5] == [
        ("i", "int"),
        ("f", "double"),
        ("d", "decimal(9,2)"),
        ("v", "varchar(3)"),
        ("b", "smallint"),
    ]
    assert [row[0] for row in table(acid)] == [1, 2]
    assert rows(acid, "SELECT f FROM t WHERE d > 1000 AND b = 2") == [(2.5,)]


def test_overwrite_and_replace_evolve_and_dataframes_too(acid, spark):
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1", "2, 2")
    acid.sql("INSERT WITH SCHEMA EVOLUTION OVERWRITE t BY NAME SELECT 3 AS id, 'x' AS a, 1 AS p")
    acid.sql(
        "INSERT WITH SCHEMA EVOLUTION INTO t BY NAME REPLACE WHERE p = 2 "
        "SELECT 4 AS id, true AS b, 2 AS p"
    )
    news = spark.sql("SELECT 4 AS id, DATE'2024-01-01' AS c, 2 AS p")
    writer = acid.merge_into(news, "t", "t.id = source.id").withSchemaEvolution()
    writer.whenMatched().updateAll().merge()
    assert [name for name, _ in columns(acid)[:4]] == ["id", "a", "b", "c"]
    assert rows(acid, "SELECT id, a, b, CAST(c AS STRING), p FROM t") == ordered(
        [(3, "x", None, None, 1), (4, None, True, "2024-01-01", 2)]
    )


def test_an_insert_only_table_evolves(acid):
    only = "TBLPROPERTIES ('transactional_properties'='insert_only')"
    for stored in ("", "STORED AS PARQUET "):
        fill(acid, f"t{len(stored)} (id SMALLINT) {stored}{only}", "1")
        acid.sql(
            f"INSERT WITH SCHEMA EVOLUTION INTO t{len(stored)} BY NAME SELECT 2 AS id, 'x' AS a"
        )
        assert table(acid, f"t{len(stored)}") == [(1, None), (2, "x")]
    assert columns(acid, "t0")[0] == ("id", "int")
    assert columns(acid, "t18")[0] == ("id", "smallint")  # Parquet is read as it was written


# ── beside others, and what is refused ───────────────────────────────────────────────────────


def test_a_statement_that_fails_leaves_the_columns_as_they_were(acid):
    fill(acid, "t (id INT NOT NULL)", "1")
    with pytest.raises(Exception, match="NOT NULL"):
        acid.sql(
            "INSERT WITH SCHEMA EVOLUTION INTO t BY NAME "
            "SELECT CAST(NULL AS INT) AS id, 'x' AS a FROM range(3)"
        )
    assert columns(acid) == [("id", "int")]
    assert table(acid) == [(1,)]


def test_a_transaction_of_before_does_not_read_the_table_with_its_new_columns(acid):
    fill(acid, "t (id INT)", "1")
    fill(acid, "u (id INT)", "1")
    with beside(acid) as other, pytest.raises(SnapshotTooOldError), other.transaction():
        other.sql("SELECT * FROM u").collect()
        acid.sql("INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 2 AS id, 'x' AS a")
        other.sql("SELECT * FROM t").collect()


def test_columns_do_not_change_inside_of_a_transaction(acid):
    fill(acid, "t (id INT)", "1")
    with acid.transaction():
        acid.sql("INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 2 AS id")  # nothing is new
        with pytest.raises(TxnError, match="A change of the columns of default.t inside"):
            acid.sql("INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 3 AS id, 4 AS a")
    assert table(acid) == [(1,), (2,)]


def test_columns_that_cannot_be_stored_are_refused(acid):
    fill(acid, "t (id INT)", "1")
    insert = "INSERT WITH SCHEMA EVOLUTION INTO t BY NAME "
    refused(acid, insert + "SELECT 1 AS id, NULL AS a", "UNSUPPORTED_DATATYPE")
    refused(acid, insert + "SELECT 1 AS id, 2 AS row__id", "UNSUPPORTED_FEATURE.RESERVED")
    refused(acid, insert + "SELECT 1 AS id, 2 AS ``", "INVALID_IDENTIFIER")
    refused(acid, "CREATE TABLE u AS SELECT 1 AS ``", "INVALID_IDENTIFIER")
    refused(acid, insert + "SELECT 1 AS id, 2 AS a, 3 AS A", "INCOMPATIBLE_DATA_FOR_TABLE")


def test_a_merge_means_the_same_as_before_it_had_new_columns(acid):
    """Also if it names row__id, and has an INSERT without a list of columns."""
    fill(acid, "t (id INT, v INT)", "1, 1")
    fill(acid, "s (id INT, v INT, x INT)", "1, 10, 100", "2, 20, 200")
    acid.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING s ON t.id = s.id AND t.row__id.rowid >= 0 "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
    )
    assert columns(acid) == [("id", "int"), ("v", "int"), ("x", "int")]
    assert table(acid) == ordered([(1, 10, 100), (2, 20, None)])


def test_two_columns_of_the_source_with_one_name_are_refused(acid, conf):
    conf("spark.sql.caseSensitive", "true")
    fill(acid, "t (id INT)", "1")
    refused(
        acid,
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS id, 2 AS z, 3 AS Z) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
        "AMBIGUOUS_COLUMN_REFERENCE",
    )
