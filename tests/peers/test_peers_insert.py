"""INSERT and methods: acidsql beside the recorded answers of other engines."""

import pytest
from suite.replay import params, replay


@pytest.mark.parametrize("topic, case, layout", params("insert", "methods"))
def test_the_answer_is_that_of_a_peer(peer, topic, case, layout):
    replay(peer, topic, case, layout)
