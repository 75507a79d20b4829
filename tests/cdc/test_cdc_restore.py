"""RESTORE and REVERT of targets of AUTO CDC: what was undone can be applied again."""

from __future__ import annotations

import pytest
from kit_cdc import Change, deleted, live, put

from acidsql.errors import VersionNotFoundError
from acidsql.metastore.embedded import EmbeddedMetastore

pytestmark = [pytest.mark.spark, pytest.mark.needs("keeps_versions")]

CDC = (
    "AUTO CDC INTO {} FROM s KEYS (id) APPLY AS DELETE WHEN op = 'd' "
    "SEQUENCE BY struct(ts, batch) COLUMNS * EXCEPT (op, ts, batch)"
)
FIRST = [Change(1, "a", 1), Change(2, "b", 1)]
LATER = [Change(1, "c", 5), Change(2, None, 5, op="d")]
BEFORE, AFTER = {1: ("a", "x"), 2: ("b", "x")}, {1: ("c", "x")}


@pytest.fixture
def t(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, p STRING)")
    return acid


def rows(acid, query):
    """The rows of a query, sorted."""
    return sorted((tuple(row) for row in acid.sql(query).collect()), key=repr)


def apply(acid, changes, table="t"):
    """Apply records. Returns the version of the target."""
    put(acid, "s", changes)
    acid.sql(CDC.format(table))
    return acid.last.counts[0].write_id


@pytest.mark.parametrize("way", ["VERSION", "TIMESTAMP", "renamed"])
def test_records_have_effect_again_after_their_target_was_restored(t, way):
    first = apply(t, FIRST)
    at = t.history("t", 1).first().timestamp
    apply(t, [Change(9, None, 7, op="d")])  # the state table alone changes
    later = apply(t, LATER)
    assert live(t) == AFTER and deleted(t) == {2, 9}
    table = "t"
    if way == "renamed":
        t.sql("ALTER TABLE t RENAME TO u")
        table = "u"
    when = f"TIMESTAMP AS OF '{at}'" if way == "TIMESTAMP" else f"VERSION AS OF {first}"
    t.preview(f"RESTORE TABLE {table} TO {when}").collect()
    t.sql(f"RESTORE TABLE {table} TO {when}")
    assert [one.table for one in t.last.counts] == [
        f"default.{table}", f"default.{table}__acidsql_cdc",
    ]  # fmt: skip
    assert live(t, table) == BEFORE and deleted(t, table) == set()
    apply(t, LATER, table)
    assert live(t, table) == AFTER and deleted(t, table) == {2}
    t.sql(f"RESTORE TABLE {table} TO VERSION AS OF {later}")
    assert live(t, table) == AFTER and deleted(t, table) == {2, 9}
    t.sql(f"REVERT TRANSACTION {t.last.txn_id}")
    assert live(t, table) == AFTER and deleted(t, table) == {2}


def test_before_its_first_auto_cdc_a_target_knows_no_order(t):
    t.sql("INSERT INTO t VALUES (1, 'own', 'x')")
    before = t.last.counts[0].write_id
    apply(t, LATER)
    assert live(t) == AFTER
    t.sql(f"RESTORE TABLE t TO VERSION AS OF {before}")
    assert rows(t, "SELECT * FROM t__acidsql_cdc") == []
    apply(t, [Change(1, "b", 2)])
    assert live(t) == {1: ("b", "x")} and deleted(t) == set()


def test_only_the_restored_one_of_several_targets_goes_back(t):
    t.sql("CREATE TABLE u (id INT, v STRING, p STRING)")
    for table in ("t", "u"):
        apply(t, [], table)
    with t.transaction():
        first = apply(t, FIRST)
        apply(t, FIRST, "u")
    with t.transaction():
        apply(t, LATER, "u")
        apply(t, LATER)
    t.sql(f"RESTORE TABLE t TO VERSION AS OF {first}")
    assert (live(t), deleted(t)) == (BEFORE, set())
    assert (live(t, "u"), deleted(t, "u")) == (AFTER, {2})


def test_the_versions_of_a_target_with_history_go_back_with_its_state(acid):
    acid.sql(
        "CREATE TABLE t (id INT, v STRING, p STRING, __start_at INT, __end_at INT) "
        "TBLPROPERTIES ('acidsql.cdc.keys' = 'id')"
    )
    text = CDC.format("t").replace("struct(ts, batch)", "ts") + " STORED AS SCD TYPE 2"
    seen = []
    for changes in (FIRST, LATER):
        put(acid, "s", changes)
        acid.sql(text)
        seen.append((rows(acid, "SELECT * FROM t"), rows(acid, "SELECT id FROM t__acidsql_cdc")))
    acid.sql(f"RESTORE TABLE t TO VERSION AS OF {acid.last.counts[0].write_id - 1}")
    assert rows(acid, "SELECT * FROM t") == seen[0][0]
    assert rows(acid, "SELECT id FROM t__acidsql_cdc") == seen[0][1]
    acid.sql(text)
    assert rows(acid, "SELECT * FROM t") == seen[1][0]


def test_a_version_whose_commit_was_forgotten_is_refused_with_its_state_table(t, monkeypatch):
    first = apply(t, FIRST)
    apply(t, LATER)
    noted = EmbeddedMetastore.versions
    monkeypatch.setattr(EmbeddedMetastore, "versions", lambda *args: noted(*args)[:1])
    with pytest.raises(VersionNotFoundError, match=r"acidsql\.txn\.history\.retention"):
        t.sql(f"RESTORE TABLE t TO VERSION AS OF {first}")
    assert live(t) == AFTER and deleted(t) == {2}
