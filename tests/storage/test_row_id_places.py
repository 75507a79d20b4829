"""The places of row ids among others, beside a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from acidsql.storage.folding.event_merge import are_among, places_in

ROW_IDS = st.lists(
    st.tuples(*[st.integers(0, 3) | st.integers(-(2**63), 2**63 - 1)] * 3), unique=True
)


def columns(row_ids):
    return [np.array([row_id[number] for row_id in row_ids], np.int64) for number in range(3)]


@given(ROW_IDS, ROW_IDS)
def test_a_row_id_has_the_place_that_a_dictionary_gives_it_or_none(keys, candidates):
    places = {row_id: place for place, row_id in enumerate(candidates)}
    expected = [places.get(row_id, -1) for row_id in keys]
    assert places_in(columns(keys), columns(candidates)).tolist() == expected
    assert are_among(columns(keys), columns(candidates)).tolist() == [at >= 0 for at in expected]


def test_no_row_id_is_among_none():
    assert places_in(columns([(1, 2, 3)]), columns([])).tolist() == [-1]
