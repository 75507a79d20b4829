"""Parses CREATE TABLE: decides whether the table is ours or Spark's, and reads its clauses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from acidsql.sql.commands.columns import parse_columns_in_brackets, parse_table_elements
from acidsql.sql.commands.properties import parse_properties, parse_properties_and_places
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import IsOurs, parse_column_list
from acidsql.sql.parsed.statements import (
    ColumnDef,
    ConstraintDef,
    CreateTable,
    Name,
    Query,
    Reads,
    SortBy,
    SparkStatement,
    Statement,
)
from acidsql.sql.text.tokens import Span

OWN_FORMAT = "ACIDSQL"  # USING acidsql makes an ACID table
_KIND_PROPERTY = "transactional_properties"
_ACID_WORDS = {"TRANSACTIONAL", "MANAGED"}  # words that only tables of ours have
_ORC = "org.apache.hadoop.hive.ql.io.orc.Orc"
_Pairs = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _TableDraft:
    """The clauses of a CREATE TABLE that were read so far, and their first words."""

    columns: tuple[ColumnDef, ...] = ()
    constraints: list[ConstraintDef] = field(default_factory=list)
    partitioned_by: tuple[ColumnDef, ...] = ()
    partition_names: tuple[Name, ...] = ()
    bucket_columns: tuple[Name, ...] = ()
    num_buckets: int = -1
    sorted_by: tuple[SortBy, ...] = ()
    stored_as: str | None = None
    location: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    property_spans: tuple[Span, ...] = ()
    comment: str | None = None
    like: Name | None = None
    clause_words: set[str] = field(default_factory=set)


def parse_create_table(c: Cursor, is_ours: IsOurs, statement_span: Span) -> Statement:
    """Parse ``CREATE … TABLE …``; a SparkStatement if a clause makes it Spark's (LIKE: it reads
    NOTHING, else a QUERY). Clauses that exclude each other raise UnsupportedError."""
    c.expect("CREATE")
    replace = c.accept("OR", "REPLACE")
    words = _take_words_before_table(c)
    foreign = _find_spark_clause(c, is_ours, words)
    if foreign is not None:
        _refuse_mixed_clauses(c, words, foreign)
        reads = Reads.NOTHING if foreign[0] == "LIKE" else Reads.QUERY
        return SparkStatement(statement_span, reads)
    c.expect("TABLE")
    if replace and c.is_at("IF", "NOT", "EXISTS"):
        c.fail("Expected the name of the new table, as OR REPLACE excludes IF NOT EXISTS")
    if_not_exists = c.accept("IF", "NOT", "EXISTS") is not None
    name = c.take_name("the name of the new table")
    draft = _TableDraft()
    if c.accept("LIKE"):
        draft.like = c.take_name("the name of a table")
    elif c.is_at("("):
        draft.columns, draft.constraints = parse_table_elements(c)
    query = _parse_clauses(c, draft)
    _refuse_excluded_clauses(c, draft, query)
    if replace and draft.location is not None:
        c.refuse(
            "CREATE OR REPLACE TABLE … LOCATION is not supported: the new table gets a directory "
            "of its own. DROP TABLE and CREATE TABLE … LOCATION take over files",
            replace.span,
        )
    temporary = "TEMPORARY" in words
    if temporary and draft.location is not None:
        c.refuse(
            "CREATE TEMPORARY TABLE … LOCATION is not supported: the table's end would delete the "
            "files there",
            name.span,
        )
    if "TRANSACTIONAL" in words and not any(k == "transactional" for k, _ in draft.properties):
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
        tuple(draft.constraints),
        draft.like,
        query,
        if_not_exists,
        draft.property_spans,
        replace is not None,
        temporary,
        "USING" in draft.clause_words,
    )


def _take_words_before_table(c: Cursor) -> set[str]:
    """Take the words between CREATE and TABLE, and return them in upper case."""
    words: set[str] = set()
    while not c.is_at("TABLE"):
        words.add(c.take().upper)
    return words


# ── ours or Spark's ──────────────────────────────────────────────────────────────────────────


def _find_spark_clause(c: Cursor, is_ours: IsOurs, words: set[str]) -> tuple[str, Span] | None:
    """Return what makes the table Spark's, as text, and its place for an error; None if acidsql
    makes the table. The cursor does not move.

    The first that is there counts, in this order: EXTERNAL, TEMP or GLOBAL among ``words``, those
    between CREATE and TABLE (the place is the cursor's token, TABLE); a clause of Spark's (the
    place is its first word); LIKE with a table that is not ours (the place is the new table's
    name).
    """
    start = c.index
    try:
        for word in ("EXTERNAL", "TEMP", "GLOBAL"):
            if word in words:
                return word, c.token.span
        c.take()
        c.accept("IF", "NOT", "EXISTS")
        name = c.take_name("the name of the new table")
        like = c.take_name() if c.accept("LIKE") else None
        foreign_clause = _find_spark_clause_ahead(c)
        if foreign_clause is None and like is not None and not is_ours(like.parts):
            return "LIKE", name.span
        return foreign_clause
    finally:
        c.index = start


def _find_spark_clause_ahead(c: Cursor) -> tuple[str, Span] | None:
    """Return the name of the first clause between the table's name and the query that makes the
    table Spark's, and its place: USING, ROW FORMAT, STORED BY, STORED AS a format that ACID tables
    do not have, or ``'transactional'='false'``. None if there is none. The cursor moves."""
    pairs: _Pairs = ()
    while not c.is_at_end and not c.is_at("AS"):
        if c.is_at("USING", OWN_FORMAT):
            c.take(2)
            continue
        if c.is_at("USING"):
            return "USING", c.token.span
        if _accept_orc_clause(c):
            continue
        if c.is_at("ROW", "FORMAT") or c.is_at("STORED", "BY"):
            return f"{c.token.upper} {c.peek().upper}", c.token.span
        if c.is_at("STORED", "AS") and not _is_acid_format(
            c.peek(2).upper, pairs + _properties_ahead(c)
        ):
            return f"STORED AS {c.peek(2).upper}", c.token.span
        if c.is_at("STORED", "AS"):
            c.take(2)
        elif c.is_at("TBLPROPERTIES", "("):
            at = c.take()
            pairs += parse_properties(c)
            if _has_transactional(pairs, "false"):
                return "'transactional'='false'", at.span
            continue
        if c.is_at("("):
            c.skip_brackets()
        else:
            c.take()
    return None


def _accept_orc_clause(c: Cursor) -> bool:
    """Take ROW FORMAT SERDE, or STORED AS INPUTFORMAT … OUTPUTFORMAT …, with ORC's classes, as
    Hive's SHOW CREATE TABLE prints them. Return whether it came next."""
    if c.is_at("ROW", "FORMAT", "SERDE") and c.peek(3).value == f"{_ORC}Serde":
        c.take(4)
        return True
    formats = (c.peek(3).value, c.peek(4).upper, c.peek(5).value)
    if c.is_at("STORED", "AS", "INPUTFORMAT") and formats == (
        f"{_ORC}InputFormat", "OUTPUTFORMAT", f"{_ORC}OutputFormat",
    ):  # fmt: skip
        c.take(6)
        return True
    return False


def _has_transactional(pairs: _Pairs, value: str) -> bool:
    """Whether 'transactional' has this value (in lower case) in one of the pairs, whatever the
    case."""
    return any(k.lower() == "transactional" and v.lower() == value for k, v in pairs)


def _is_acid_format(file_format: str, pairs: _Pairs) -> bool:
    """Whether a transactional table can have the format that STORED AS names: ORC, or PARQUET if
    the properties make it insert-only."""
    if file_format == "PARQUET":
        return [v.lower() for k, v in pairs if k.lower() == _KIND_PROPERTY] == ["insert_only"]
    return file_format == "ORC"


def _refuse_mixed_clauses(c: Cursor, words: set[str], foreign: tuple[str, Span]) -> None:
    """Raise UnsupportedError if a CREATE TABLE says that the table is transactional (a word as
    TRANSACTIONAL, or a property) and also has ``foreign``, a clause that only Spark's tables have,
    given by name and place. Otherwise nothing happens: the table is Spark's."""
    clause_name, span = foreign
    pairs = _properties_ahead(c)
    sentence = (
        f"A transactional table cannot have {clause_name}: it is stored as ORC and managed by Hive"
    )
    is_meant = bool(_ACID_WORDS & words) or _has_transactional(pairs, "true")
    if clause_name.startswith("STORED AS"):
        sentence += f"; only one with '{_KIND_PROPERTY}'='insert_only' may be STORED AS PARQUET"
        named = any(k.lower() == _KIND_PROPERTY for k, _ in pairs)
        is_meant = is_meant or (named and not _has_transactional(pairs, "false"))
    if is_meant:
        c.refuse(sentence, span)


def _properties_ahead(c: Cursor) -> _Pairs:
    """Return all TBLPROPERTIES that follow before the query, as pairs. The cursor does not move."""
    start, pairs = c.index, _Pairs()
    while not c.is_at_end and not c.is_at("AS"):
        if c.is_at("TBLPROPERTIES", "("):
            c.take()
            pairs += parse_properties(c)
        elif c.is_at("STORED", "AS"):
            c.take(2)
        elif c.is_at("("):
            c.skip_brackets()
        else:
            c.take()
    c.index = start
    return pairs


# ── the clauses ──────────────────────────────────────────────────────────────────────────────


def _parse_clauses(c: Cursor, draft: _TableDraft) -> Query | None:
    """Parse the clauses behind the table's name and columns into ``draft``; return the place of
    CREATE TABLE AS's query, unread, or None. ORC's classes, as SHOW CREATE TABLE prints them, set
    ``stored_as``. A second clause of another kind, and other words, are a syntax error; CLUSTER BY
    and SKEWED BY raise UnsupportedError."""
    while not c.is_at_end:
        if c.accept("AS"):
            return Query(c.take_rest()) if not c.is_at_end else c.fail("Expected a query")
        if c.is_at_any(("SELECT", "WITH", "(")):
            return Query(c.take_rest())
        if _accept_orc_clause(c):
            draft.stored_as = "ORC"
            continue
        at = c.token
        key = next((words for words in _CLAUSES if c.is_at(*words)), None)
        if key is None:
            if c.is_at("CLUSTER", "BY"):
                c.refuse("CLUSTER BY is not supported: use CLUSTERED BY (…) INTO n BUCKETS")
            if c.is_at("SKEWED", "BY"):
                c.refuse("SKEWED BY is not supported")
            if c.is_at("CLONE") or c.is_at("SHALLOW", "CLONE") or c.is_at("DEEP", "CLONE"):
                c.refuse("CLONE is not supported: CREATE TABLE … AS SELECT * FROM … copies rows")
            clause_words = [word for words in _CLAUSES for word in words]
            expected = "Expected a clause of CREATE TABLE or the end of the statement"
            c.fail(expected, also_expected=clause_words)
        if key[0] in draft.clause_words:
            c.fail(f"Expected one {' '.join(key)} clause", at)
        draft.clause_words.add(key[0])
        c.take(len(key))
        _CLAUSES[key](c, draft)
    return None


def _parse_comment(c: Cursor, draft: _TableDraft) -> None:
    draft.comment = c.take_string("the comment in quotes")


def _parse_location(c: Cursor, draft: _TableDraft) -> None:
    draft.location = c.take_string("a path in quotes")


def _parse_tblproperties(c: Cursor, draft: _TableDraft) -> None:
    draft.properties, draft.property_spans = parse_properties_and_places(c)


def _parse_stored_as(c: Cursor, draft: _TableDraft) -> None:
    """Parse the format behind STORED AS into ``draft``, as the user wrote it."""
    draft.stored_as = c.take_name_part("a format").value


def _parse_partitioned_by(c: Cursor, draft: _TableDraft) -> None:
    """Parse the bracket behind PARTITIONED BY into ``draft``: names alone, or definitions with
    types. A transform such as ``days(t)`` raises UnsupportedError."""
    if not c.is_at("("):
        c.fail("Expected '('")
    second = c.peek(2)
    if c.peek().is_name and second.upper in (",", ")"):
        draft.partition_names = parse_column_list(c)
    elif second.upper == "(":
        c.take()
        c.refuse("A transform in PARTITIONED BY is not supported: name the columns")
    else:
        draft.partitioned_by = parse_columns_in_brackets(c, draft.constraints)


def _parse_clustered_by(c: Cursor, draft: _TableDraft) -> None:
    """Parse the text behind CLUSTERED BY into ``draft``: the columns, SORTED BY and INTO n BUCKETS,
    n from 1 to 4096."""
    draft.bucket_columns = parse_column_list(c)
    if c.accept("SORTED", "BY"):
        draft.sorted_by = _parse_sort_columns(c)
    c.expect("INTO")
    at = c.token
    draft.num_buckets = c.take_number()
    if not 0 < draft.num_buckets <= 4096:
        c.fail("Expected a number of buckets from 1 to 4096", at)
    c.expect("BUCKETS")


def _parse_sort_columns(c: Cursor) -> tuple[SortBy, ...]:
    """Parse the columns of SORTED BY in brackets."""
    if not c.accept("("):
        c.fail("Expected '('")
    sort_columns = [_parse_sort_column(c)]
    while c.take_separator():
        sort_columns.append(_parse_sort_column(c))
    return tuple(sort_columns)


def _parse_sort_column(c: Cursor) -> SortBy:
    """Parse ``column [ASC|DESC]`` of SORTED BY. NULLS FIRST and NULLS LAST raise
    UnsupportedError."""
    start = c.index
    name = c.take_name("the name of a column")
    descending = c.accept("DESC") is not None
    if not descending:
        c.accept("ASC")
    if c.is_at("NULLS"):
        c.refuse("NULLS FIRST and NULLS LAST are not supported here: Hive has nulls first in "
                 "ascending order, last in descending order")  # fmt: skip
    return SortBy(name, descending, c.span_from(start))


_CLAUSES: dict[tuple[str, ...], Callable[[Cursor, _TableDraft], None]] = {
    ("COMMENT",): _parse_comment,
    ("LOCATION",): _parse_location,
    ("TBLPROPERTIES",): _parse_tblproperties,
    ("STORED", "AS"): _parse_stored_as,
    ("PARTITIONED", "BY"): _parse_partitioned_by,
    ("CLUSTERED", "BY"): _parse_clustered_by,
    ("USING", OWN_FORMAT): lambda c, draft: None,  # ``clause_words`` has it
}


def _refuse_excluded_clauses(c: Cursor, draft: _TableDraft, query: Query | None) -> None:
    """Raise UnsupportedError for clauses that exclude each other: with LIKE, a query, COMMENT,
    partitions or buckets; with a query, PARTITIONED BY with types. Raise SqlSyntaxError if there
    are no columns, no AS and no LIKE."""
    if draft.like is not None:
        if query is not None or draft.clause_words & {"PARTITIONED", "CLUSTERED", "COMMENT"}:
            c.refuse(
                "CREATE TABLE … LIKE takes its columns, partitions and buckets from the "
                "other table; further clauses are not supported",
                draft.like.span,
            )
    elif query is not None:
        if draft.partitioned_by:
            c.refuse(
                "PARTITIONED BY of CREATE TABLE … AS takes names only: the types stand in the list "
                "of columns before it, or come from the query",
                draft.partitioned_by[0].span,
            )
    elif not draft.columns:
        c.fail("Expected the columns, AS or LIKE")
    if draft.constraints and not draft.columns:
        c.refuse("A list of constraints needs the columns, too", draft.constraints[0].span)
