"""How much one micro-batch of a table's stream reads.

Spark 4.2 and later tell a Python data source where a batch begins, and ask it for a limit. Older
versions ask for all that is new.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acidsql.acid.write_ids import NewWriteIds, ValidWriteIdList

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles
    from pyspark.sql.streaming.datasource import (
        SupportsTriggerAvailableNow as SupportsTriggerAvailableNow,
    )
except ImportError:  # Spark 4.1

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Has no meaning for this version of Spark."""

    CAN_LIMIT = False
else:
    CAN_LIMIT = True


def default_limit(*, is_limited: bool) -> Any:
    """Return the object that Spark is to pass to ``latestOffset`` as the limit of a batch: one
    without a limit unless the options set one (``is_limited``). None for Spark 4.1, which has no
    limits.

    Spark has no limit by versions. It only hands the object back, so any limit serves.
    """
    if not CAN_LIMIT:
        return None
    return ReadMaxFiles(1) if is_limited else ReadAllAvailable()


def is_unlimited(limit: Any) -> bool:
    """Whether a limit that Spark passes asks for all that is new."""
    return limit is None or isinstance(limit, ReadAllAvailable)


def limited_end(
    new: NewWriteIds,
    sizes: Mapping[int, int],
    max_versions: int | None,
    max_bytes: int | None,
) -> ValidWriteIdList:
    """Return the snapshot at the end of a batch: it shows the first of the new versions in the
    order of write ids, at least one, up to the limits; all if there is none.

    A transaction gets its write id after its snapshot, so it changes only rows of lower write ids:
    in the order of write ids no row is deleted before it is inserted.

    Args:
        new: All new versions.
        sizes: The bytes that each version wrote; a version that is not there counts 0.
        max_versions: At most so many versions; None: any number.
        max_bytes: At most so many bytes, unless one version has more; None: any number.
    """
    write_ids = new.numbers
    total = 0
    for count, write_id in enumerate(write_ids):
        total += sizes.get(write_id, 0)
        is_many = max_versions is not None and count >= max_versions
        is_large = max_bytes is not None and total > max_bytes
        if count and (is_many or is_large):
            return new.after.without_ids(set(write_ids[count:]))
    return new.after
