"""The kinds of settings: durations, numbers, choices.

A setting is a field of a frozen dataclass. One of the functions below makes the field. The field's
metadata holds a ``Setting``: its name, its default, and how to parse its text.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from acidsql.errors import SettingError

_MS_PER_UNIT: Mapping[str, float] = {
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1000),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("us", "usec", "microsecond", "microseconds"), 1e-3),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-6),
}
_DURATION = re.compile(r"(\d+)\s*([a-z]*)", re.IGNORECASE)
_UNITS = "d, h, min, s, ms, us, ns"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as a user sees it.

    Attributes:
        name: Hive's name, or a name that begins with ``acidsql.``.
        default: The default, as text.
        expects: Which values are allowed, in words for an error message.
        parse: Text → value; raises ValueError, KeyError or OverflowError for a bad text.
        show: Value → text; the inverse of ``parse``.
        doc: The purpose of the setting.
    """

    name: str
    default: str
    expects: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str]
    doc: str

    def read(self, value: object) -> Any:
        """Parse the text of ``value`` (``str(value)``, without white space around it), and return
        the setting's value. Raises SettingError, which says what is expected, for a bad one."""
        try:
            return self.parse(str(value).strip())
        except (ValueError, KeyError, OverflowError):
            raise SettingError(
                f"'{self.name}' cannot be '{value}': expected {self.expects}.",
                name=self.name,
                value=value,
                expected=self.expects,
            ) from None


def duration(name: str, default: str, doc: str, *, unit: str = "s", least_ms: int = 1) -> Any:
    """Make a dataclass field whose value is a time in whole milliseconds, with a text such as
    ``300s`` or ``5min``, as ``duration_setting`` says. ``unit`` is the unit of a number without
    one. A text for less than ``least_ms`` is refused."""
    return field(duration_setting(name, default, doc, unit=unit, least_ms=least_ms))


def duration_setting(
    name: str, default: str, doc: str, *, unit: str = "s", least_ms: int = 1
) -> Setting:
    """Make a setting whose value is a time in whole milliseconds, parsed from texts such as
    ``300s`` or ``5min``, and shown as ``300000ms``. A text is a whole number and one unit, in any
    case; a fraction of a millisecond is cut off.

    Args:
        name: The setting's name.
        default: The default, as text.
        doc: What the setting is for.
        unit: The unit of a number without one.
        least_ms: The least value; a text for less is refused, as is any other text.
    """

    def parse(text: str) -> int:
        match = _DURATION.fullmatch(text)
        if not match:
            raise ValueError(text)
        number, suffix = match.groups()
        milliseconds = int(number) * _MS_PER_UNIT[(suffix or unit).lower()]
        if milliseconds < least_ms:
            raise ValueError(text)
        return int(milliseconds)

    expects = f"a duration of at least {least_ms} ms, such as {default} (units: {_UNITS})"
    return Setting(name, default, expects, parse, lambda ms: f"{ms}ms", doc)


def count(name: str, default: str, doc: str, *, least: int = 1) -> Any:
    """Make a dataclass field that is a whole number of at least ``least``, with 1 to 18 digits and
    no sign. Any other text is refused."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:
            raise ValueError(text)
        return int(text)

    expects = f"a whole number of at least {least}, such as {default}"
    return field(Setting(name, default, expects, parse, str, doc))


def fraction(name: str, default: str, doc: str) -> Any:
    """Make a dataclass field that is a finite number of 0 or more, such as 0.1, in any form that
    ``float`` reads. Any other text is refused."""

    def parse(text: str) -> float:
        number = float(text)
        if not 0 <= number < float("inf"):
            raise ValueError(text)
        return number

    expects = f"a number of at least 0, such as {default}"
    return field(Setting(name, default, expects, parse, repr, doc))


def boolean(name: str, default: str, doc: str) -> Any:
    """Make a dataclass field that is True or False, with the text ``true`` or ``false`` in any
    case."""
    return choice(name, default, doc, {"true": True, "false": False})


def choice(name: str, default: str, doc: str, values: Mapping[str, Any]) -> Any:
    """Make a dataclass field whose text, in upper or lower case, is a key of ``values``, and whose
    value is what ``values`` has there. Any other text is refused. Keys are in lower case."""
    shown = {value: text for text, value in values.items()}
    expects = f"one of {', '.join(values)}"

    def parse(text: str) -> Any:
        return values[text.lower()]

    return field(Setting(name, default, expects, parse, shown.__getitem__, doc))


def fixed(name: str, value: str, doc: str) -> Any:
    """Make a dataclass field whose default is its only value, and any other text is refused: Hive
    lets users change it, acidsql does not."""

    def parse(text: str) -> str:
        if text != value:
            raise ValueError(text)
        return text

    return field(Setting(name, value, f"{value}, which is fixed", parse, str, doc))


def field(setting: Setting) -> Any:
    """Make a dataclass field with the default of a setting, parsed, and with the setting in its
    metadata, as ``"setting"``."""
    default = setting.parse(setting.default)
    return dataclasses.field(default=default, metadata={"setting": setting})
