"""RESTORE and REVERT TRANSACTION, against a model that remembers every version."""

from __future__ import annotations

import pytest
from histories import History
from kit import fill, ordered, refused, rows
from over_hive import beside, needs

from acidsql.errors import (
    SnapshotTooOldError,
    TxnError,
    UnsupportedError,
    VersionNotFoundError,
    WriteConflictError,
)

pytestmark = [pytest.mark.spark, needs("keeps_versions")]


def test_what_was_undone_is_as_before_and_an_undo_can_be_undone(acid):
    acid.sql("CREATE TABLE t (id INT, v INT) PARTITIONED BY (p INT)")
    history = History(acid, 5)
    for _ in range(5):
        history.write()
    expected = {number: ordered(found) for number, found in history.versions.items()}
    *_, before, last = sorted(expected)
    last_txn = acid.history("t").where(f"version = {last}").first().txnId
    acid.sql(f"REVERT TRANSACTION {last_txn}")
    assert rows(acid, "SELECT * FROM t") == expected[before]
    reverted = acid.last
    acid.sql(f"REVERT TRANSACTION {reverted.txn_id}")
    assert rows(acid, "SELECT * FROM t") == expected[last]
    chosen = sorted(expected)[2]
    acid.sql(f"RESTORE TABLE t TO VERSION AS OF {chosen}")
    assert rows(acid, "SELECT * FROM t") == expected[chosen]
    acid.sql(f"RESTORE t VERSION AS OF {reverted.counts[0].write_id}")
    assert rows(acid, "SELECT * FROM t") == expected[before]
    assert [one.operation for one in acid.history("t", 4).collect()] == [
        "RESTORE", "RESTORE", "REVERT TRANSACTION", "REVERT TRANSACTION",
    ]  # fmt: skip


def test_only_rows_that_differ_are_written(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "2, 'b'", "3, 'c'")
    acid.sql("UPDATE t SET v = 'x' WHERE id = 1")
    kept = acid.table("t", row_id=True).where("id > 1").collect()
    acid.sql("RESTORE TABLE t TO VERSION AS OF 1")
    assert (acid.last.counts[0].inserted, acid.last.counts[0].deleted) == (1, 1)
    assert sorted(acid.table("t", row_id=True).where("id > 1").collect()) == sorted(kept)
    acid.sql("RESTORE TABLE t TO VERSION AS OF 3")
    assert acid.last.counts[0].affected == 0


def test_a_transaction_is_reverted_in_all_its_tables_beside_another_writer(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "2, 'b'")
    fill(acid, "u (id INT) PARTITIONED BY (p STRING)", "1, 'x'")
    fill(acid, "dropped (id INT)", "1")
    with acid.transaction():
        acid.sql("DELETE FROM dropped")
        acid.sql("UPDATE t SET v = 'wrong' WHERE id = 1")
        acid.sql("INSERT INTO u VALUES (2, 'new')")
        acid.sql("DELETE FROM u WHERE id = 1")
    wrong = acid.last.txn_id
    acid.sql("DROP TABLE dropped")
    with beside(acid, compactor="off") as other:
        other.sql("UPDATE t SET v = 'right' WHERE id = 2")
        other.sql("BEGIN")
        other.sql("INSERT INTO t VALUES (3, 'open')")
        acid.sql("BEGIN")
        acid.sql(f"REVERT TRANSACTION {wrong}")
        acid.sql("SAVEPOINT s")
        acid.sql("DELETE FROM u")
        acid.sql("ROLLBACK TO s")
        other.sql("COMMIT")
        acid.sql("COMMIT")
    assert rows(acid, "SELECT * FROM t") == [(1, "a"), (2, "right"), (3, "open")]
    assert rows(acid, "SELECT * FROM u") == [(1, "x")]


def test_rows_that_were_changed_again_are_conflicts(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "2, 'b'", "3, 'c'")
    acid.sql("UPDATE t SET v = 'wrong' WHERE id < 3")
    wrong = acid.last.txn_id
    acid.sql("UPDATE t SET v = 'later' WHERE id = 2")
    before = rows(acid, "SELECT * FROM t")
    with pytest.raises(TxnError, match="1 by version 3 .UPDATE by") as caught:
        acid.sql(f"REVERT TRANSACTION {wrong}")
    assert caught.value.condition == "REVERT_CONFLICT"
    with pytest.raises(TxnError, match=r"acidsql\.key"):
        acid.sql(f"REVERT TRANSACTION {wrong} SKIP CONFLICTS")
    assert rows(acid, "SELECT * FROM t") == before
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('acidsql.key' = 'id')")
    acid.sql(f"REVERT TRANSACTION {wrong} SKIP CONFLICTS")
    assert rows(acid, "SELECT * FROM t") == [(1, "a"), (2, "later"), (3, "c")]


@pytest.fixture
def keyed(acid):
    """A table with two rows under NULL keys and three with a key, which is a property."""
    fill(acid, "t (id INT, v STRING) TBLPROPERTIES ('acidsql.key' = 'id')", "1, 'a'", "2, 'b'",
         "3, 'c'", "NULL, 'n'")  # fmt: skip
    return acid


def _revert_skipping(acid, txn_id):
    acid.sql(f"REVERT TRANSACTION {txn_id} SKIP CONFLICTS")
    return rows(acid, "SELECT * FROM t")


def test_a_conflict_under_a_null_key_is_skipped_as_any_other(keyed):
    keyed.sql("UPDATE t SET v = 'wrong' WHERE id IS NULL OR id = 1")
    wrong = keyed.last.txn_id
    keyed.sql("UPDATE t SET v = 'later' WHERE id IS NULL")
    assert _revert_skipping(keyed, wrong) == ordered(
        [(1, "a"), (2, "b"), (3, "c"), (None, "later")]
    )


@pytest.mark.parametrize(
    ("wrong", "later", "reason"),
    [
        ("UPDATE t SET id = 9 WHERE id = 1", "UPDATE t SET v = 'later' WHERE id = 9", "id = 9"),
        # The row of key 2 is in the place of that of key 1: nothing says so but the missing 1.
        ("UPDATE t SET id = id + 1", "UPDATE t SET v = 'later' WHERE id = 2", "another key"),
        ("UPDATE t SET id = 1, v = 'x' WHERE id < 3", "DELETE FROM t WHERE v = 'x'", "id = 1"),
        ("UPDATE t SET id = NULL WHERE id = 1", "DELETE FROM t WHERE v = 'a'", "id = NULL"),
    ],
)
def test_skipped_conflicts_whose_replaced_rows_nothing_tells_are_refused(
    keyed, wrong, later, reason
):
    keyed.sql(wrong)
    wrong_txn = keyed.last.txn_id
    keyed.sql(later)
    before = rows(keyed, "SELECT * FROM t")
    with pytest.raises(TxnError, match=reason) as caught:
        _revert_skipping(keyed, wrong_txn)
    assert caught.value.condition == "REVERT_CONFLICT"
    assert rows(keyed, "SELECT * FROM t") == before


def test_what_a_merge_inserted_is_skipped_beside_what_it_updated(keyed):
    keyed.sql(
        "MERGE INTO t USING (SELECT * FROM VALUES (1, 'x'), (8, 'y'), (9, 'z') AS s (id, v)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    wrong = keyed.last.txn_id
    keyed.sql("UPDATE t SET v = 'later' WHERE id = 9")
    assert _revert_skipping(keyed, wrong) == ordered(
        [(1, "a"), (2, "b"), (3, "c"), (9, "later"), (None, "n")]
    )


def test_a_revert_of_a_revert_brings_no_row_back_beside_its_twin(keyed):
    keyed.sql("UPDATE t SET id = 9 WHERE id = 1")
    keyed.sql(f"REVERT TRANSACTION {keyed.last.txn_id}")
    reverted = keyed.last.txn_id
    keyed.sql("UPDATE t SET v = 'later' WHERE id = 1")
    with pytest.raises(TxnError, match="id = 1"):
        _revert_skipping(keyed, reverted)


def test_a_second_revert_does_not_double_the_rows_that_came_back(acid):
    fill(acid, "t (id INT)", "1", "2")
    acid.sql("DELETE FROM t WHERE id = 1")
    deleted = acid.last.txn_id
    acid.sql(f"/* back */ revert transaction {deleted};")
    first = acid.last.txn_id
    for again in (f"REVERT TRANSACTION {deleted}", f"REVERT TRANSACTION {deleted} SKIP CONFLICTS"):
        with pytest.raises(TxnError, match=f"already in default.t, by transaction {first}"):
            acid.sql(again)
    assert rows(acid, "SELECT * FROM t") == [(1,), (2,)]
    acid.sql(f"REVERT TRANSACTION {first}")
    assert rows(acid, "SELECT * FROM t") == [(2,)]
    acid.sql("BEGIN")
    acid.sql("SAVEPOINT s")
    for _ in range(2):
        acid.sql(f"REVERT TRANSACTION {deleted}")
        with pytest.raises(TxnError, match="already"):
            acid.sql(f"REVERT TRANSACTION {deleted}")
        acid.sql("ROLLBACK TO s")
    acid.sql(f"REVERT TRANSACTION {deleted}")
    acid.sql("COMMIT")
    assert rows(acid, "SELECT * FROM t") == [(1,), (2,)]


def test_a_second_revert_is_refused_however_long_the_comment_before_the_first(acid):
    """The history keeps the first 1,024 letters of a statement: here the comment alone, and all but
    the last digit of the number, which may be another transaction's."""
    fill(acid, "t (id INT)", "1", "2")
    for kept in (0, -1):
        acid.sql("DELETE FROM t WHERE id = 1")
        revert = f"REVERT TRANSACTION {acid.last.txn_id}"
        shown = revert[:kept] if kept else ""
        acid.sql(f"/* {'x' * (1024 - len(shown) - 6)} */{revert}")
        assert acid.history("t", 1).first().statement.endswith(f" */{shown}")
        with pytest.raises(TxnError, match=f"by transaction {acid.last.txn_id}"):
            acid.sql(revert)
        assert rows(acid, "SELECT * FROM t") == [(1,), (2,)]


def test_a_writer_of_the_same_rows_conflicts_with_an_undo(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'")
    acid.sql("UPDATE t SET v = 'x'")
    with beside(acid, compactor="off") as other:
        other.sql("BEGIN")
        assert rows(other, "SELECT v FROM t") == [("x",)]
        acid.sql("RESTORE TABLE t TO VERSION AS OF 1")
        with pytest.raises(WriteConflictError):
            other.sql("UPDATE t SET v = 'y'")
            other.sql("COMMIT")
    assert rows(acid, "SELECT * FROM t") == [(1, "a")]


def test_what_cannot_be_undone_is_refused_with_a_reason(acid):
    fill(acid, "t (id INT)", "1")
    acid.sql("CREATE TABLE plain (id INT) TBLPROPERTIES ('transactional_properties'='insert_only')")
    acid.sql("INSERT INTO plain VALUES (1)")
    with pytest.raises(UnsupportedError, match="insert-only"):
        acid.sql("RESTORE TABLE plain TO VERSION AS OF 0")
    with pytest.raises(VersionNotFoundError, match="no version 9"):
        acid.sql("RESTORE TABLE t TO VERSION AS OF 9")
    refused(acid, "REVERT TRANSACTION 999", "VERSION_NOT_FOUND", "999")
    refused(acid, "RESTORE t VERSION AS OF x", "PARSE_SYNTAX_ERROR", "x")
    with acid.snapshot(), pytest.raises(TxnError):
        acid.sql("RESTORE TABLE t TO VERSION AS OF 0")
    acid.sql("DELETE FROM t")
    deleted = acid.last.txn_id
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    acid.close()
    with beside(acid, compactor="off") as other:
        other.clean()
        with pytest.raises(SnapshotTooOldError, match="oldest version that can be read"):
            other.sql(f"REVERT TRANSACTION {deleted}")
        assert rows(other, "SELECT * FROM t") == []
