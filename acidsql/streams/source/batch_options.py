"""The options of ``spark.read.format("acidsql")`` for a table of a metastore. Their names ignore
case, as Spark's do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import SettingError
from acidsql.streams.source.source_options import STREAM_ONLY, column_names, table_name, time_ms

# Names of a setting, the one that messages use first: ours, then Spark's and Delta Lake's.
_VERSION, _TIMESTAMP = ("version", "versionAsOf"), ("timestamp", "timestampAsOf")
_SNAPSHOT, _COLUMNS = ("snapshot",), ("columns",)
_OPTIONS = ("table", "warehouse", "metastore", *_VERSION, *_TIMESTAMP, *_SNAPSHOT, *_COLUMNS)

_PREFIX_OF_TABLES = "option."  # Spark's catalog gives the options of a lasting table so


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What a query reads of a table.

    Attributes:
        table: The table.
        columns: The names of the shown columns, in lower case; None: all.
        version: The version to show; None: not given.
        timestamp_ms: The time whose version is shown, in milliseconds since the epoch; None: not
            given.
        write_ids: The visible write ids; None: not given.
    """

    table: TableName
    columns: tuple[str, ...] | None = None
    version: int | None = None
    timestamp_ms: int | None = None
    write_ids: ValidWriteIdList | None = None


def batch_options(options: Mapping[str, str]) -> BatchOptions:
    """Read the options of a query, whose names ignore case, and check them. Without a database, the
    table is in ``default``.

    Raises:
        SettingError: An option is missing, unknown or wrong, or two of them contradict each other.
    """
    texts = {name.lower(): value for name, value in options.items()}
    if any(name.startswith(_PREFIX_OF_TABLES) for name in texts):
        raise SettingError(
            "Spark's catalog cannot keep a table USING acidsql. Write CREATE TEMPORARY VIEW v "
            "USING acidsql OPTIONS (table 'db.t', …), or run CREATE TABLE by acid.sql.",
            name="table",
        )
    known_names = {name.lower() for name in _OPTIONS}
    for name in sorted(set(texts) - known_names):
        stream = " It is one of spark.readStream." if name in STREAM_ONLY else ""
        raise SettingError(
            f"spark.read.format('acidsql') has no option '{name}'.{stream} It has: "
            f"{', '.join(_OPTIONS)}.",
            name=name,
        )
    if "table" not in texts:
        raise SettingError(
            "Name the table, .option('table', 'db.t'), or the directory of one without a "
            "metastore, .load('/path').",
            name="table",
        )
    moments = [_given_option(texts, names) for names in (_VERSION, _TIMESTAMP, _SNAPSHOT)]
    given_moments = [moment for moment in moments if moment is not None]
    if len(given_moments) > 1:
        names = " and ".join(name for name, _ in given_moments)
        raise SettingError(f"Set one of {names}.", name=given_moments[1][0])
    version, timestamp, snapshot = moments
    columns = _given_option(texts, _COLUMNS)
    return BatchOptions(
        table_name(texts["table"]),
        None if columns is None else chosen_columns(columns[1]),
        None if version is None else _version(*version),
        None if timestamp is None else time_ms(*timestamp),
        None if snapshot is None else ValidWriteIdList.parse(snapshot[1]),
    )


def _given_option(texts: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the name and the text of the option with one of these names; None if none is given.
    Raise SettingError if two are given."""
    given = [(name, texts[name.lower()]) for name in names if name.lower() in texts]
    if len(given) > 1:
        raise SettingError(f"{given[0][0]} and {given[1][0]} are one option.", name=given[1][0])
    return given[0] if given else None


def _version(name: str, text: str) -> int:
    """Return a version, which is a number from 0 on. Raise SettingError for all else."""
    if not text.isdecimal():
        raise SettingError(f"{name}='{text}' is no version.", name=name)
    return int(text)


def chosen_columns(text: str) -> tuple[str, ...]:
    """Return the names of columns, in lower case. Raise SettingError if there are none, or one
    twice."""
    if not (names := column_names(text.lower())):
        raise SettingError("The option columns names no column.", name="columns")
    for i, name in enumerate(names):
        if name in names[:i]:
            raise SettingError(f"The option columns names '{name}' twice.", name="columns")
    return names
