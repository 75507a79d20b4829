"""CREATE, ALTER, DROP and TRUNCATE TABLE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from acidsql.sql.alter_columns import alter_columns
from acidsql.sql.columns import columns_in_brackets, table_elements
from acidsql.sql.cursor import Cursor
from acidsql.sql.insert import IsAcid, column_list, partition_clause
from acidsql.sql.properties import properties, properties_and_places
from acidsql.sql.statements import (
    Check,
    ColumnDef,
    CreateTable,
    DropPartitions,
    DropTable,
    Name,
    PartitionItem,
    Query,
    Reads,
    RenameTable,
    SetTableProperties,
    SparkStatement,
    Statement,
    TruncateTable,
)
from acidsql.sql.tokens import Kind, Span


@dataclass(slots=True)
class _Draft:
    """A CREATE TABLE as far as it has been read."""

    columns: tuple[ColumnDef, ...] = ()
    checks: tuple[Check, ...] = ()
    partitioned_by: tuple[ColumnDef, ...] = ()
    partition_names: tuple[Name, ...] = ()
    bucket_columns: tuple[Name, ...] = ()
    num_buckets: int = -1
    sorted_by: Span | None = None
    stored_as: str | None = None
    location: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    property_spans: tuple[Span, ...] = ()
    comment: str | None = None
    like: Name | None = None
    seen: set[str] = field(default_factory=set)


def create_table(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement:
    """Reads ``CREATE [TRANSACTIONAL] TABLE …``, ours or Spark's."""
    c.expect("CREATE")
    words = set()
    while not c.at("TABLE"):
        words.add(c.take().upper)
    foreign = _foreign_clause(c, is_acid, words)
    if foreign is not None:
        _refuse_half_ours(c, words, foreign)
        reads = Reads.NOTHING if foreign[0] == "LIKE" else Reads.QUERY
        return SparkStatement(whole, reads)
    c.expect("TABLE")
    if_not_exists = c.accept("IF", "NOT", "EXISTS") is not None
    name = c.name("the name of the new table")
    draft = _Draft()
    if c.accept("LIKE"):
        draft.like = c.name("the name of a table")
    elif c.at("("):
        draft.columns, draft.checks = table_elements(c)
    query = _clauses(c, draft)
    _check_draft(c, draft, query)
    if words == {"TRANSACTIONAL"} and not any(k == "transactional" for k, _ in draft.properties):
        draft.properties += (("transactional", "true"),)
    return CreateTable(
        name,
        draft.columns,
        draft.partitioned_by,
        draft.partition_names,
        draft.bucket_columns,
        draft.num_buckets,
        draft.sorted_by,
        draft.stored_as,
        draft.location,
        draft.properties,
        draft.comment,
        draft.checks,
        draft.like,
        query,
        if_not_exists,
        draft.property_spans,
    )


# ── whose table is it? ───────────────────────────────────────────────────────────────────────


def _foreign_clause(c: Cursor, is_acid: IsAcid, words: set[str]) -> tuple[str, Span] | None:
    """The first clause that makes a CREATE TABLE Spark's, with its place; None if it is ours."""
    start = c.index
    try:
        for word in ("OR", "EXTERNAL", "TEMPORARY", "TEMP", "GLOBAL"):
            if word in words:
                return ("CREATE OR REPLACE" if word == "OR" else word), c.token.span
        c.take()
        c.accept("IF", "NOT", "EXISTS")
        name = c.name("the name of the new table")
        like = c.name() if c.accept("LIKE") else None
        found = _foreign_words(c)
        if found is None and like is not None and not is_acid(like.parts):
            return "LIKE", name.span
        return found
    finally:
        c.index = start


def _foreign_words(c: Cursor) -> tuple[str, Span] | None:
    """Looks through the clauses up to the query for those that are Spark's only."""
    while not c.done and not c.at("AS"):
        if c.at("USING"):
            return "USING", c.token.span
        if c.at("ROW", "FORMAT") or c.at("STORED", "BY"):
            return f"{c.token.upper} {c.peek().upper}", c.token.span
        if c.at("STORED", "AS") and c.peek(2).upper != "ORC":
            return f"STORED AS {c.peek(2).upper}", c.token.span
        if c.at("STORED", "AS"):
            c.take(2)
        elif c.at("TBLPROPERTIES", "("):
            at = c.take()
            if _says(properties(c), "false"):
                return "'transactional'='false'", at.span
            continue
        if c.at("("):
            c.skip_brackets()
        else:
            c.take()
    return None


def _says(pairs: tuple[tuple[str, str], ...], value: str) -> bool:
    return any(k.lower() == "transactional" and v.lower() == value for k, v in pairs)


def _refuse_half_ours(c: Cursor, words: set[str], foreign: tuple[str, Span]) -> None:
    what, span = foreign
    sentence = f"A transactional table cannot have {what}: it is stored as ORC and managed by Hive"
    if "TRANSACTIONAL" in words:
        c.refuse(sentence, span)
    start = c.index
    while not c.done and not c.at("AS"):
        if c.at("TBLPROPERTIES", "("):
            c.take()
            if _says(properties(c), "true"):
                c.refuse(sentence, span)
        elif c.at("STORED", "AS"):
            c.take(2)
        elif c.at("("):
            c.skip_brackets()
        else:
            c.take()
    c.index = start


# ── the clauses ──────────────────────────────────────────────────────────────────────────────


def _clauses(c: Cursor, draft: _Draft) -> Query | None:
    while not c.done:
        if c.accept("AS"):
            return Query(c.rest()) if not c.done else c.fail("Expected a query")
        if c.at_any(("SELECT", "WITH", "(")):
            return Query(c.rest())
        at = c.token
        key = next((words for words in _CLAUSES if c.at(*words)), None)
        if key is None:
            if c.at("CLUSTER", "BY"):
                c.refuse("CLUSTER BY is not supported: use CLUSTERED BY (…) INTO n BUCKETS")
            if c.at("SKEWED", "BY"):
                c.refuse("SKEWED BY is not supported")
            c.fail("Expected a clause of CREATE TABLE or the end of the statement")
        if key[0] in draft.seen:
            c.fail(f"Expected one {' '.join(key)} clause", at)
        draft.seen.add(key[0])
        c.take(len(key))
        _CLAUSES[key](c, draft)
    return None


def _comment(c: Cursor, draft: _Draft) -> None:
    draft.comment = c.string("the comment in quotes")


def _location(c: Cursor, draft: _Draft) -> None:
    draft.location = c.string("a path in quotes")


def _tblproperties(c: Cursor, draft: _Draft) -> None:
    draft.properties, draft.property_spans = properties_and_places(c)


def _stored_as(c: Cursor, draft: _Draft) -> None:
    draft.stored_as = c.name_part("a format").value


def _partitioned_by(c: Cursor, draft: _Draft) -> None:
    if not c.at("("):
        c.fail("Expected '('")
    second = c.peek(2)
    if c.peek().is_name and second.upper in (",", ")"):
        draft.partition_names = column_list(c)
    elif second.upper == "(":
        c.take()
        c.refuse("A transform in PARTITIONED BY is not supported: name the columns")
    else:
        draft.partitioned_by = columns_in_brackets(c)


def _clustered_by(c: Cursor, draft: _Draft) -> None:
    draft.bucket_columns = column_list(c)
    if c.accept("SORTED", "BY"):
        if not c.at("("):
            c.fail("Expected '('")
        draft.sorted_by = c.skip_brackets()
    c.expect("INTO")
    at = c.token
    draft.num_buckets = c.number()
    if not 0 < draft.num_buckets <= 4096:
        c.fail("Expected a number of buckets from 1 to 4096", at)
    c.expect("BUCKETS")


_CLAUSES: dict[tuple[str, ...], Callable[[Cursor, _Draft], None]] = {
    ("COMMENT",): _comment,
    ("LOCATION",): _location,
    ("TBLPROPERTIES",): _tblproperties,
    ("STORED", "AS"): _stored_as,
    ("PARTITIONED", "BY"): _partitioned_by,
    ("CLUSTERED", "BY"): _clustered_by,
}


def _check_draft(c: Cursor, draft: _Draft, query: Query | None) -> None:
    if draft.like is not None:
        if query is not None or draft.seen & {"PARTITIONED", "CLUSTERED", "COMMENT"}:
            c.refuse(
                "CREATE TABLE … LIKE takes its columns, partitions and buckets from the "
                "other table; further clauses are not supported",
                draft.like.span,
            )
    elif query is not None:
        if draft.columns or draft.partitioned_by:
            first = (*draft.columns, *draft.partitioned_by)[0]
            c.refuse(
                "CREATE TABLE … AS takes its columns from the query: name none here "
                "(PARTITIONED BY takes names only)",
                first.span,
            )
    elif not draft.columns:
        c.fail("Expected the columns, AS or LIKE")


# ── DROP, TRUNCATE, ALTER ────────────────────────────────────────────────────────────────────


def drop_table(c: Cursor, is_acid: IsAcid) -> DropTable | None:
    """Reads ``DROP TABLE [IF EXISTS] t [PURGE]``; None if the table is Spark's."""
    c.expect("DROP", "TABLE")
    if_exists = c.accept("IF", "EXISTS") is not None
    name = c.name("the name of a table")
    if not is_acid(name.parts):
        return None
    c.accept("PURGE")
    c.end("PURGE or the end of the statement")
    return DropTable(name, if_exists)


def truncate_table(c: Cursor, is_acid: IsAcid) -> TruncateTable | None:
    """Reads ``TRUNCATE TABLE t [PARTITION (…)]``; None if the table is Spark's."""
    c.expect("TRUNCATE")
    c.expect("TABLE")
    name = c.name("the name of a table")
    if not is_acid(name.parts):
        return None
    partition = static_partition(c) if c.at("PARTITION") else ()
    if c.at("COLUMNS"):
        c.refuse("TRUNCATE … COLUMNS is not supported: use UPDATE")
    c.end("PARTITION or the end of the statement")
    return TruncateTable(name, partition)


def static_partition(c: Cursor) -> tuple[PartitionItem, ...]:
    """``PARTITION (p = value, …)``, where each column has a value."""
    start = c.index
    items = partition_clause(c)
    for item in items:
        if item.value is None:
            after = next(t for t in c.tokens[start:] if t.start >= item.span.end)
            c.fail(f"Expected '=' and a value for '{item.name}'", after)
    return items


def alter_table(c: Cursor, is_acid: IsAcid) -> Statement | None:
    """Reads ``ALTER TABLE t …``; None if the table is Spark's."""
    c.expect("ALTER", "TABLE")
    name = c.name("the name of a table")
    if not is_acid(name.parts):
        return None
    about_columns = alter_columns(c, name)
    if about_columns is not None:
        return about_columns
    if c.accept("SET", "TBLPROPERTIES"):
        pairs = properties(c)
        c.end()
        return SetTableProperties(name, pairs)
    if c.at("DROP", "PARTITION") or c.at("DROP", "IF", "EXISTS", "PARTITION"):
        return _drop_partitions(c, name)
    if c.at("RENAME", "TO"):
        c.take(2)
        new_name = c.name("the new name")
        c.end()
        return RenameTable(name, new_name)
    _refuse_alter(c)


def _drop_partitions(c: Cursor, name: Name) -> DropPartitions:
    c.expect("DROP")
    if_exists = c.accept("IF", "EXISTS") is not None
    specs = [static_partition(c)]
    while c.accept(","):
        specs.append(static_partition(c))
    c.accept("PURGE")
    c.end("',' or the end of the statement")
    return DropPartitions(name, tuple(specs), if_exists)


def _refuse_alter(c: Cursor) -> NoReturn:
    start = c.index
    if c.done:
        c.fail(
            "Expected ADD, CHANGE, RENAME or REPLACE COLUMNS, SET TBLPROPERTIES, DROP PARTITION or "
            "RENAME TO"
        )
    c.skip_to(("COMPACT",))
    if not c.done:
        c.refuse("ALTER TABLE … COMPACT is not built yet")
    c.index = start
    if c.accept("PARTITION"):
        if c.at("("):
            c.skip_brackets()
        start = c.index
    words = [c.peek(n).upper for n in range(2) if c.peek(n).kind is Kind.WORD]
    span = Span(c.token.start, c.peek(max(0, len(words) - 1)).end)
    c.refuse(f"ALTER TABLE … {' '.join(words)} is not supported on an ACID table", span)
