"""Parses BEGIN, COMMIT, ROLLBACK, SAVEPOINT, RELEASE, LOCK, UNLOCK and ABORT."""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import IsOurs, parse_static_partition
from acidsql.sql.parsed.statements import (
    AbortCompactions,
    AbortTransactions,
    Commit,
    LockDatabase,
    LockTable,
    Name,
    ReleaseSavepoint,
    Rollback,
    Savepoint,
    StartTransaction,
    UnlockDatabase,
    UnlockTable,
)
from acidsql.sql.text.tokens import Span, Token

# The first words of the statements that begin or end a transaction, or handle savepoints.
TRANSACTION_WORDS = ("BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
SCRIPT = "A script (BEGIN … END) is not supported: give one statement at a time"

_NOISE = ("TRANSACTION", "WORK")
_ACCESS = ("READ ONLY", "READ WRITE")
_OTHER_LEVELS = ("SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED", "READ UNCOMMITTED")
_DATABASE = ("DATABASE", "SCHEMA")


def is_script(tokens: Sequence[Token]) -> bool:
    """Whether these tokens, from the first one, are a SQL script of Spark's (BEGIN … END), or its
    part before a ``;``. BEGIN before TRANSACTION, WORK, a mode or nothing begins a transaction;
    with one other word it is a script only if this is END, ATOMIC or NOT, with more words always.
    """
    words = [token.upper for token in tokens[:3]]
    if words[0] != "BEGIN" or len(words) == 1 or words[1] in (";", *_NOISE, "ISOLATION", "READ"):
        return False
    # A single other word after BEGIN is more likely a typing error than a script.
    return len(words) == 3 or words[1] in ("END", "ATOMIC", "NOT")


def parse_begin(c: Cursor) -> StartTransaction:
    """Parse ``BEGIN [TRANSACTION|WORK] [mode, …]``. A SQL script (BEGIN … END) raises
    UnsupportedError."""
    if is_script(c.tokens[c.index : -1]):
        c.refuse(SCRIPT)
    c.expect("BEGIN")
    _skip_noise(c)
    return _parse_modes(c)


def parse_start(c: Cursor) -> StartTransaction | None:
    """Parse ``START TRANSACTION [mode, …]``; None if it is Spark's."""
    return _parse_modes(c) if c.accept("START", "TRANSACTION") else None


def _parse_modes(c: Cursor) -> StartTransaction:
    """Parse the modes after BEGIN, up to the statement's end. Only READ ONLY has an effect:
    ``read_only`` of the result. A second mode of a kind, and READ ONLY with READ WRITE, are syntax
    errors."""
    modes: list[str] = []
    if c.is_at_end:
        return StartTransaction()
    while True:
        at = c.token
        mode = _parse_mode(c)
        if mode in _ACCESS and set(modes) & set(_ACCESS):
            c.fail(f"Expected one of {' and '.join(_ACCESS)}", at)
        if mode in modes:
            c.fail("Expected one ISOLATION LEVEL", at)
        modes.append(mode)
        if not c.accept(","):
            break
    c.expect_end("',' or the end of the statement")
    return StartTransaction(read_only="READ ONLY" in modes)


def _parse_mode(c: Cursor) -> str:
    """Parse one mode and return its words: ISOLATION LEVEL SNAPSHOT, READ ONLY or READ WRITE. Other
    isolation levels raise UnsupportedError."""
    if c.is_at("ISOLATION"):
        c.expect("ISOLATION", "LEVEL")
        for level in _OTHER_LEVELS:
            words = level.split()
            if c.is_at(*words):
                span = Span(c.token.start, c.peek(len(words) - 1).end)
                c.refuse(f"ISOLATION LEVEL {level} is not supported: it is always SNAPSHOT", span)
        c.expect("SNAPSHOT")
        return "ISOLATION LEVEL SNAPSHOT"
    if c.accept("READ"):
        if not c.is_at_any(("ONLY", "WRITE")):
            c.fail("Expected ONLY or WRITE")
        return f"READ {c.take().upper}"
    c.fail("Expected ISOLATION LEVEL SNAPSHOT, READ ONLY or READ WRITE")


def parse_commit(c: Cursor) -> Commit:
    """Parse ``COMMIT [WORK|TRANSACTION] [AND NO CHAIN]``, but not the statement's end. AND CHAIN
    raises UnsupportedError."""
    c.expect("COMMIT")
    _skip_noise(c)
    _refuse_chain(c)
    return Commit()


def parse_rollback(c: Cursor) -> Rollback:
    """Parse ``ROLLBACK [WORK|TRANSACTION] [AND NO CHAIN | TO [SAVEPOINT] s]``. AND CHAIN raises
    UnsupportedError."""
    c.expect("ROLLBACK")
    _skip_noise(c)
    if c.accept("TO"):
        return Rollback(_parse_savepoint_name(c))
    _refuse_chain(c)
    c.expect_end("TO or the end of the statement")
    return Rollback()


def parse_savepoint(c: Cursor) -> Savepoint:
    """Parse ``SAVEPOINT s``."""
    c.expect("SAVEPOINT")
    return Savepoint(_parse_one_part_name(c))


def parse_release(c: Cursor) -> ReleaseSavepoint:
    """Parse ``RELEASE [SAVEPOINT] s``."""
    c.expect("RELEASE")
    return ReleaseSavepoint(_parse_savepoint_name(c))


def _parse_savepoint_name(c: Cursor) -> Name:
    """Parse ``[SAVEPOINT] s``. The word SAVEPOINT alone is the name of a savepoint."""
    if c.peek().is_name:
        c.accept("SAVEPOINT")
    return _parse_one_part_name(c)


def _parse_one_part_name(c: Cursor) -> Name:
    """Parse the name of a savepoint, which has no qualifier."""
    token = c.take_name_part("the name of a savepoint")
    return Name((token.value,), token.span)


def _skip_noise(c: Cursor) -> None:
    """Take the word TRANSACTION or WORK, which means nothing, if it comes next."""
    if c.is_at_any(_NOISE):
        c.take()


def _refuse_chain(c: Cursor) -> None:
    """Raise UnsupportedError if AND CHAIN comes next; take AND NO CHAIN. Other words behind AND
    raise SqlSyntaxError; without AND nothing happens."""
    start = c.index
    if c.accept("AND", "CHAIN"):
        c.refuse("AND CHAIN is not supported: BEGIN the next transaction", c.span_from(start))
    if c.is_at("AND"):
        c.expect("AND", "NO", "CHAIN")


# ── locks, and the abort of other transactions ───────────────────────────────────────────────


def parse_lock(c: Cursor, is_ours: IsOurs, statement_span: Span) -> LockTable | LockDatabase | None:
    """Parse ``LOCK TABLE t [PARTITION (…)] SHARED|EXCLUSIVE``, or LOCK DATABASE d with the same
    last words; return None if t is a table of Spark's, and for other words."""
    c.expect("LOCK")
    if c.is_at_any(_DATABASE):
        c.take()
        return LockDatabase(c.take_name("the name of a database"), _parse_is_exclusive(c))
    if not c.accept("TABLE"):
        return None
    name = c.take_name("the name of a table")
    if not is_ours(name.parts):
        return None
    partition = parse_static_partition(c) if c.is_at("PARTITION") else ()
    return LockTable(name, partition, _parse_is_exclusive(c), statement_span)


def _parse_is_exclusive(c: Cursor) -> bool:
    """Take SHARED or EXCLUSIVE, and return whether it is EXCLUSIVE. Any other word is a syntax
    error."""
    if not c.is_at_any(("SHARED", "EXCLUSIVE")):
        c.fail("Expected SHARED or EXCLUSIVE")
    return c.take().upper == "EXCLUSIVE"


def parse_unlock(
    c: Cursor, is_ours: IsOurs, statement_span: Span
) -> UnlockTable | UnlockDatabase | None:
    """Parse ``UNLOCK TABLE t [PARTITION (…)]`` or ``UNLOCK DATABASE d``; return None for other
    words. ``is_ours`` is not used: t may be gone, so nobody looks whether it is an ACID table."""
    c.expect("UNLOCK")
    if c.is_at_any(_DATABASE):
        c.take()
        return UnlockDatabase(c.take_name("the name of a database"))
    if not c.accept("TABLE"):
        return None
    name = c.take_name("the name of a table")
    partition = parse_static_partition(c) if c.is_at("PARTITION") else ()
    return UnlockTable(name, partition, statement_span)


def parse_abort(c: Cursor) -> AbortTransactions | AbortCompactions:
    """Parse ``ABORT TRANSACTIONS|COMPACTIONS n n …``; the ids are separated by blanks, not by
    commas."""
    c.expect("ABORT")
    if not c.is_at_any(("TRANSACTIONS", "COMPACTIONS")):
        c.fail("Expected TRANSACTIONS or COMPACTIONS")
    statement_type = AbortTransactions if c.take().upper == "TRANSACTIONS" else AbortCompactions
    numbers = [c.take_number()]
    while not c.is_at_end:
        if c.is_at(","):
            c.fail("Expected a number, as blanks separate them")
        numbers.append(c.take_number())
    return statement_type(tuple(numbers))
