"""Refuses statements of other systems about ACID tables by name, and says what serves instead."""

from __future__ import annotations

from typing import NoReturn

from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import IsOurs
from acidsql.sql.text.misspelt import meant_word
from acidsql.sql.text.tokens import Span, TokenKind, words

# What serves instead, by the first words after ALTER TABLE t [PARTITION (…)].
_REPAIR = "acid.repair(table, dry_run=False) makes the partitions what the directories are"
_ALTER_SUBSTITUTES = {
    "ARCHIVE PARTITION": "COMPACT 'major' makes few files of many",
    "CLUSTERED BY": "CREATE TABLE … CLUSTERED BY … AS SELECT copies the rows into buckets",
    "CONCATENATE": "COMPACT 'major' makes few files of many",
    "EXCHANGE PARTITION": "INSERT … SELECT copies rows, and DROP PARTITION drops the old ones",
    "RECOVER PARTITIONS": _REPAIR,
    "SET LOCATION": "INSERT … SELECT copies the rows into a table of another LOCATION",
    "SET SERDE": "the files of an ACID table are ORC, or Parquet if it is insert-only",
    "SET SERDEPROPERTIES": "TBLPROPERTIES of CREATE TABLE have ORC's properties (orc.compress …)",
    "TOUCH": "there are no hooks that it would call",
    "UPDATE STATISTICS": "ANALYZE TABLE … COMPUTE STATISTICS counts what is in the table",
}


# What serves instead, by the first words of statements that Delta Lake, Snowflake and others have.
_FOREIGN_STATEMENTS = {
    "VACUUM": "acid.clean() deletes what nobody needs any more, as the compactor does by itself",
    "OPTIMIZE": "ALTER TABLE … COMPACT 'major' makes few files of many, and ALTER TABLE … COMPACT "
    "'rebalance' … ORDER BY sorts the rows, as ZORDER does",
    "REORG TABLE": "ALTER TABLE … COMPACT 'major' writes the live rows into new files",
    "UPSERT INTO": "MERGE INTO … WHEN MATCHED … WHEN NOT MATCHED … updates and inserts",
    "REPLACE INTO": "INSERT INTO … REPLACE USING (columns) … replaces rows",
    "COPY INTO": "LOAD DATA copies ORC files, and INSERT … SELECT * FROM csv.`…` reads others",
    "MSCK REPAIR TABLE": _REPAIR,
    "REPAIR TABLE": _REPAIR,
    "FSCK REPAIR TABLE": "acid.check(table) looks for damage",
    "DESCRIBE DETAIL": "DESCRIBE EXTENDED shows the table, acid.files(table) its files",
    "DESC DETAIL": "DESCRIBE EXTENDED shows the table, acid.files(table) its files",
    "CONVERT TO DELTA": "ALTER TABLE … CONVERT TO ACID makes a plain table an ACID table",
    "CONVERT TO ICEBERG": "ALTER TABLE … CONVERT TO ACID makes a plain table an ACID table",
    "FLASHBACK TABLE": "RESTORE TABLE … TO VERSION AS OF … brings an older version back",
    "UNDROP TABLE": "a table of that name exists, and the files of a dropped one are deleted",
}
_FIRST_WORDS = frozenset(phrase.split()[0] for phrase in (*_FOREIGN_STATEMENTS, "CREATE INDEX"))
_ALTER_STARTS = words("ADD CHANGE RENAME REPLACE DROP SET UNSET COMPACT") | {
    phrase.split()[0] for phrase in _ALTER_SUBSTITUTES
}


def refuse_foreign_statement(c: Cursor, is_ours: IsOurs) -> None:
    """Raise UnsupportedError, with what serves instead, for a statement that only other systems
    have, as VACUUM, if it names an ACID table. Otherwise return, perhaps with the cursor moved."""
    if c.token.upper not in _FIRST_WORDS:
        return
    if c.is_at("CREATE", "INDEX"):
        _refuse_index(c, is_ours)
        return
    if c.peek().upper == "DETAIL" and is_ours(("detail",)):
        return  # DESCRIBE of a column of the table `detail`
    for phrase, instead in _FOREIGN_STATEMENTS.items():
        count = len(phrase.split())
        if c.is_at(*phrase.split()) and c.peek(count).is_name:
            span = Span(c.token.start, c.peek(count - 1).end)
            c.take(count)
            if is_ours(c.take_name("the name of a table").parts):
                c.refuse(f"{phrase} is not supported: {instead}", span)
            return


def _refuse_index(c: Cursor, is_ours: IsOurs) -> None:
    """Raise UnsupportedError for ``CREATE INDEX … ON [TABLE] t`` if t is an ACID table; otherwise
    return, with the cursor moved."""
    span = Span(c.token.start, c.peek().end)
    c.skip_to(("ON",))
    if c.accept("ON"):
        c.accept("TABLE")
        if c.token.is_name and is_ours(c.take_name("the name of a table").parts):
            c.refuse(
                "CREATE INDEX is not supported: the least and greatest values in ORC files, and "
                "Bloom filters by the property 'orc.bloom.filter.columns', pass files over",
                span,
            )


def refuse_alter(c: Cursor) -> NoReturn:
    """Raise the UnsupportedError for an ALTER TABLE that an ACID table does not have, with what
    serves instead if that is known; SqlSyntaxError if the statement ends here. The cursor stands
    behind the table's name."""
    if c.is_at_end or meant_word(c.token.upper, _ALTER_STARTS):
        c.fail(
            "Expected ADD, CHANGE, RENAME or REPLACE COLUMNS, ADD or DROP CONSTRAINT, SET or UNSET "
            "TBLPROPERTIES, ADD, DROP or RENAME PARTITION, RENAME TO or COMPACT"
        )
    if c.accept("PARTITION") and c.is_at("("):
        c.skip_brackets()
    first_words = [c.peek(n).upper for n in range(2) if c.peek(n).kind is TokenKind.WORD]
    span = Span(c.token.start, c.peek(max(0, len(first_words) - 1)).end)
    phrases = (
        phrase for n in (2, 1) if (phrase := " ".join(first_words[:n])) in _ALTER_SUBSTITUTES
    )
    instead = next((f": {_ALTER_SUBSTITUTES[known_phrase]}" for known_phrase in phrases), "")
    action = " ".join(first_words)
    c.refuse(f"ALTER TABLE … {action} is not supported on an ACID table{instead}", span)


def refuse_export(c: Cursor, is_ours: IsOurs) -> None:
    """Raise UnsupportedError for ``EXPORT TABLE t TO '…'`` if t is an ACID table; otherwise return,
    perhaps with the cursor moved."""
    if c.is_at("EXPORT", "TABLE"):
        span = c.take(2).span
        if is_ours(c.take_name("the name of a table").parts):
            c.refuse(
                "EXPORT TABLE is not supported: INSERT OVERWRITE DIRECTORY '…' USING orc SELECT … "
                "writes a table's rows into files, and acid.export_to_hive moves a table to a Hive "
                "Metastore",
                span,
            )


def refuse_import(c: Cursor) -> None:
    """Raise UnsupportedError for Hive's ``IMPORT [[EXTERNAL] TABLE t] FROM '…'``, if EXTERNAL,
    TABLE or FROM follows the word IMPORT at the cursor; any other IMPORT passes."""
    if c.peek().upper in ("EXTERNAL", "TABLE", "FROM"):
        c.refuse(
            "IMPORT is not supported: CREATE TABLE … LOCATION makes a table of ORC files where "
            "they are, and LOAD DATA copies them into a table"
        )
