"""The options of ``spark.readStream.format("acidsql")``. Their names ignore case, as Spark's do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from acidsql.acid.table import TableName
from acidsql.errors import CatalogError, SettingError, UnsupportedError
from acidsql.sql.text.given_names import table_parts
from acidsql.streams.source.read_limits import CAN_LIMIT

_OPTIONS = (
    "table", "warehouse", "metastore", "path", "startingVersion", "startingTimestamp",
    "failOnDataLoss", "readChangeFeed", "keys", "maxVersionsPerTrigger", "maxBytesPerTrigger",
)  # fmt: skip
LATEST = "latest"
# Options that only streams have, in lower case.
STREAM_ONLY = frozenset(name.lower() for name in _OPTIONS[4:])


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a stream of a table.

    Attributes:
        table: The table.
        start: The first version, or LATEST for the versions after now; None: the current rows
            first.
        start_ms: The time of the first commit, in milliseconds since the epoch; None: not given.
        fails_on_data_loss: Whether it is an error if files were deleted that the stream needs.
        is_feed: Read deletes and updates too.
        keys: The columns that make a deleted row and a new row the same row; None: those of the
            table property.
        max_versions: At most so many versions in a batch.
        max_bytes: At most so many bytes in a batch, unless one version has more.
    """

    table: TableName
    start: int | str | None = None
    start_ms: int | None = None
    fails_on_data_loss: bool = True
    is_feed: bool = False
    keys: tuple[str, ...] | None = None
    max_versions: int | None = None
    max_bytes: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether ``max_versions`` or ``max_bytes`` limits a batch."""
        return self.max_versions is not None or self.max_bytes is not None


def source_options(options: Mapping[str, str]) -> SourceOptions:
    """Read the options of a stream, whose names ignore case, and check them. Without a database,
    the table is in ``default``.

    Raises:
        SettingError: An option is missing, unknown or wrong, or two of them contradict each other.
        UnsupportedError: This version of Spark cannot limit a batch.
    """
    option_texts = {name.lower(): value for name, value in options.items()}
    names_by_lower = {name.lower(): name for name in _OPTIONS}
    if unknown := sorted(set(option_texts) - set(names_by_lower)):
        raise SettingError(
            f"A stream of a table has no option '{unknown[0]}'. It has: {', '.join(_OPTIONS)}.",
            name=unknown[0],
        )
    if "table" not in option_texts:
        raise SettingError(
            "Name the table, .option('table', 'db.t'): a stream reads no bare directory.",
            name="table",
        )
    parsed_options = SourceOptions(
        table_name(option_texts["table"]),
        _starting_version(option_texts),
        _starting_time_ms(option_texts),
        _boolean_option(option_texts, "failOnDataLoss", default=True),
        _boolean_option(option_texts, "readChangeFeed", default=False),
        _key_columns(option_texts),
        _positive_number(option_texts, "maxVersionsPerTrigger"),
        _positive_number(option_texts, "maxBytesPerTrigger"),
    )
    if parsed_options.start is not None and parsed_options.start_ms is not None:
        raise SettingError(
            "Set startingVersion or startingTimestamp, not both.", name="startingTimestamp"
        )
    if parsed_options.keys is not None and not parsed_options.is_feed:
        raise SettingError("The option keys needs the option readChangeFeed=true.", name="keys")
    if parsed_options.is_limited and not CAN_LIMIT:
        raise UnsupportedError(
            "maxVersionsPerTrigger and maxBytesPerTrigger need Spark 4.2 or later. Older versions "
            "do not tell a Python data source where a batch begins.",
            condition="UNSUPPORTED_FEATURE.STREAM_SOURCE",
        )
    return parsed_options


def _starting_version(option_texts: Mapping[str, str]) -> int | str | None:
    """Return the option startingVersion: digits as a number, "latest" in any case as LATEST, or
    None if it is not set. Raise SettingError for all else."""
    if (text := option_texts.get("startingversion")) is None:
        return None
    if text.lower() == LATEST:
        return LATEST
    if not text.isdecimal():
        raise SettingError(
            f"startingVersion='{text}' is neither a version nor latest.", name="startingVersion"
        )
    return int(text)


def _starting_time_ms(option_texts: Mapping[str, str]) -> int | None:
    """Return the option startingTimestamp in milliseconds since the epoch; None if it is not set.
    Raise SettingError as ``time_ms``."""
    if (text := option_texts.get("startingtimestamp")) is None:
        return None
    return time_ms("startingTimestamp", text)


def time_ms(name: str, text: str) -> int:
    """Return a time of an option in milliseconds since the epoch. Raise SettingError unless it is
    ISO 8601 with an offset: this process does not know the session's time zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise SettingError(
            f"{name}='{text}' is no time with an offset, such as "
            "2026-11-26T08:00:00+01:00 or 2026-11-26T07:00:00Z.",
            name=name,
        )
    return int(time.timestamp() * 1000)


def _boolean_option(option_texts: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return an option that is true or false, whatever the case. Raise SettingError for all
    else."""
    text = option_texts.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise SettingError(f"{name}='{text}' is neither true nor false.", name=name)
    return text == "true"


def _positive_number(option_texts: Mapping[str, str], name: str) -> int | None:
    """Return an option that is a whole number from 1 on; None if it is not set. Raise SettingError
    for all else."""
    if (text := option_texts.get(name.lower())) is None:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise SettingError(f"{name}='{text}' is no number from 1 on.", name=name)
    return int(text)


def _key_columns(option_texts: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the names in the option ``keys``, separated by commas, without blanks and empty ones;
    None if it is not set."""
    text = option_texts.get("keys")
    return None if text is None else column_names(text)


def column_names(text: str) -> tuple[str, ...]:
    """Return the names in a text, separated by commas, without blanks and empty ones."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def table_name(text: str) -> TableName:
    """Return the name of the table, in lower case; its database is ``default`` if none is named.
    Parts may be in backticks. Raise SettingError for all else."""
    try:
        parts = table_parts(text.lower())
    except CatalogError:
        parts = ()
    if not 1 <= len(parts) <= 2:
        raise SettingError(f"table='{text}' is not database.table.", name="table")
    return TableName(*("default", *parts)[-2:])
