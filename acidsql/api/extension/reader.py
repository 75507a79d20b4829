"""``spark.read``: tables by name, also in an older version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acidsql.arguments import need_count
from acidsql.errors import SettingError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader

    from acidsql.api.extension.extension import Extension

    _Reader = DataFrameReader
else:
    _Reader = object

_VERSION, _TIMESTAMP = "versionasof", "timestampasof"  # Delta Lake's names, in lower case


class ReaderCalls(_Reader):
    """The calls of a ``DataFrameReader`` that acidsql takes over."""

    _extension: Extension
    _version: int | None = None
    _timestamp: str | None = None

    def option(self, key: str, value: Any) -> Any:
        """Note ``versionAsOf`` and ``timestampAsOf``, and set the option for Spark, too."""
        self._note(key, value)
        return super().option(key, value)

    def options(self, **options: Any) -> Any:
        """Set options, as ``option`` does."""
        for key, value in options.items():
            self._note(key, value)
        return super().options(**options)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803 - PySpark's name
        """Return the rows of a table: of an ACID table as ``acid.table`` does, in the version of
        the options ``versionAsOf`` or ``timestampAsOf``."""
        if self._extension.find(tableName) is None:
            return super().table(tableName)
        return self._extension.rows(tableName, self._version, self._timestamp)

    def _note(self, key: str, value: Any) -> None:
        """Note the value of an option about versions. None sets nothing, as in PySpark."""
        if value is None:
            return
        if key.lower() == _VERSION:
            self._version = _version_number(value)
        elif key.lower() == _TIMESTAMP:
            self._timestamp = value


def _version_number(value: Any) -> int:
    """Return the version that an option names. Raise SettingError if it is no number."""
    try:
        version = int(value)
    except ValueError:
        raise SettingError(
            f"versionAsOf='{value}' is no number of a version.", name="versionAsOf"
        ) from None
    need_count(version, "versionAsOf")
    return version
