"""The options of ``df.write`` that mean something for an ACID table.

They have Delta Lake's and Spark's names. Each acts, or is an error: one that was silently ignored
would replace a whole table where a program means a few rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from acidsql.errors import SettingError, UnsupportedError

_MERGE_SCHEMA, _OVERWRITE_SCHEMA = "mergeschema", "overwriteschema"
_PARTITIONS, _REPLACE_WHERE = "partitionoverwritemode", "replacewhere"
_Value = TypeVar("_Value")
_SHOWN = {
    _MERGE_SCHEMA: "mergeSchema",
    _OVERWRITE_SCHEMA: "overwriteSchema",
    _PARTITIONS: "partitionOverwriteMode",
    _REPLACE_WHERE: "replaceWhere",
}


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """The options that were set; None: not set.

    Attributes:
        merges_schema: The table gets the columns of the rows that it lacks.
        overwrites_schema: An overwrite may give the table the rows' columns.
        partitions: ``static``: an overwrite replaces all partitions; ``dynamic``: those that get
            rows.
        replace_where: An overwrite replaces the rows that satisfy this condition.
    """

    merges_schema: bool | None = None
    overwrites_schema: bool | None = None
    partitions: str | None = None
    replace_where: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, str], *, is_overwrite: bool) -> WriterOptions:
        """Return the options with these names, in lower case, and values.

        Raises:
            UnsupportedError: An option has no meaning here, and would be lost.
            SettingError: A value is wrong; options exclude each other; or ``replaceWhere`` comes
                without the mode ``overwrite``.
        """
        for name in options:
            if name not in _SHOWN:
                raise UnsupportedError(
                    f"An ACID table has no option '{name}' of a writer. It has "
                    f"{', '.join(_SHOWN.values())}. Properties of a table go into TBLPROPERTIES, "
                    "or into df.writeTo(…).tableProperty(…).",
                    condition="UNSUPPORTED_FEATURE.WRITER_OPTION",
                )
        read = cls(
            _choice(options, _MERGE_SCHEMA, _TRUTHS),
            _choice(options, _OVERWRITE_SCHEMA, _TRUTHS),
            _choice(options, _PARTITIONS, {"static": "static", "dynamic": "dynamic"}),
            options.get(_REPLACE_WHERE),
        )
        if read.replace_where is not None and not is_overwrite:
            raise SettingError(
                "The option replaceWhere needs mode('overwrite').", name=_SHOWN[_REPLACE_WHERE]
            )
        if is_overwrite and read.overwrites_schema and read.keeps_table:
            raise SettingError(
                "The option overwriteSchema makes a new table, so it excludes replaceWhere and "
                "partitionOverwriteMode='dynamic'.",
                name=_SHOWN[_OVERWRITE_SCHEMA],
            )
        return read

    @property
    def keeps_table(self) -> bool:
        """Whether an overwrite by ``saveAsTable`` replaces rows of the table, and no new table
        takes its place. With overwriteSchema, mergeSchema has nothing left to do, as in Delta
        Lake."""
        keeps_columns = self.overwrites_schema is False or (
            bool(self.merges_schema) and not self.overwrites_schema
        )
        return self.replace_where is not None or self.partitions == "dynamic" or keeps_columns

    def replaced_rows(self, *, is_partitioned: bool, by_name: bool) -> str | None:
        """Return the condition of the rows that an overwrite replaces; None: those of the
        partitions that get rows, or all rows of a table without partitions. ``by_name``: for
        ``saveAsTable``, which replaces all partitions unless an option says otherwise."""
        if self.replace_where is not None:
            return self.replace_where
        partitions = self.partitions or ("static" if by_name else "dynamic")
        return "true" if is_partitioned and partitions == "static" else None


_TRUTHS = {"true": True, "false": False}


def _choice(options: Mapping[str, str], name: str, choices: Mapping[str, _Value]) -> _Value | None:
    """Return what the value of an option stands for, whatever its case; None if it is not set.
    Raise SettingError for another value."""
    value = options.get(name)
    if value is None:
        return None
    if value.lower() not in choices:
        raise SettingError(
            f"{_SHOWN[name]}='{value}' is neither {' nor '.join(choices)}.", name=_SHOWN[name]
        )
    return choices[value.lower()]
