"""The bucket property (column ``bucket``): a 32-bit integer with a bucket id and a statement id.

Version 1, which Hive 3 and later write (bit 31 is the highest)::

    31…29      28        27 … 16     15 … 12     11 … 0
    version=1  reserved  bucket id   reserved    statement id

Version 0 (data from before Hive 3) is the bare bucket id. Source: Hive ``BucketCodec``.
"""

from __future__ import annotations

from typing import NamedTuple

from acidsql.errors import FormatError

MAX_BUCKET_ID = 4095
MAX_STATEMENT_ID = 4095
NO_STATEMENT = -1  # the statement id of a directory whose name has none

VERSION_SHIFT = 29
BUCKET_SHIFT = 16
VERSION_1 = 1 << VERSION_SHIFT
BUCKET_ID_MASK = MAX_BUCKET_ID << BUCKET_SHIFT


class BucketProperty(NamedTuple):
    """The parts of a bucket property.

    Attributes:
        bucket_id: N of the file ``bucket_N``, 0 to 4095.
        statement_id: Which write of its transaction made the row; 0 if that is not known.
    """

    bucket_id: int
    statement_id: int


def encode(bucket_id: int, statement_id: int = NO_STATEMENT) -> int:
    """Return the bucket property of version 1.

    Args:
        bucket_id: 0 to 4095.
        statement_id: 0 to 4095. -1 stands for no statement id, and is encoded as 0.

    Raises:
        FormatError: A number does not fit its 12 bits.
    """
    if not 0 <= bucket_id <= MAX_BUCKET_ID:
        raise FormatError(
            f"bucket id {bucket_id} is not in 0..{MAX_BUCKET_ID}", bucket_id=bucket_id
        )
    if not NO_STATEMENT <= statement_id <= MAX_STATEMENT_ID:
        raise FormatError(
            f"statement id {statement_id} is not in 0..{MAX_STATEMENT_ID}",
            statement_id=statement_id,
        )
    return VERSION_1 | bucket_id << BUCKET_SHIFT | max(statement_id, 0)


def decode(bucket_property: int) -> BucketProperty:
    """Split a bucket property into its bucket id and statement id. Version 0 is the bucket id
    alone; its statement id is 0.

    Raises:
        FormatError: The version is neither 0 nor 1.
    """
    version = (bucket_property & 0xFFFFFFFF) >> VERSION_SHIFT
    if version == 0:
        return BucketProperty(bucket_property, 0)
    if version == 1:
        bucket_id = (bucket_property & BUCKET_ID_MASK) >> BUCKET_SHIFT
        return BucketProperty(bucket_id, bucket_property & MAX_STATEMENT_ID)
    raise FormatError(
        f"bucket property {bucket_property} has the unknown version {version}",
        bucket_property=bucket_property,
    )
