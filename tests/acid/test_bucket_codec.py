"""The bucket property: Hive's vectors, both versions, limits, and encoding and decoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.acid import bucket_codec, event
from acidsql.acid.bucket_codec import decode, encode
from acidsql.errors import FormatError

VECTORS = {
    (0, 0): 536870912,
    (0, 1): 536870913,
    (1, 0): 536936448,
    (1, 1): 536936449,
    (2, 0): 537001984,
    (3, 0): 537067520,
    (4095, 4095): 805244927,
}


@pytest.mark.parametrize(("parts", "packed"), VECTORS.items())
def test_vectors(parts, packed):
    assert encode(*parts) == packed
    assert decode(packed) == parts


@given(st.integers(0, 4095), st.integers(0, 4095))
def test_there_and_back(bucket_id, statement_id):
    packed = encode(bucket_id, statement_id)
    assert decode(packed) == (bucket_id, statement_id)
    assert packed & bucket_codec.BUCKET_ID_MASK == bucket_id << 16


def test_no_statement_is_written_as_statement_0():
    assert encode(7) == encode(7, -1) == encode(7, 0)


@pytest.mark.parametrize("packed", [0, 1, 77, 4095])
def test_version_0_is_the_bare_bucket_id(packed):
    assert decode(packed) == (packed, 0)


@pytest.mark.parametrize("packed", [2 << 29, 3 << 29, -1, -(1 << 31)])
def test_other_versions_are_refused(packed):
    with pytest.raises(FormatError, match="version"):
        decode(packed)


@pytest.mark.parametrize("parts", [(-1, 0), (4096, 0), (0, 4096), (0, -2)])
def test_what_does_not_fit_is_refused(parts):
    with pytest.raises(FormatError):
        encode(*parts)


def test_footer_texts():
    assert event.key_index_text([(1, 536870912, 4999), (1, 536870912, 9123)]) == (
        "1,536870912,4999;1,536870912,9123;"
    )
    assert event.footer_metadata([], 0, 7) == {
        "hive.acid.key.index": "",
        "hive.acid.stats": "0,0,7",
        "hive.acid.version": "2",
    }
