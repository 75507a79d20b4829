"""Transactions, locks and settings: the parsed statements, and that no word is reserved."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from grammar_cases import Case, cases

from acidsql.errors import SettingError, SqlError, UnsupportedError
from acidsql.settings import setting_name
from acidsql.sql.parsed.statements import (
    Commit,
    LockDatabase,
    LockTable,
    Name,
    ReleaseSavepoint,
    ResetOption,
    Rollback,
    Savepoint,
    SetOption,
    ShowLocks,
    SparkStatement,
    StartTransaction,
    Statement,
    UnlockDatabase,
    UnlockTable,
)
from acidsql.sql.text.tokens import Span, words

Read = Callable[..., Statement]
Catalyst = Callable[[str], str | None]

# The words in the grammar of transactions. To Spark most of them are plain words.
WORDS = words(
    "ABORT AND AUTOCOMMIT BEGIN CHAIN COMMIT DATABASE EXCLUSIVE EXTENDED ISOLATION LEVEL LOCK "
    "LOCKS NO ONLY PARTITION READ RELEASE RESET ROLLBACK SAVEPOINT SCHEMA SET SHARED SHOW "
    "SNAPSHOT START TABLE TO TRANSACTION TRANSACTIONS UNLOCK WORK WRITE"
)


@pytest.mark.parametrize(
    ("text", "read_only"),
    [
        ("BEGIN", False),
        ("BEGIN TRANSACTION READ ONLY", True),
        ("BEGIN READ WRITE, ISOLATION LEVEL SNAPSHOT", False),
        ("START TRANSACTION", False),
        ("start transaction isolation level snapshot, read only;", True),
    ],
)
def test_a_transaction_is_told_whether_it_may_write(text: str, read_only: bool, read: Read) -> None:
    assert read(text) == StartTransaction(read_only=read_only)


def test_the_end_of_a_transaction_and_its_savepoints(read: Read) -> None:
    assert [read(text) for text in ("COMMIT", "COMMIT WORK", "COMMIT AND NO CHAIN")] == [
        Commit()
    ] * 3
    assert read("ROLLBACK WORK AND NO CHAIN") == Rollback()
    assert read("ROLLBACK TO SAVEPOINT a") == Rollback(Name(("a",), Span(22, 23)))
    assert read("ROLLBACK TRANSACTION TO `A b`") == Rollback(Name(("A b",), Span(24, 29)))
    assert read("ROLLBACK TO savepoint") == Rollback(Name(("savepoint",), Span(12, 21)))
    assert read("SAVEPOINT a") == Savepoint(Name(("a",), Span(10, 11)))
    assert read("RELEASE a") == ReleaseSavepoint(Name(("a",), Span(8, 9)))
    assert read("RELEASE SAVEPOINT a") == ReleaseSavepoint(Name(("a",), Span(18, 19)))


def test_a_lock_is_of_a_table_a_partition_or_a_database(read: Read) -> None:
    text = "LOCK TABLE db.t PARTITION (p = 1 + 1, `q` = 'x') SHARED;"
    lock = read(text)
    assert isinstance(lock, LockTable)
    assert (lock.name.parts, lock.exclusive, lock.span.slice(text)) == (
        ("db", "t"),
        False,
        text[:-1],
    )
    assert [(i.name, i.value and i.value.slice(text)) for i in lock.partition] == [
        ("p", "1 + 1"),
        ("q", "'x'"),
    ]
    assert read("LOCK SCHEMA d EXCLUSIVE") == LockDatabase(Name(("d",), Span(12, 13)), True)


def test_what_is_unlocked_is_a_table_that_may_be_gone_a_partition_or_a_database(read: Read) -> None:
    gone = read("UNLOCK TABLE u", is_ours=lambda parts: False)
    assert gone == UnlockTable(Name(("u",), Span(13, 14)), (), Span(0, 14))
    unlock = read("UNLOCK TABLE db.t PARTITION (p = 1)")
    assert isinstance(unlock, UnlockTable)
    assert [item.name for item in unlock.partition] == ["p"]
    assert read("UNLOCK SCHEMA d") == UnlockDatabase(Name(("d",), Span(14, 15)))


def test_a_lock_of_a_table_of_sparks_is_sparks_to_refuse(read: Read) -> None:
    assert isinstance(read("LOCK TABLE u SHARED"), SparkStatement)


def test_locks_are_shown_by_table_partition_or_database(read: Read) -> None:
    assert read("SHOW LOCKS") == ShowLocks()
    assert read("SHOW LOCKS EXTENDED") == ShowLocks(extended=True)
    assert read("SHOW LOCKS d.u EXTENDED") == ShowLocks(
        Name(("d", "u"), Span(11, 14)), extended=True
    )
    assert read("SHOW LOCKS DATABASE d") == ShowLocks(database=Name(("d",), Span(20, 21)))
    shown = read("SHOW LOCKS t PARTITION (p = 1, q)")
    assert isinstance(shown, ShowLocks)
    assert [(i.name, i.value is None) for i in shown.partition] == [("p", False), ("q", True)]


# ── settings ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "value", "span"),
    [
        ("SET hive.txn.timeout=60s", "60s", "hive.txn.timeout=60s"),
        ("set  hive.txn.timeout  =  a  b ; ", "a  b", "hive.txn.timeout  =  a  b"),
        ("SET `hive.txn.timeout` = `a``b`", "a`b", "`hive.txn.timeout` = `a``b`"),
        ("SET hive.txn.timeout = 'a;b'", "a;b", "hive.txn.timeout = 'a;b'"),
        ('SET hive.txn.timeout = "60s";', "60s", 'hive.txn.timeout = "60s"'),
        ("SET hive.txn.timeout=it's ;", "it's", "hive.txn.timeout=it's"),
        ("SET hive.txn.timeout='a' 'b'", "'a' 'b'", "hive.txn.timeout='a' 'b'"),
        ("SET hive.txn.timeout=(x", "(x", "hive.txn.timeout=(x"),
        ("SET hive.txn.timeout=", "", "hive.txn.timeout="),
        ("SET hive.txn.timeout==1", "=1", "hive.txn.timeout==1"),
        ("SET hive.txn.timeout=1 /* a */ b", "1 /* a */ b", "hive.txn.timeout=1 /* a */ b"),
        ("/* a */ SET hive.txn.timeout=1; -- b", "1", "hive.txn.timeout=1"),
        ("SET hive.txn.timeout=\n60s", "60s", "hive.txn.timeout=\n60s"),
        ("SET hive.txn.timeout;", None, "hive.txn.timeout"),
    ],
)
def test_a_setting_is_read_raw(text: str, value: str | None, span: str, read: Read) -> None:
    option = read(text)
    assert isinstance(option, SetOption)
    assert (option.key, option.value) == ("hive.txn.timeout", value)
    assert option.span.slice(text) == span


@pytest.mark.parametrize("text", ["RESET hive.txn.timeout", "reset `hive.txn.timeout` ; -- a"])
def test_a_setting_is_reset(text: str, read: Read) -> None:
    assert read(text) == ResetOption("hive.txn.timeout")


@pytest.mark.parametrize(
    "text",
    [
        "SET",
        "SET -v",
        "SET hive.txn.timeouts=1",
        "SET hive.txn=1",
        "SET spark.sql.shuffle.partitions = 2",
        "SET TIME ZONE LOCAL",
        "SET VARIABLE x = 1",
        "SET autocommit",
        "SET `autocommit` true",
        "RESET",
        "RESET spark.sql.x",
        "ADD JAR hive.txn.timeout",
    ],
)
def test_any_other_set_and_reset_is_sparks(text: str, read: Read) -> None:
    assert isinstance(read(text), SparkStatement)


def test_without_settings_every_set_is_sparks(read: Read) -> None:
    statement = read("SET hive.txn.timeout=60s", setting_name=lambda name: None)
    assert isinstance(statement, SparkStatement)


@pytest.mark.parametrize("word", ["SET acidsql.lock.timout=2s", "RESET `acidsql.lock.timout`"])
def test_a_misspelt_setting_is_shown_in_the_statement(word: str, read: Read) -> None:
    with pytest.raises(SettingError, match=r"no setting 'acidsql\.lock\.timout'") as caught:
        read(word, setting_name=setting_name)
    line, carets = caught.value.message.splitlines()[1:]
    name = line[carets.index("^") : carets.rindex("^") + 1].strip("`")
    assert (name, caught.value.condition) == ("acidsql.lock.timout", "UNKNOWN_SETTING")


def test_a_setting_may_have_the_name_that_it_has_in_the_spark_conf(read: Read) -> None:
    option = read("SET spark.acidsql.lock.poll.interval = 1s", setting_name=setting_name)
    assert isinstance(option, SetOption)
    assert (option.key, option.value) == ("acidsql.lock.poll.interval", "1s")


@pytest.mark.parametrize("value", ["60s", " a  b ", "`a``b`", "it's", "", "=1", "\n60s", "/x?y=(z"])
def test_a_value_is_what_spark_reads(value: str, read: Read, catalyst: Catalyst) -> None:
    text = f"SET hive.txn.timeout={value}"
    option = read(text)
    assert isinstance(option, SetOption)
    assert catalyst(text) == f"SetCommand (hive.txn.timeout,Some({option.value}))\n"


# ── beside Spark ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "case",
    [c for c in cases("accept") if c.file in ("transaction", "compaction")],
    ids=lambda c: c.label,
)
def test_nothing_is_taken_from_spark_but_settings(case: Case, catalyst: Catalyst) -> None:
    if not re.match("SET|RESET", case.text, re.IGNORECASE):
        assert catalyst(case.text) is None


@pytest.mark.parametrize(
    "template",
    [
        "SAVEPOINT {}",
        "ROLLBACK TO {}",
        "ROLLBACK TO SAVEPOINT {}",
        "RELEASE {}",
        "RELEASE SAVEPOINT {}",
        "LOCK TABLE {} SHARED",
        "LOCK TABLE {} PARTITION ({} = 1) EXCLUSIVE",
        "LOCK DATABASE {} EXCLUSIVE",
        "UNLOCK TABLE {} PARTITION ({} = 1)",
        "UNLOCK SCHEMA {}",
        "SHOW LOCKS db.{}",
        "SHOW LOCKS {}",
        "SHOW LOCKS DATABASE {}",
    ],
)
def test_every_word_is_a_name_in_our_statements(
    template: str, keywords: list[str], read: Read
) -> None:
    for word in {*keywords, *WORDS}:
        statement = read(template.replace("{}", word), is_ours=lambda parts: True)
        assert not isinstance(statement, SparkStatement)
        assert word in str(statement) or statement == ShowLocks(extended=True)


@pytest.mark.parametrize(
    "template",
    [
        "SELECT {} FROM {} WHERE {} = 1",
        "UPDATE {} SET {} = 1 WHERE {}",
        "DELETE FROM {} {} WHERE {} > 1",
        "INSERT INTO {} (a) VALUES (1)",
        "INSERT INTO t ({}) VALUES (1)",
        "MERGE INTO {} USING {} ON {} WHEN MATCHED THEN DELETE",
        "CREATE TABLE {} ({} INT)",
        "TRUNCATE TABLE {}",
        "SHOW PARTITIONS {}",
        "DESCRIBE {}",
    ],
)
def test_our_words_are_names_wherever_spark_takes_them(
    template: str, catalyst: Catalyst, read: Read
) -> None:
    for word in WORDS:
        text = template.replace("{}", word)
        if catalyst(text) is not None:
            read(text, is_ours=lambda parts: True)


@pytest.mark.parametrize("text", ["BEGIN SELECT 1; END", "BEGIN END", "BEGIN NOT ATOMIC END;"])
def test_a_script_of_sparks_is_refused_by_name(text: str, read: Read, spark: Any) -> None:
    assert spark._jsparkSession.sessionState().sqlParser().parsePlan(text) is not None
    with pytest.raises(UnsupportedError, match="script"):
        read(text)


def test_nothing_of_a_transaction_can_be_explained(read: Read) -> None:
    for text in ("BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "SAVEPOINT a", "RELEASE a"):
        with pytest.raises(SqlError) as caught:
            read(f"EXPLAIN {text}")
        assert caught.value.start == len("EXPLAIN ")
