"""``spark.read``: tables by name, also in an older version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acidsql.arguments import need_count
from acidsql.errors import AnalysisError, SettingError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader

    from acidsql.api.extension.extension import Extension

    _Reader = DataFrameReader
else:
    _Reader = object

_VERSION, _TIMESTAMP = "versionasof", "timestampasof"  # Delta Lake's names, in lower case


class ReaderCalls(_Reader):
    """The calls of a ``DataFrameReader`` that acidsql takes over. Those that set something note it,
    and set it for Spark, too: only ``table`` knows whose table it is."""

    _extension: Extension
    _has_schema: bool = False

    @property
    def _noted_options(self) -> dict[str, Any]:
        """The options that were set, by their names in lower case."""
        options: dict[str, Any] = self.__dict__.setdefault("_acidsql_options", {})
        return options

    def schema(self, schema: Any) -> Any:
        """Note that there is a schema, and set it for Spark."""
        self._has_schema = True
        return super().schema(schema)

    def option(self, key: str, value: Any) -> Any:
        """Note an option, and set it for Spark. None sets nothing, as in PySpark."""
        self._note(key, value)
        return super().option(key, value)

    def options(self, **options: Any) -> Any:
        """Set options, as ``option`` does."""
        for key, value in options.items():
            self._note(key, value)
        return super().options(**options)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803 - PySpark's name
        """Return the rows of a table: of an ACID table as ``acid.table`` does, in the version of
        the options ``versionAsOf`` or ``timestampAsOf``.

        Raises:
            AnalysisError: The reader has a schema.
            UnsupportedError: The reader has an option that would be lost.
            SettingError: ``versionAsOf`` is no number of a version.
        """
        if self._extension.find(tableName) is None:
            return super().table(tableName)
        if self._has_schema:
            raise AnalysisError(
                "table() excludes schema(): the table has its columns.",
                condition="_LEGACY_ERROR_TEMP_1189",
            )
        options = self._noted_options
        for name in options:
            if name not in (_VERSION, _TIMESTAMP):
                raise UnsupportedError(
                    f"An ACID table has no option '{name}' of a reader. It has versionAsOf and "
                    "timestampAsOf. acid.changes(…) reads changes.",
                    condition="UNSUPPORTED_FEATURE.READER_OPTION",
                )
        version = _version_number(options[_VERSION]) if _VERSION in options else None
        return self._extension.rows(tableName, version, options.get(_TIMESTAMP))

    def _note(self, key: str, value: Any) -> None:
        """Note the value of an option. None sets nothing."""
        if value is not None:
            self._noted_options[key.lower()] = value


def _version_number(value: Any) -> int:
    """Return the version that an option names. Raise SettingError if it is no number."""
    try:
        version = int(str(value))
    except ValueError:
        raise SettingError(
            f"versionAsOf='{value}' is no number of a version.", name="versionAsOf"
        ) from None
    need_count(version, "versionAsOf")
    return version
