"""RETURNING: the rows that a statement has changed, compared with a dictionary of the rows."""

from __future__ import annotations

import random
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.orc as orc
import pytest
from kit import clean, directories, fill, ordered, refused, rows, table
from over_hive import needs

from acidsql.errors import SnapshotTooOldError, SqlSyntaxError

pytestmark = pytest.mark.spark

Rows = dict[int, tuple[Any, ...]]


@pytest.mark.parametrize("is_fast", [True, False], ids=["fast", "by jobs"])
def test_what_is_returned_is_the_difference_between_the_states(acid, is_fast):
    """Random statements, alone and in transactions, with compactions between them."""
    if not is_fast:
        acid.sql("SET acidsql.fast.paths=false")
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT)")
    model: Rows = {}
    chance = random.Random(11)
    for turn in range(3):
        with acid.transaction():
            returned = [_statement(acid, model, chance) for _ in range(4)]
            for found, before, after in returned:  # later statements have changed the rows again
                assert _images(found) == _difference(before, after)
        found, before, after = _statement(acid, model, chance)
        if turn == 1:
            acid.compact("t", wait=acid.metastore.abilities.can_work)
        assert _images(found) == _difference(before, after)
        assert table(acid) == ordered(model.values())


def _statement(acid: Any, model: Rows, chance: random.Random) -> tuple[Any, Rows, Rows]:
    """Run a statement. The frame of its old and new rows, the model's rows before and after."""
    before, third = dict(model), chance.randrange(3)
    some = [key for key in model if key % 3 == third]
    kind = chance.choice(["insert", "update", "delete", "merge"]) if some else "insert"
    news = {max(model, default=0) + i: chance.randrange(3) for i in range(1, 4)}
    match kind:
        case "insert":
            values = ", ".join(f"({key}, 'i', {p})" for key, p in news.items())
            text = f"INSERT INTO t SELECT * FROM VALUES {values}"
            model.update({key: (key, "i", p) for key, p in news.items()})
        case "update":
            text = f"UPDATE t SET v = concat(v, 'u') WHERE id % 3 = {third}"
            model.update({key: (key, model[key][1] + "u", model[key][2]) for key in some})
        case "delete":
            text = f"DELETE FROM t WHERE id % 3 = {third}"
            for key in some:
                del model[key]
        case _:
            gone, *changed = some
            new = max(news)
            source = ", ".join(f"({key})" for key in [*some, new])
            text = (
                f"MERGE INTO t USING (VALUES {source}) AS s(id) ON t.id = s.id "
                f"WHEN MATCHED AND t.id = {gone} THEN DELETE "
                "WHEN MATCHED THEN UPDATE SET v = concat(v, 'm') "
                "WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'n', 1)"
            )
            del model[gone]
            model.update({key: (key, model[key][1] + "m", model[key][2]) for key in changed})
            model[new] = (new, "n", 1)
    found = acid.sql(
        f"{text} RETURNING struct(old.*) AS was, struct(new.*) AS now, struct(*) AS is, "
        "old.row__id IS NOT NULL AS had, new.row__id IS NOT NULL AS has"
    )
    assert len(_difference(before, model)) == acid.last.counts[0].affected
    return found, before, dict(model)


def _images(found: Any) -> dict[int, tuple[Any, Any]]:
    images = {}
    for row in found.collect():
        old, new = (tuple(row[i]) if there else None for i, there in ((0, row.had), (1, row.has)))
        assert tuple(row["is"]) == (new or old)
        assert row["is"].id not in images
        images[row["is"].id] = (old, new)
    return images


def _difference(before: Rows, after: Rows) -> dict[int, tuple[Any, Any]]:
    return {
        key: (before.get(key), after.get(key))
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    }


def test_names_mean_what_they_mean_in_postgresql(acid):
    fill(acid, "t (id INT, price DECIMAL(8,2), c CHAR(3), old STRING)", "1, 2.5, 'a', 'x'")
    assert rows(
        acid, "INSERT INTO t VALUES (2, 3, 'b', NULL) RETURNING id, row__id.rowid, t.C"
    ) == [(2, 0, "b  ")]
    # The column hides the row of this name; WITH gives the row another one.
    found = acid.sql(
        "UPDATE t x SET price = price * :by WHERE id = 1 "
        "RETURNING WITH (OLD AS was) was.price, new.price AS now, old, x.*, was.row__id.writeid",
        {"by": 2},
    )
    assert found.columns == ["price", "now", "old", "id", "price", "c", "old", "writeid"]
    assert [tuple(row) for row in found.collect()] == [
        (Decimal("2.50"), Decimal(5), "x", 1, Decimal(5), "a  ", "x", 1)
    ]
    merge = (
        "MERGE INTO t USING (SELECT explode(array(1, 2, 3)) AS id) AS s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET c = '?' "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) "
        "RETURNING merge_action(), t.id, price, * EXCEPT (id, price, old), new.c"
    )
    found = acid.sql(merge)
    assert found.columns == ["merge_action", "id", "price", "c", "c"]
    assert ordered(found.collect()) == [
        ("DELETE", 1, Decimal(5), "a  ", None),
        ("INSERT", 3, None, None, None),
        ("UPDATE", 2, Decimal(3), "?  ", "?  "),
    ]
    deleted = (
        "DELETE FROM t WHERE id > ? RETURNING default.t.id + ? AS n, hash(*) = hash(t.*), new.id"
    )
    assert rows(acid, deleted, [2, 10]) == [(13, True, None)]
    assert rows(acid, "UPDATE t SET c = 'z' WHERE id = 77 RETURNING *, old") == []


def test_old_values_are_read_however_they_are_named_and_structs_have_stars(acid):
    fill(acid, "t (id INT, s STRUCT<a: INT, `b.c`: STRING>)", "1, named_struct('a', 2, 'b.c', 'x')")
    found = acid.sql(
        "UPDATE t SET id = id + 1 RETURNING IDENTIFIER('old.id'), id, s.*, old.s.*, default.t.s.*, "
        "transform(array(1), x -> x + id)"
    )
    assert [tuple(row) for row in found.collect()] == [(1, 2, *[2, "x"] * 3, [3])]
    inside = "transform(array(1), x -> (SELECT max(id) FROM t))"
    refused(acid, f"DELETE FROM t RETURNING {inside}", "UNSUPPORTED_FEATURE.RETURNING", inside)


def test_returning_is_a_clause_only_in_its_place(acid):
    fill(acid, "t (id INT, returning INT)", "1, 2")
    acid.sql("UPDATE t SET returning = returning + 1 WHERE returning = 2")
    acid.sql("INSERT INTO t SELECT id + 1, returning FROM t returning")
    assert table(acid) == [(1, 3), (2, 3)]
    found = acid.sql("INSERT INTO t SELECT 3 returning, 4 RETURNING returning * 2, `returning`")
    assert [tuple(row) for row in found.collect()] == [(8, 4)]


def test_a_wrong_item_is_refused_before_anything_is_done(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'")
    for items, condition, at in (
        ("nothing", "UNRESOLVED_COLUMN", "nothing"),
        ("count(*)", "MISSING_GROUP_BY", None),
        ("(SELECT max(id) FROM t)", "UNSUPPORTED_FEATURE.RETURNING", None),
        ("merge_action()", "UNRESOLVED_ROUTINE", "merge_action()"),
        ("WITH (OLD AS id) id.v", "AMBIGUOUS_REFERENCE", None),
        ("WITH (OLD AS a, NEW AS A) a.v", "AMBIGUOUS_REFERENCE", None),
        ("id, id + other", "UNRESOLVED_COLUMN", "other"),
        ("* EXCEPT (old)", "UNRESOLVED_COLUMN", "old"),
        ("t.* EXCEPT (v, `Row__Id`)", "UNRESOLVED_COLUMN", "`Row__Id`"),
        ("struct(old.* EXCEPT (row__id))", "UNRESOLVED_COLUMN", "row__id"),
        ("* EXCEPT (nothing)", "UNRESOLVED_COLUMN", None),
    ):
        error = refused(acid, f"DELETE FROM t RETURNING {items}", condition, at)
        assert "__acidsql" not in str(error)
    merge = "MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN DELETE RETURNING s.id"
    refused(acid, merge, "UNSUPPORTED_FEATURE.RETURNING", at="s.id")
    assert table(acid) == [(1, "a")]


def test_rows_are_returned_before_commit_and_not_after_a_rollback(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "2, 'b'")
    with acid.transaction() as transaction:
        old = acid.sql("DELETE FROM t WHERE id = 1 RETURNING v")
        assert ordered(old.collect()) == [("a",)]
        transaction.rollback()
    with pytest.raises(SnapshotTooOldError):
        old.collect()
    with acid.transaction() as transaction:
        found = acid.sql("UPDATE t SET v = 'x' RETURNING old.v, id")
        assert ordered(found.collect()) == [("a", 1), ("b", 2)]
        again = acid.sql("UPDATE t SET v = 'y' WHERE id = 1 RETURNING old.v, new.v")
        gone = acid.sql("DELETE FROM t RETURNING v")
        assert ordered(gone.collect()) == [("x",), ("y",)]
        transaction.rollback()
    for one in (found, again, gone):
        with pytest.raises(SnapshotTooOldError):
            one.collect()
    assert table(acid) == [(1, "a"), (2, "b")]


@needs("can_work")
def test_a_lazy_frame_outlives_compaction_and_cleaning(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "2, 'b'")
    found = acid.sql("UPDATE t SET v = 'x' WHERE id = 1 RETURNING old.v, new.v AS now")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    clean(acid)
    assert [tuple(row) for row in found.collect()] == [("a", "x")]


@needs("can_work")
def test_only_a_statement_that_returns_old_and_new_values_writes_a_hidden_file(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "2, 'b'")
    root = Path(acid.warehouse) / "t"
    acid.sql("UPDATE t SET v = 'x' RETURNING v")
    acid.sql("DELETE FROM t WHERE id = 2 RETURNING old.v")
    assert not list(root.rglob("_acidsql_replaced*"))
    acid.sql("UPDATE t SET v = 'y' RETURNING old.v")
    (hidden,) = root.rglob("_acidsql_replaced*")
    assert [path.name for path in sorted(hidden.parent.iterdir())] == [
        "_acidsql_replaced_00000", "_orc_acid_version", "bucket_00000",
    ]  # fmt: skip
    assert orc.read_table(str(hidden.parent / "bucket_00000")).num_rows == 1
    seen = acid.files("t").where("file LIKE '_acidsql%'").collect()
    assert not seen or not seen[0].problem
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    base = next(name for name in directories(acid) if name.startswith("base"))
    assert not list((root / base).rglob("_acidsql_replaced*"))
    assert table(acid) == [(1, "y")]


def test_insert_only_tables_and_overwrites_return_their_new_rows(acid):
    fill(acid, "t (id INT, at TIMESTAMP) PARTITIONED BY (p STRING)", "1, NULL, 'a'")
    overwrite = (
        "INSERT OVERWRITE t VALUES (2, TIMESTAMP'2024-03-31 02:30:00', 'a') RETURNING *, old.id"
    )
    assert rows(acid, overwrite) == [(2, datetime(2024, 3, 31, 2, 30), "a", None)]
    acid.sql(
        "CREATE TABLE m (id INT) PARTITIONED BY (p STRING) "
        "TBLPROPERTIES ('transactional_properties'='insert_only')"
    )
    assert rows(acid, "INSERT INTO m VALUES (1, 'a'), (2, '') RETURNING id, p") == [
        (1, "a"), (2, None),
    ]  # fmt: skip
    refused(
        acid, "INSERT INTO m VALUES (1, 'a') RETURNING row__id", "UNRESOLVED_COLUMN", at="row__id"
    )


@needs("keeps_streams")
def test_a_replay_returns_no_rows(acid):
    fill(acid, "t (id INT)")
    for times in (1, 0):
        found = acid.sql("INSERT INTO t VALUES (1) RETURNING id", txn_app_id="a", txn_version=1)
        assert found.columns == ["id"]
        assert found.count() == times
    assert table(acid) == [(1,)]


def test_the_receipt_has_the_counts(acid):
    fill(acid, "t (id INT)", "1", "2")
    found = acid.sql("DELETE FROM t RETURNING id")
    assert acid.last.returns_rows
    assert acid.last.counts[0].deleted == found.count() == 2
    with pytest.raises(SqlSyntaxError):
        acid.sql("DELETE FROM t RETURNING id,")
