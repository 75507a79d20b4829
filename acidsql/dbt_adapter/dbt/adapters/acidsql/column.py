"""A column, as dbt sees it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dbt.adapters.acidsql.relation import quoted_name
from dbt.adapters.base.column import Column
from dbt.adapters.spark.column import SparkColumn

_TIMESTAMPS = re.compile(r"\btimestamp(_ntz|_ltz| with local time zone)\b", re.IGNORECASE)
_TEXTS = ("string", "varchar", "char")


def stored_type(dtype: str) -> str:
    """Return a type of Spark's as a table's column has it: there is one TIMESTAMP, without a
    zone, also inside of arrays, maps and structs."""
    return _TIMESTAMPS.sub("timestamp", dtype)


@dataclass
class AcidsqlColumn(SparkColumn):
    """A column of a table, a view or a query."""

    @property
    def quoted(self) -> str:
        return quoted_name(self.column)

    def can_expand_to(self, other_column: Column) -> bool:
        """Whether both are texts. A query has no VARCHAR or CHAR: they come back as STRING, which
        is no change of the table's type."""
        return self.dtype.startswith(_TEXTS) and other_column.dtype.startswith(_TEXTS)
