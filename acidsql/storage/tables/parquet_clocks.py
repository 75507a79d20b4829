"""The wall clocks that INT96 timestamps of Parquet files mean.

Hive and Trino store a TIMESTAMP as INT96: the number of a day, and nanoseconds of this day, in UTC.
They convert the wall clock from their own time zone, and note the zone in the footer. Hive takes
days before 1582-10-15 as days of the Julian calendar, Trino as days of the proleptic Gregorian one;
the version of Hive is in the footers of Hive's files only. Impala and Arrow note no zone, and store
wall clocks as if they were in UTC. This module runs in workers.

Sources: Hive's ``NanoTimeUtils`` and ``TimestampTZUtil.convertTimestampToZone``; tried with files
of Hive 4.0.1 and Trino 483.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acidsql.errors import FormatError
from acidsql.storage.orc.encoding.zones import Zone, zone_of
from acidsql.storage.orc.row_schema import exact_children, nested_array, to_proleptic_timestamps

# Keys of footers.
_ZONE, _IS_BY_OLD_RULES, _HIVE = (
    b"writer.time.zone", b"writer.zone.conversion.legacy", b"writer.model.name",
)  # fmt: skip
_PARQUETS_JAVA_LIBRARY = "parquet-mr"  # so the footers' created_by begins if Hive or Spark wrote
_SECOND = 1_000_000  # microseconds


@dataclass(frozen=True)
class Int96Clock:
    """What the INT96 timestamps of a file mean.

    Attributes:
        zone: The time zone of the writer's wall clock.
        is_julian: Days before 1582-10-15 are those of the Julian calendar: Hive wrote the file.
        is_by_old_rules: The writer converted by the rules of Java's ``TimeZone``, and within the
            hybrid calendar (``hive.parquet.timestamp.write.legacy.conversion.enabled``).
    """

    zone: Zone
    is_julian: bool
    is_by_old_rules: bool

    def wall_clocks(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with all timestamps, nested ones too, turned into wall clocks.

        ``batch``: rows of the file, timestamps in microseconds.
        """
        columns = [self._with_wall_clocks(column) for column in batch.columns]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _with_wall_clocks(self, array: pa.Array) -> pa.Array:
        """Return an array with all timestamps in it turned into wall clocks."""
        if pa.types.is_timestamp(array.type):
            return self._wall_clocks_of(array)
        if not pa.types.is_nested(array.type):
            return array
        offsets, parts = exact_children(array)
        converted = [self._with_wall_clocks(part) for part in parts]
        return nested_array(array.is_null(), offsets, converted, array.type)

    def _wall_clocks_of(self, moments: pa.Array) -> pa.Array:
        """Return the wall clocks of moments in UTC, both in microseconds."""
        if self.is_by_old_rules:
            moments = self._moved(moments)
        if self.is_julian:
            moments = to_proleptic_timestamps(moments)
        return moments if self.is_by_old_rules else self._moved(moments)

    def _moved(self, moments: pa.Array) -> pa.Array:
        """Add the zone's offset at each moment."""
        micros = _integers_of(moments)
        offsets = self.zone.offsets(micros // _SECOND, has_mean_time=not self.is_by_old_rules)
        mask = moments.is_null().to_numpy(zero_copy_only=False)
        return pa.array(micros + offsets * _SECOND, mask=mask).cast(moments.type)


def int96_clock(path: str, column: str, created_by: str, keys: Mapping[bytes, bytes]) -> Int96Clock:
    """Return what the INT96 timestamps of a file mean, by its footer.

    Args:
        path: The file, for errors.
        column: A column with such timestamps, for errors.
        created_by: The library that wrote the file.
        keys: The footer's keys and values.

    Raises:
        FormatError: The file does not name the writer's time zone, and the writer may have been in
            any; or Python does not know the zone.
    """
    zone_name = keys.get(_ZONE)
    if zone_name is None and created_by.startswith(_PARQUETS_JAVA_LIBRARY):
        raise FormatError(
            f"Column '{column}' of '{path}' has timestamps in INT96, and the file does not name "
            "the time zone in which they were wall clocks, as files of Hive 4 and Trino do. Write "
            "the file again with TIMESTAMP_NTZ.",
            path=path,
        )
    try:
        zone = zone_of((zone_name or b"").decode())
    except FormatError as error:
        raise FormatError(f"'{path}' cannot be read: {error.message}", path=path) from error
    return Int96Clock(zone, _HIVE in keys, keys.get(_IS_BY_OLD_RULES) == b"true")


def has_nanoseconds(
    in_micros: Iterable[pa.RecordBatch], in_nanos: Iterable[pa.RecordBatch]
) -> bool:
    """Whether one of the timestamps, nested ones too, is finer than a microsecond.

    Args:
        in_micros: Rows of a file, read in microseconds.
        in_nanos: The same batches, read in nanoseconds. Arrow's integers overflow after the year
            2262 and before 1677; the differences between both are right all the same.
    """
    return any(
        (_integers_of(nanos) - _integers_of(micros) * 1000).any()
        for pair in zip(in_micros, in_nanos, strict=True)
        for micros, nanos in zip(*(_timestamps_in(batch.columns) for batch in pair), strict=True)
    )


def _timestamps_in(arrays: Iterable[pa.Array]) -> Iterator[pa.Array]:
    """Yield the arrays of timestamps among these arrays, and in nested ones."""
    for array in arrays:
        if pa.types.is_timestamp(array.type):
            yield array
        elif pa.types.is_nested(array.type):
            yield from _timestamps_in(exact_children(array)[1])


def _integers_of(moments: pa.Array) -> npt.NDArray[np.int64]:
    """Return the integers of timestamps, in the unit that they have; 0 for NULL."""
    integers: npt.NDArray[np.int64] = moments.cast(pa.int64()).fill_null(0).to_numpy()
    return integers
