"""Hadoop's settings of one object store, by their short names. Workers import this module, too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from acidsql.errors import SettingError

_SECRET = re.compile(r"secret|password|token|key|sas\.", re.IGNORECASE)
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h|)", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "": 0.001}
_LEAST_SECRET = 4  # a text that is shorter would be found in any message


def is_secret(name: str) -> bool:
    """Whether a setting's value must be shown to nobody, by the words in its name."""
    return _SECRET.search(name) is not None


class HadoopConf:
    """The settings that hold for one bucket or container.

    A setting without text counts as unset, as in Hadoop. No method's error has a value of a secret
    setting in it.

    Args:
        layers: For each layer the settings by their short names (``endpoint``), each with its whole
            name and its value; a later layer overrides an earlier one.
    """

    def __init__(self, *layers: Mapping[str, tuple[str, str]]) -> None:
        self._settings: dict[str, tuple[str, str]] = {}
        for layer in layers:
            self._settings.update(layer)
        self._names_read: set[str] = set()

    def text(self, name: str) -> str | None:
        """Return a setting's value without blanks around it; None if it is unset, or blank. The
        setting counts as read: see ``unread_names``.
        """
        self._names_read.add(name)
        return self._settings[name][1].strip() or None if name in self._settings else None

    def name(self, name: str) -> str:
        """Return the whole name under which a setting was given. Raises KeyError if it is
        unset.
        """
        return self._settings[name][0]

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a setting as a boolean; ``default`` if it is unset. Raises SettingError if it is
        neither true nor false, in any case.
        """
        flag_text = (self.text(name) or str(default)).lower()
        if flag_text not in ("true", "false"):
            raise self.setting_error(name, "is neither true nor false")
        return flag_text == "true"

    def positive_integer(self, name: str) -> int | None:
        """Return a setting as a whole number from 1 on; None if it is unset. Raises SettingError if
        it is no such number.
        """
        digits = self.text(name)
        if digits is None:
            return None
        if not digits.isascii() or not digits.isdigit() or not int(digits):
            raise self.setting_error(name, "is no whole number from 1 on")
        return int(digits)

    def seconds(self, name: str) -> float | None:
        """Return a duration in seconds. The setting is a whole number and a unit, ms, s, m or h;
        without a unit it is in milliseconds. None if it is unset or 0.

        Raises SettingError if it is no such duration.
        """
        duration_text = self.text(name)
        if duration_text is None:
            return None
        duration = _DURATION.fullmatch(duration_text)
        if duration is None:
            raise self.setting_error(name, "is no duration like 500ms, 30s or 5m")
        return int(duration[1]) * _SECONDS[duration[2].lower()] or None

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Raise SettingError for the first of these settings that is given and not ``false``. All
        that were looked at count as read.

        ``reasons``: short name → what the error says after the setting.
        """
        for name, why in reasons.items():
            if (self.text(name) or "false").lower() != "false":
                raise self.setting_error(name, why)

    def setting_error(self, name: str, fault: str) -> SettingError:
        """Return the error ``name=value fault.`` for a setting; a secret value is left out. Raises
        KeyError if the setting is unset.
        """
        full_name, value = self._settings[name]
        shown_setting = full_name if is_secret(full_name) else f"{full_name}={value}"
        return SettingError(f"{shown_setting} {fault}.", name=full_name)

    def without_secrets(self, message: str) -> str:
        """Replace the values of secret settings in a message by ``…``, if they have four characters
        or more.
        """
        values = {value.strip() for name, value in self._settings.values() if is_secret(name)}
        for value in sorted(values, key=len, reverse=True):
            if len(value) >= _LEAST_SECRET:
                message = message.replace(value, "…")
        return message

    def unread_names(self, harmless: Iterable[str]) -> list[str]:
        """Return the full names of the settings that no code has read, sorted.

        ``harmless``: beginnings of the short names of settings that do not change where or how data
        is read and written. They are left out.
        """
        harmless_prefixes = tuple(harmless)
        return sorted(
            full_name
            for short, (full_name, _) in self._settings.items()
            if short not in self._names_read and not short.startswith(harmless_prefixes)
        )


def layer(
    conf: Mapping[str, str], prefix: str, except_prefix: str = "\0"
) -> dict[str, tuple[str, str]]:
    """Return the settings whose names begin with a prefix, as a layer of ``HadoopConf``: the rest
    of the name → the whole name and the value.

    ``except_prefix``: the beginning of names that are left out.
    """
    return {
        name[len(prefix) :]: (name, value)
        for name, value in conf.items()
        if name.startswith(prefix) and not name.startswith(except_prefix)
    }
