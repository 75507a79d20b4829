"""Refuse days that Spark's ORC reader would show as other days.

They would be stored right (Hive shows them) and read back wrong, so we refuse to write them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acidsql.errors import WriteError
from acidsql.storage.orc.lost_days import FIRST_DAY, LOST_FROM, LOST_TO

_MICROS_A_DAY = 86_400_000_000


def refuse_unreadable_days(batch: pa.RecordBatch) -> None:
    """Check every date and timestamp of a batch, nested ones too.

    Raises:
        WriteError: A day is one of the ten days that the calendar change skipped, or it lies before
            the year 1.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for values in _days_and_timestamps(column):
            days = _days(values)
            is_lost = (days >= LOST_FROM) & (days <= LOST_TO)
            if is_lost.any() or (days < FIRST_DAY).any():
                raise WriteError(
                    f"Column '{name}' has a day that Spark's ORC reader would show as another: "
                    "from 1582-10-05 to 1582-10-14, or before the year 1.",
                    condition="DATETIME_FIELD_OUT_OF_BOUNDS",
                    sqlstate="22023",
                    column=name,
                )


def _days_and_timestamps(array: pa.Array) -> Iterator[pa.Array]:
    """Yield arrays of the dates and timestamps in an array, in structs, lists and maps too, without
    nulls and without what null parents hide. Other types yield nothing.
    """
    kind = array.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        yield array.drop_null()
    elif pa.types.is_struct(kind):
        for child in array.flatten():
            yield from _days_and_timestamps(child)
    elif pa.types.is_map(kind):
        present = array.drop_null()
        yield from _days_and_timestamps(present.keys)
        yield from _days_and_timestamps(present.items)
    elif pa.types.is_list(kind):
        yield from _days_and_timestamps(pc.list_flatten(array))


def _days(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return dates or timestamps as whole days since 1970, rounded down."""
    if pa.types.is_date(values.type):
        return np.asarray(values.cast(pa.int32()), dtype=np.int64)
    micros = np.asarray(values.cast(pa.timestamp("us")).cast(pa.int64()), dtype=np.int64)
    return micros // _MICROS_A_DAY
