"""Older versions of tables, against a model that remembers every version."""

from __future__ import annotations

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from histories import History, Rows
from kit import directories, fill, ordered, refused, rows, table
from over_hive import beside, needs, on_a_disk

from acidsql.errors import (
    CatalogError,
    SettingError,
    SnapshotTooOldError,
    SqlError,
    TxnError,
    VersionNotFoundError,
)
from acidsql.statements.context.time_travel import TimeTravel

pytestmark = [pytest.mark.spark, needs("keeps_versions")]


@pytest.fixture
def other(acid):
    """A second session on the same tables."""
    with beside(acid, compactor="off") as session:
        yield session


def at(acid: Any, versions: list[int], name: str = "t") -> dict[int, Rows]:
    """The rows of many versions, by one query."""
    branches = (f"SELECT {n} AS version, * FROM {name} VERSION AS OF {n}" for n in versions)
    found: dict[int, Rows] = {n: [] for n in versions}
    for number, *row in acid.sql(" UNION ALL ".join(branches)).collect():
        found[number].append(tuple(row))
    return {n: sorted(of_one) for n, of_one in found.items()}


def changes_lead_from_version_to_version(
    acid: Any, versions: dict[int, Rows], chance: random.Random, name: str = "t"
) -> None:
    """Each version's rows and the next one's changes make the next one's rows; so do the net
    changes of a longer range, in which no row id occurs twice."""
    first, *later = sorted(versions)
    if first > 0:
        with pytest.raises(SnapshotTooOldError, match="oldest version that can be read"):
            acid.changes(name, first)
    if not later:
        return
    found = acid.changes(name, first + 1).collect()
    assert {one._commit_version for one in found} <= set(later)
    state = Counter(versions[first])
    for number in later:
        change(state, [one for one in found if one._commit_version == number])
        assert sorted(state.elements()) == versions[number], number
    last = chance.choice(later)
    start = chance.choice([one for one in versions if one < last])
    net = acid.changes(name, start + 1, last, net=True).collect()
    assert len({(one.row__id, one.p) for one in net}) == len(net)
    kinds: dict[str, set[Any]] = {"insert": set(), "delete": set()}
    for row in net:
        kinds[row._change_type].add(row[: len(row) - 5])
    assert not kinds["insert"] & kinds["delete"], "a row that is the same in the end"
    state = Counter(versions[start])
    change(state, net)
    assert sorted(state.elements()) == versions[last], (start, last)


def change(state: Counter[tuple[Any, ...]], changes: list[Any]) -> None:
    """Change a multiset of rows."""
    for one in changes:
        state[one[: len(one) - 5]] += 1 if one._change_type == "insert" else -1
    assert min(state.values(), default=0) >= 0


def is_gone(acid: Any, version: int, name: str = "t") -> bool:
    try:
        acid.table(name, version=version)
    except SnapshotTooOldError as error:
        assert error.condition == "ACID_NOT_ENOUGH_HISTORY"
        assert "oldest version that can be read" in str(error)
        return True
    return False


# ── every version of random histories ────────────────────────────────────────────────────────


def test_every_version_shows_what_the_table_was(acid, other):
    acid.sql("CREATE TABLE t (id INT, v INT) PARTITIONED BY (p INT)")
    history, compacts = History(acid, 1), random.Random(1)
    for step in range(9):
        history.write()
        if step in (3, 6):
            kind = compacts.choice(["minor", "major"])
            acid.sql(f"ALTER TABLE t PARTITION (p = {step % 2}) COMPACT '{kind}' AND WAIT")
    assert at(acid, [*history.versions]) == history.versions
    changes_lead_from_version_to_version(acid, history.versions, compacts)
    # The files that were compacted are deleted, as soon as no session can need them.
    acid.close()
    other.clean()
    shows_what_is_kept(other, history)


@on_a_disk
def test_every_version_that_two_cleaners_at_once_keep_shows_what_the_table_was(acid, other):
    """The bytes are enough for a part of the history, so the oldest bases are gone."""
    kept = "'acidsql.history.retention' = '1h', 'acidsql.history.max.ratio' = '9'"
    acid.sql(f"CREATE TABLE t (id INT, v INT) PARTITIONED BY (p INT) TBLPROPERTIES ({kept})")
    history, compacts = History(acid, 2), {2: "major", 4: "minor", 5: "major", 7: "major"}
    for step in range(9):
        with beside(acid, compactor="off") as history.acid:  # its leases end with it
            history.write()
            if kind := compacts.get(step):
                history.acid.sql(f"ALTER TABLE t PARTITION (p = 0) COMPACT '{kind}' AND WAIT")
        if step in compacts:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda one: one.clean().count(), (acid, other)))
    newest_base = max(name for name in directories(acid, "t/p=0") if name.startswith("base"))
    assert 0 < min(available(other, history)) < int(newest_base.split("_")[1]) < 9
    shows_what_is_kept(other, history)


def shows_what_is_kept(acid: Any, history: History) -> None:
    """Check all versions and changes that can be read, and that all others are refused."""
    kept = available(acid, history)
    assert max(history.versions) in kept
    assert at(acid, [*kept]) == kept
    assert all(is_gone(acid, number) for number in history.versions if number not in kept)
    changes_lead_from_version_to_version(acid, kept, random.Random(1))
    told = {row.version: row.isAvailable for row in acid.history("t").collect()}
    # The compactions changed no row, so they have no version.
    assert told.pop(None, "missing") is None
    assert told == {number: number in kept for number in history.versions}


def available(acid: Any, history: History) -> dict[int, Rows]:
    """The versions that can be read, and their rows."""
    oldest = acid.metastore.oldest_version(acid._table("t").name)
    return {number: found for number, found in history.versions.items() if number >= oldest}


def test_what_a_major_compaction_has_replaced_is_kept_as_long_as_the_table_says(acid, other):
    fill(acid, "t (id INT)", "1")
    acid.sql("INSERT INTO t VALUES (2)")
    acid.sql("DELETE FROM t WHERE id = 1")
    kept = "'acidsql.history.retention' = '1h', 'acidsql.history.max.ratio' = '100'"
    acid.sql(f"ALTER TABLE t SET TBLPROPERTIES ({kept})")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    acid.close()
    assert other.clean().count() == 0
    assert at(other, [1, 2, 3]) == {1: [(1,)], 2: [(1,), (2,)], 3: [(2,)]}
    states = {(row.kind, row.state) for row in other.files("t").collect()}
    told = [
        (row.version, row.operation) for row in other.sql("DESCRIBE HISTORY t LIMIT 2").collect()
    ]
    assert told == [(None, "COMPACT MAJOR"), (3, "DELETE")]
    assert states == {("base", "visible"), ("delta", "history"), ("delete_delta", "history")}
    other.sql("ALTER TABLE t SET TBLPROPERTIES ('acidsql.history.retention' = '0s')")
    assert other.clean().count() == 3
    with pytest.raises(SnapshotTooOldError, match=r"is 3\. A greater acidsql\.history\.retention"):
        at(other, [2])


@needs("keeps_versions")
def test_a_table_that_was_made_again_after_a_rollback_can_be_read_at_its_first_version(acid):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("ROLLBACK")
    acid.sql("DROP TABLE t")
    acid.sql("CREATE TABLE t (id INT)")
    (first,) = acid.history("t").collect()
    assert first.isAvailable and first.operation == "CREATE TABLE"
    acid.sql("INSERT INTO t VALUES (2)")
    assert at(acid, [first.version, first.version + 1]) == {
        first.version: [],
        first.version + 1: [(2,)],
    }
    assert rows(acid, f'SELECT id FROM t VERSION AS OF "{first.version + 1}"') == [(2,)]


def test_a_minor_compaction_loses_no_version_and_a_major_one_only_older_ones(acid, other):
    fill(acid, "t (id INT)", "1")
    acid.sql("INSERT INTO t VALUES (2)")
    acid.sql("DELETE FROM t WHERE id = 1")
    versions = {0: [], 1: [(1,)], 2: [(1,), (2,)], 3: [(2,)]}
    acid.sql("ALTER TABLE t COMPACT 'minor' AND WAIT")
    acid.close()
    assert other.clean().count() == 3
    assert at(other, [*versions]) == versions
    with beside(other, compactor="off") as third:
        other.close()
        third.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
        third.sql("INSERT INTO t VALUES (4)")
        third.clean()
        assert [is_gone(third, number) for number in range(5)] == [True, True, True, False, False]
        assert at(third, [3, 4]) == {3: [(2,)], 4: [(2,), (4,)]}


def test_a_version_is_refused_if_its_files_vanish_while_they_are_listed(acid, other, monkeypatch):
    """The cleaner notes the oldest version, then deletes. The reader lists, then asks."""
    fill(acid, "t (id INT)", "1")
    acid.sql("INSERT INTO t VALUES (2)")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    acid.close()
    from acidsql.statements.queries import table_rows

    real = table_rows.read_rows

    def clean_first(*args: Any, **options: Any) -> Any:
        with beside(other, compactor="off") as cleaner:
            assert cleaner.clean().count() == 2
        return real(*args, **options)

    monkeypatch.setattr(table_rows, "read_rows", clean_first)
    other._runner.transactions.end_old_leases()
    assert is_gone(other, 1)


def test_a_dropped_partition_is_in_no_version(acid):
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1", "2, 2")
    acid.sql("ALTER TABLE t DROP PARTITION (p = 1)")
    assert is_gone(acid, 1)
    assert table(acid, "t VERSION AS OF 2") == table(acid) == [(2, 2)]
    (first, *_) = acid.history("t").collect()
    assert (first.version, first.operation) == (2, "DROP PARTITION")


def test_a_partition_that_is_dropped_while_an_older_transaction_is_open_hides_no_later_version(
    acid, other
):
    """The drop waits for writers that hold locks. A client may get its write id before them."""
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1", "2, 2")
    with other.transaction() as open_one:
        assert other.metastore.allocate_write_id(open_one.id, acid._table("t").name) == 2
        acid.sql("ALTER TABLE t DROP PARTITION (p = 1)")
        assert is_gone(acid, 1)
        assert table(acid, "t VERSION AS OF 3") == [(2, 2)]
        acid.sql("INSERT INTO t VALUES (4, 4)")
        assert [one.id for one in acid.changes("t", 4).collect()] == [4]


# ── two writers ──────────────────────────────────────────────────────────────────────────────


def test_a_time_shows_commits_in_their_order_a_version_write_ids_in_theirs(acid, other):
    fill(acid, "t (id INT)", "0")
    other.sql("BEGIN")
    other.sql("INSERT INTO t VALUES (2)")  # write id 2, which commits last
    acid.sql("INSERT INTO t VALUES (3)")
    with pytest.raises(VersionNotFoundError, match="is not committed"):
        acid.table("t", version=2)
    assert table(acid, "t VERSION AS OF 3") == [(0,), (3,)]
    between = datetime.now(UTC)
    other.sql("COMMIT")
    assert table(acid, "t VERSION AS OF 2") == [(0,), (2,)]
    assert table(acid, "t VERSION AS OF 3") == [(0,), (2,), (3,)]
    assert rows(acid, "SELECT * FROM t TIMESTAMP AS OF :at x", {"at": between}) == [(0,), (3,)]
    assert sorted(map(tuple, acid.table("t", timestamp=between).collect())) == [(0,), (3,)]
    third = acid.history("t").where("version = 3").first().txnId
    with acid.snapshot(txn_id=third):
        assert table(acid) == [(0,), (3,)]
    assert table(acid) == [(0,), (2,), (3,)]


def test_a_time_is_the_same_moment_whatever_a_timestamp_is_in_the_session(acid, conf):
    """Cast to a TIMESTAMP that is a wall clock, it was off by the zone's offset."""
    conf("spark.sql.session.timeZone", "Asia/Tokyo")
    fill(acid, "t (a INT)", "1")
    time.sleep(0.01)
    moment = datetime.now(UTC)
    time.sleep(0.01)
    acid.sql("INSERT INTO t VALUES (2)")
    text = moment.astimezone(ZoneInfo("Asia/Tokyo")).strftime("%Y-%m-%d %H:%M:%S.%f")
    local = moment.astimezone().replace(tzinfo=None)
    for clock in ("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"):
        conf("spark.sql.timestampType", clock)
        for when in (moment, text, local, moment.astimezone(ZoneInfo("America/New_York"))):
            assert ordered(acid.table("t", timestamp=when).collect()) == [(1,)]
        with acid.snapshot(timestamp=text):
            assert table(acid) == [(1,)]
        assert rows(acid, f"SELECT * FROM t TIMESTAMP AS OF '{text}'") == [(1,)]
        assert acid.changes("t", 1, moment).count() == 1


def test_a_transaction_sees_its_own_version_and_no_later_one(acid, other):
    fill(acid, "t (id INT)", "1")
    acid.sql("BEGIN")
    assert table(acid) == [(1,)]
    other.sql("INSERT INTO t VALUES (2)")
    with pytest.raises(VersionNotFoundError, match="newest one is 1"):
        acid.sql("SELECT * FROM t VERSION AS OF 2")
    acid.sql("INSERT INTO t VALUES (3)")
    assert table(acid, "t VERSION AS OF 3") == [(1,), (3,)]
    assert table(acid, "t VERSION AS OF 1") == [(1,)]
    acid.sql("ROLLBACK")
    with pytest.raises(VersionNotFoundError, match="was rolled back"):
        acid.sql("SELECT * FROM t VERSION AS OF 3")


def test_a_time_does_not_show_what_the_transaction_itself_has_changed(acid):
    fill(acid, "t (id INT)", "1", "2")
    since = _after(acid, "t", 1)
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (3)")
    acid.sql("DELETE FROM t WHERE id = 1")
    assert table(acid) == [(2,), (3,)]
    at_time = "SELECT * FROM t TIMESTAMP AS OF :at"
    assert rows(acid, at_time, {"at": since}) == [(1,), (2,)]
    acid.sql("COMMIT")
    assert rows(acid, at_time, {"at": since}) == [(1,), (2,)]


def test_a_moment_shows_no_commit_that_got_the_number_of_a_dropped_table_s(
    acid, other, monkeypatch
):
    """SQLite gives the highest number again after its row is gone."""
    fill(acid, "t (id INT)", "1")
    fill(acid, "u (id INT)", "1")
    since, real = _after(acid, "u", 1), TimeTravel.resolve_for_all_tables

    def then_others_come(*args):
        found = real(*args)
        other.sql("DROP TABLE u")
        other.sql("INSERT INTO t VALUES (2)")
        return found

    monkeypatch.setattr(TimeTravel, "resolve_for_all_tables", then_others_come)
    with acid.snapshot(timestamp=since):
        assert table(acid) == [(1,)]
    assert table(acid) == [(1,), (2,)]


def test_all_tables_are_shown_as_of_one_moment(acid):
    fill(acid, "t (id INT)", "1")
    fill(acid, "u (id INT)", "1")
    with acid.transaction() as both:
        acid.sql("INSERT INTO t VALUES (2)")
        acid.sql("INSERT INTO u VALUES (2)")
    acid.sql("DELETE FROM u")
    fill(acid, "late (id INT)", "9")
    for when in ({"txn_id": both.id}, {"timestamp": _after(acid, "t", 2)}):
        with acid.snapshot(**when):
            assert table(acid, "t") == table(acid, "u") == [(1,), (2,)]
            assert rows(acid, "SELECT t.id FROM t JOIN u USING (id)") == [(1,), (2,)]
            assert table(acid, "t VERSION AS OF 1") == [(1,)]
            with pytest.raises(VersionNotFoundError, match="late"):
                table(acid, "late")
            with pytest.raises(TxnError):
                acid.sql("INSERT INTO t VALUES (3)")
    assert table(acid, "u") == []


def _after(acid: Any, name: str, version: int) -> datetime:
    row = acid.history(name).where(f"version = {version}").first()
    return row.timestamp.astimezone(UTC) + timedelta(milliseconds=1)


# ── in statements ────────────────────────────────────────────────────────────────────────────


def test_versions_can_be_joined_compared_and_written_back(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "2, 'b'")
    acid.sql("UPDATE t SET v = 'x' WHERE id = 1")
    joined = (
        "SELECT a.v, b.v, t.v FROM t VERSION AS OF 1 a JOIN t FOR SYSTEM_VERSION AS OF '2' AS b"
    )
    assert rows(acid, f"{joined} USING (id) JOIN t ON t.id = a.id") == [
        ("a", "x", "x"),
        ("b", "b", "b"),
    ]
    assert rows(acid, "SELECT * FROM t VERSION AS OF 1 EXCEPT SELECT * FROM t") == [(1, "a")]
    assert rows(acid, "SELECT row__id.writeid FROM t VERSION AS OF 1") == [(1,), (1,)]
    acid.sql(
        "MERGE INTO t USING (SELECT * FROM t VERSION AS OF 1) s ON t.id = s.id "
        "WHEN MATCHED AND t.v <> s.v THEN UPDATE SET v = s.v"
    )
    assert table(acid) == [(1, "a"), (2, "b")]
    acid.sql("INSERT INTO t SELECT id + 10, v FROM t VERSION AS OF 2 WHERE id = 1")
    acid.sql("CREATE TABLE u AS SELECT * FROM t VERSION AS OF 2")
    assert table(acid, "u") == [(1, "x"), (2, "b")]
    acid.sql("DELETE FROM t WHERE id NOT IN (SELECT id FROM t VERSION AS OF 1)")
    assert table(acid) == [(1, "a"), (2, "b")]


def test_a_version_has_the_columns_of_today(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'")
    acid.sql("ALTER TABLE t ADD COLUMNS (n INT)")
    acid.sql("ALTER TABLE t CHANGE COLUMN v w STRING")
    acid.sql("UPDATE t SET n = 7")
    assert acid.table("t", version=1).columns == ["id", "w", "n"]
    assert table(acid, "t VERSION AS OF 1") == [(1, "a", None)]


def test_insert_only_tables_have_versions_too(acid, other):
    acid.sql("CREATE TABLE t (id INT) TBLPROPERTIES ('transactional_properties'='insert_only')")
    for number in (1, 2, 3):
        acid.sql(f"INSERT INTO t VALUES ({number})")
    acid.sql("INSERT OVERWRITE t VALUES (4)")
    versions = {0: [], 1: [(1,)], 2: [(1,), (2,)], 3: [(1,), (2,), (3,)], 4: [(4,)]}
    assert at(acid, [*versions]) == versions
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    acid.sql("INSERT INTO t VALUES (5)")
    versions[5] = [(4,), (5,)]
    assert at(acid, [*versions]) == versions
    acid.close()
    other.clean()
    assert [is_gone(other, number) for number in range(6)] == [True] * 4 + [False] * 2


def test_explain_shows_the_files_of_each_version(acid):
    fill(acid, "t (id INT)", "1")
    acid.sql("INSERT INTO t VALUES (2)")
    query = "EXPLAIN SELECT * FROM t VERSION AS OF 1 a, t b"
    plan = acid.sql(query).first()[0]
    assert "default.t: 1 of 1 files" in plan and "default.t: 2 of 2 files" in plan


# ── DESCRIBE HISTORY ─────────────────────────────────────────────────────────────────────────


def test_the_history_tells_who_did_what_when(acid):
    began = datetime.now(UTC) - timedelta(seconds=1)
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 2)")
    acid.sql("UPDATE t SET v = :v WHERE id = 1", {"v": "secret"})
    with acid.transaction() as both:
        acid.sql("DELETE FROM t WHERE id = 2")
        acid.sql("MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE ")
    acid.sql("INSERT OVERWRITE t PARTITION (p = 2) VALUES (9, 'z')")
    acid.sql("DELETE FROM t WHERE id = 77")  # 5 changes nothing, so it is no version
    acid.sql("TRUNCATE TABLE t")
    error = refused(acid, "DESCRIBE HISTORY tt", "TABLE_OR_VIEW_NOT_FOUND", at="tt")
    assert "Did you mean `t`" in error.message
    found = acid.sql("DESCRIBE HISTORY t").collect()
    changed = [
        (one.version, one.operation, one.numInsertedRows, one.numUpdatedRows, one.numDeletedRows)
        for one in found
    ]
    assert changed == [
        (6, "TRUNCATE TABLE", 0, 0, 0),
        (4, "INSERT OVERWRITE", 1, 0, 0),
        (3, "MERGE", 0, 0, 1),
        (3, "DELETE", 0, 0, 1),
        (2, "UPDATE", 0, 1, 0),
        (1, "INSERT", 3, 0, 0),
        (0, "CREATE TABLE", 0, 0, 0),
    ]
    update, insert = found[4], found[5]
    assert update.statement == "UPDATE t SET v = :v WHERE id = 1"
    assert {one.txnId for one in found if one.version == 3} == {both.id}
    assert (insert.numFiles, insert.partitions) == (2, 2)
    assert insert.numBytes == sum(
        one.bytes for one in acid.files("t").where("min_write_id = 1").collect()
    )
    assert all(one.isAvailable and one.userName and one.host for one in found)
    times = [one.timestamp.astimezone(UTC) for one in found]
    assert times == sorted(times, reverse=True)
    assert began < times[-1] <= times[0] <= datetime.now(UTC) + timedelta(seconds=1)
    assert acid.sql("DESC HISTORY t LIMIT 2").collect() == found[:2]
    assert acid.history("default.t", 1).collect() == found[:1]


def test_what_was_forgotten_is_told_from_the_directories(acid):
    fill(acid, "t (id INT)", "1")
    acid.sql("INSERT INTO t VALUES (2)")
    acid.sql("INSERT INTO t VALUES (3)")
    time.sleep(0.01)
    assert acid.metastore.house_keep(10**9, 0, 1)
    found = acid.history("t").collect()
    assert [(one.version, one.operation) for one in found] == [(3, "INSERT"), (2, None), (1, None)]
    assert [one.version for one in acid.history("t", 2).collect()] == [3, 2]
    assert all(one.isAvailable for one in found)
    assert table(acid, "t VERSION AS OF 1") == [(1,)]


# ── what is refused ──────────────────────────────────────────────────────────────────────────


def test_wrong_versions_and_times_are_refused_with_a_reason(acid):
    before = datetime.now(UTC) - timedelta(days=1)
    fill(acid, "t (id INT)", "1")
    spark = acid.spark
    spark.range(1).createOrReplaceTempView("travel_view")
    for text, error, words in (
        ("SELECT * FROM t VERSION AS OF 2", VersionNotFoundError, "has no version 2"),
        ("SELECT * FROM t TIMESTAMP AS OF '2001-01-01'", VersionNotFoundError, "before"),
        ("SELECT * FROM t TIMESTAMP AS OF '2901-01-01'", VersionNotFoundError, "after now"),
    ):
        with pytest.raises(error, match=words):
            acid.sql(text)
    refused(acid, "SELECT * FROM t VERSION AS OF x", "PARSE_SYNTAX_ERROR", "x")
    refused(acid, "SELECT * FROM t VERSION AS OF -1", "PARSE_SYNTAX_ERROR", "-1")
    refused(acid, "SELECT * FROM t VERSION AS OF 1 + 1", "PARSE_SYNTAX_ERROR", "1 + 1")
    condition = "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR"
    refused(acid, "SELECT * FROM t TIMESTAMP AS OF 'soon'", condition, "'soon'")
    refused(acid, "SELECT * FROM t TIMESTAMP AS OF NULL", condition, "NULL")
    refused(acid, "SELECT * FROM t TIMESTAMP AS OF id", "UNRESOLVED_COLUMN", "id")
    with pytest.raises(SqlError):
        acid.sql("UPDATE t VERSION AS OF 1 SET id = 2")
    with pytest.raises(VersionNotFoundError):
        acid.table("t", timestamp=before)
    with pytest.raises(VersionNotFoundError, match="is no time"):
        acid.table("t", timestamp="soon")
    for wrong in ({"version": 1, "timestamp": before}, {"version": -1}):
        with pytest.raises(SettingError):
            acid.table("t", **wrong)
    with pytest.raises(TypeError, match="version"):
        acid.table("t", version=True)
    with pytest.raises(SettingError), acid.snapshot(timestamp=before, txn_id=1):
        pass
    with pytest.raises(VersionNotFoundError, match="committed no change"):
        acid.snapshot(txn_id=10**6).__enter__()
    with pytest.raises(CatalogError):
        acid.history("nowhere")
    spark.catalog.dropTempView("travel_view")


def test_a_table_that_was_made_again_shows_nothing_of_the_old_one(acid):
    fill(acid, "t (id INT)", "1")
    since = datetime.now(UTC)
    acid.sql("DROP TABLE t")
    fill(acid, "t (id INT)", "2")
    with pytest.raises(VersionNotFoundError, match="Nothing is known"):
        acid.table("t", timestamp=since)
    assert is_gone(acid, 0)
    versions = {row.version: row.operation for row in acid.history("t").collect()}
    assert versions == {1: "CREATE TABLE", 2: "INSERT"}
    assert at(acid, [1, 2]) == {1: [], 2: [(2,)]}
