"""What names a column beside its table's schema follows a new name, or the change is refused."""

from __future__ import annotations

import pytest
from kit import fill, ordered, refused, rows, table
from over_hive import needs

from acidsql.errors import AcidSqlError

pytestmark = pytest.mark.spark

RENAMES = {
    "RENAME COLUMN": "RENAME COLUMN {old} TO `{new}`",
    "CHANGE": "CHANGE COLUMN {old} `{new}` {kind}",
    "REPLACE COLUMNS": "REPLACE COLUMNS ({columns})",
}


def properties(acid, name="t"):
    """The properties of a table that name columns, or might."""
    found = {row.key: row.value for row in acid.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    return {key: found[key] for key in found if key.startswith(("acidsql.", "orc."))}


@pytest.mark.parametrize("form", RENAMES)
def test_every_list_of_columns_has_the_new_name(acid, form):
    acid.sql(
        "CREATE TABLE t (id INT, v STRING, s STRUCT<id: INT>) TBLPROPERTIES ("
        "'acidsql.key' = 'ID, v', 'acidsql.cdc.keys' = 'v, `id`', "
        "'orc.bloom.filter.columns' = 'id,s.id', 'orc.column.encoding.direct' = 'v,Id', "
        "'mine' = 'id')"
    )
    columns = "`Nö 1` INT, v STRING, s STRUCT<id: INT>"
    acid.sql(f"ALTER TABLE t {RENAMES[form]}".format(
        old="ID", new="Nö 1", kind="INT", columns=columns,
    ))  # fmt: skip
    assert properties(acid) == {
        "acidsql.key": "nö 1, v",
        "acidsql.cdc.keys": "v, `nö 1`",
        "orc.bloom.filter.columns": "nö 1,s.id",
        "orc.column.encoding.direct": "v,nö 1",
    }
    acid.sql("INSERT INTO t VALUES (1, 'a', NULL)")
    acid.sql("ALTER TABLE t RENAME COLUMN s TO v2")
    assert properties(acid)["orc.bloom.filter.columns"] == "nö 1,v2.id"


@needs("keeps_versions")
def test_the_key_of_changes_still_makes_pairs_under_a_new_name(acid):
    fill(acid, "t (id INT, v STRING) TBLPROPERTIES ('acidsql.key' = 'id')", "1, 'a'")
    acid.sql("ALTER TABLE t RENAME COLUMN id TO number")
    acid.sql("UPDATE t SET v = 'b'")
    found = acid.changes("t", 2).select("number", "v", "_change_type").collect()
    assert ordered(found) == [(1, "a", "update_preimage"), (1, "b", "update_postimage")]


def test_the_order_of_sorted_buckets_has_the_new_name_and_rows_stay_sorted(acid):
    acid.sql(
        "CREATE TABLE t (id INT, v VARCHAR(3), p INT) CLUSTERED BY (id) "
        "SORTED BY (v DESC, id) INTO 2 BUCKETS "
        "TBLPROPERTIES ('transactional_properties' = 'insert_only')"
    )
    acid.sql("INSERT INTO t VALUES (1, 'a', 0)")
    acid.sql("ALTER TABLE t RENAME COLUMN v TO w")
    acid.sql("ALTER TABLE t CHANGE COLUMN id number INT")
    acid.sql("ALTER TABLE t CHANGE COLUMN w w VARCHAR(9)")
    acid.sql("INSERT INTO t VALUES (3, 'x', 0), (5, 'z', 0), (7, 'y', 0)")
    assert len(table(acid)) == 4
    created = acid.sql("SHOW CREATE TABLE t").collect()[0][0]
    assert "CLUSTERED BY (`number`) SORTED BY (`w` DESC, `number`" in created, created


@pytest.mark.parametrize(
    ("old", "new"),
    [("STRING", "VARCHAR(3)"), ("INT", "STRING"), ("DOUBLE", "STRING"), ("BIGINT", "DOUBLE"),
     ("CHAR(3)", "STRING"), ("DATE", "STRING")],
)  # fmt: skip
def test_a_column_of_sorted_by_gets_no_type_that_sorts_otherwise(acid, old, new):
    acid.sql(
        f"CREATE TABLE t (id INT, v {old}) CLUSTERED BY (id) SORTED BY (v) INTO 2 BUCKETS "
        "TBLPROPERTIES ('transactional_properties' = 'insert_only')"
    )
    for form in (f"CHANGE v v {new}", f"REPLACE COLUMNS (id INT, v {new})"):
        error = refused(acid, f"ALTER TABLE t {form}", "NOT_SUPPORTED_CHANGE_COLUMN", new)
        assert "SORTED BY 'v'" in error.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("acidsql.cdc.sequence.by", "struct(r.V, n)"),
        ("acidsql.cdc.delete.when", "`v` = 'd'"),
        ("acidsql.cdc.truncate.when", "v IS NULL"),
    ],
)
def test_a_column_in_an_expression_of_a_property_keeps_its_name(acid, name, value):
    quoted = value.replace("'", "''")
    acid.sql(f"CREATE TABLE t (id INT, v STRING) TBLPROPERTIES ('{name}' = '{quoted}')")
    error = refused(acid, "ALTER TABLE t RENAME COLUMN v TO w", "NOT_SUPPORTED_CHANGE_COLUMN", "v")
    assert name in error.message and "UNSET TBLPROPERTIES" in error.message
    acid.sql("ALTER TABLE t RENAME COLUMN id TO number")
    acid.sql(f"ALTER TABLE t UNSET TBLPROPERTIES ('{name}')")
    acid.sql("ALTER TABLE t RENAME COLUMN v TO w")
    assert rows(acid, "SELECT number, w FROM t") == []


def test_a_name_that_a_list_cannot_have_is_refused(acid):
    for name in ("acidsql.key", "orc.bloom.filter.columns"):
        acid.sql(f"CREATE TABLE t (id INT, v STRING) TBLPROPERTIES ('{name}' = 'id')")
        error = refused(
            acid, "ALTER TABLE t RENAME COLUMN id TO `a,b`", "NOT_SUPPORTED_CHANGE_COLUMN", "id"
        )
        assert name in error.message
        acid.sql("DROP TABLE t")


def test_a_property_names_columns_that_are_there(acid):
    fill(acid, "t (id INT, v STRING) PARTITIONED BY (p INT)", "1, 'a', 1")
    for name, value, missing in (
        ("acidsql.key", "id, nope", "'nope'"), ("acidsql.cdc.keys", "`no pe`, p", "'no pe'"),
        ("acidsql.key", "id, ID", "twice"), ("acidsql.cdc.keys", "id,", "no list"),
    ):  # fmt: skip
        for statement in (
            f"ALTER TABLE t SET TBLPROPERTIES ('{name}' = '{value}')",
            f"CREATE TABLE u (id INT) PARTITIONED BY (p INT) TBLPROPERTIES ('{name}' = '{value}')",
            f"CREATE TABLE u LIKE t TBLPROPERTIES ('{name}' = '{value}')",
        ):
            error = refused(acid, statement, "INVALID_PROPERTY_VALUE")
            assert name in error.message and missing in error.message, error
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('acidsql.key' = 'ID, P', 'acidsql.cdc.keys' = 'P')")


@needs("keeps_keys")
def test_a_column_that_the_foreign_key_of_a_table_refers_to_keeps_its_name(acid):
    acid.sql("CREATE TABLE t (a INT, b INT, c INT, "
             "CONSTRAINT own FOREIGN KEY (a) REFERENCES t (c))")  # fmt: skip
    acid.sql("CREATE DATABASE other")
    acid.sql("CREATE TABLE other.u (x INT, "
             "CONSTRAINT fk FOREIGN KEY (x) REFERENCES default.t (b))")  # fmt: skip
    for column, words in {"b": ("fk", "other.u"), "c": ("own",), "a": ("own",)}.items():
        error = refused(
            acid, f"ALTER TABLE t RENAME COLUMN {column} TO z", "NOT_SUPPORTED_CHANGE_COLUMN"
        )
        assert all(word in error.message for word in words), error
    acid.sql("ALTER TABLE other.u DROP CONSTRAINT fk")
    acid.sql("ALTER TABLE t RENAME COLUMN b TO z")


VIEWS = {
    "SELECT id FROM t": True,
    "SELECT * FROM default.t": True,
    "SELECT x.ID FROM t x JOIN u ON x.v = u.v": True,
    "SELECT v FROM u WHERE EXISTS (SELECT 1 FROM t WHERE id = 1)": True,
    "SELECT v FROM t": False,
    "SELECT v AS id FROM t": False,
    "SELECT 'id' AS text FROM t": False,
    "SELECT id FROM u": False,
    "WITH t AS (SELECT id FROM u) SELECT id FROM t": False,
}  # fmt: skip


def test_a_column_that_a_view_names_keeps_its_name(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("CREATE TABLE u (id INT, v STRING)")
    acid.sql("CREATE DATABASE other")
    for query, names_column in VIEWS.items():
        acid.sql(f"CREATE VIEW w AS {query}")
        acid.sql("ALTER VIEW w RENAME TO other.w")
        if names_column:
            error = refused(
                acid, "ALTER TABLE t RENAME COLUMN id TO n", "NOT_SUPPORTED_CHANGE_COLUMN", "id"
            )
            assert "the view other.w" in error.message
            acid.sql("ALTER TABLE t CHANGE COLUMN id id INT COMMENT 'may change'")
        else:
            acid.sql("ALTER TABLE t RENAME COLUMN id TO n")
            acid.sql("SELECT * FROM other.w").collect()
            acid.sql("ALTER TABLE t RENAME COLUMN n TO id")
        acid.sql("DROP VIEW other.w")


def test_what_was_counted_of_a_column_is_shown_under_its_new_name(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "5, 'b'")
    acid.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
    acid.sql("ALTER TABLE t RENAME COLUMN id TO n")
    acid.sql("ALTER TABLE t RENAME COLUMN v TO id")
    found = dict(tuple(row) for row in acid.sql("DESCRIBE EXTENDED t n").collect())
    assert (found["min"], found["max"]) == ("1", "5")
    found = dict(tuple(row) for row in acid.sql("DESCRIBE EXTENDED t id").collect())
    assert found["distinct_count"] == "2"
    assert found["min"] is None or "1" not in found["min"]


# ── AUTO CDC ─────────────────────────────────────────────────────────────────────────────────


@needs("keeps_state_tables")
def test_auto_cdc_goes_on_after_its_key_and_its_order_have_other_names(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, ts INT) TBLPROPERTIES ('acidsql.cdc.keys' = 'id')")

    def apply(key, order, *records):
        values = ", ".join(map(str, records))
        (counted,) = acid.sql(
            f"AUTO CDC INTO t FROM (SELECT * FROM VALUES {values} AS s ({key}, v, {order}, op)) "
            f"APPLY AS DELETE WHEN op = 'd' SEQUENCE BY {order} COLUMNS * EXCEPT (op)"
        ).collect()
        return counted

    apply("id", "ts", (1, "a", 5, "u"), (2, "b", 5, "d"))
    acid.sql("ALTER TABLE t RENAME COLUMN id TO sequence")
    acid.sql("ALTER TABLE t CHANGE COLUMN ts `at` INT")
    assert acid.sql("DESCRIBE t__acidsql_cdc").collect()[0].col_name == "sequence"
    counted = apply("sequence", "`at`", (1, "late", 4, "u"), (2, "late", 4, "u"), (3, "c", 1, "u"))
    assert counted.num_stale_records == 2
    assert table(acid) == [(1, "a", 5), (3, "c", 1)]
    assert properties(acid)["acidsql.cdc.keys"] == "sequence"


@needs("keeps_state_tables")
def test_auto_cdc_of_versions_goes_on_after_a_column_has_another_name(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, __START_AT INT, __END_AT INT)")

    def apply(key, value, *records):
        values = ", ".join(map(str, records))
        acid.sql(
            f"AUTO CDC INTO t FROM (SELECT * FROM VALUES {values} AS s ({key}, {value}, ts)) "
            f"KEYS ({key}) SEQUENCE BY ts COLUMNS * EXCEPT (ts) STORED AS SCD TYPE 2"
        )

    apply("id", "v", (1, "a", 1), (1, "c", 3))
    acid.sql("ALTER TABLE t RENAME COLUMN v TO w")
    acid.sql("ALTER TABLE t RENAME COLUMN id TO deleted")
    apply("deleted", "w", (1, "b", 2))
    assert table(acid) == [(1, "a", 1, 2), (1, "b", 2, 3), (1, "c", 3, None)]
    for name in ("__start_at", "__END_AT"):
        with pytest.raises(AcidSqlError, match="AUTO CDC itself") as caught:
            acid.sql(f"ALTER TABLE t RENAME COLUMN {name} TO other")
        assert caught.value.condition == "NOT_SUPPORTED_CHANGE_COLUMN"
