"""``with acid.transaction()``: after the block its transaction has ended, however the block was
left."""

from __future__ import annotations

import pytest
from fault_layer import Layer, T, insert
from fault_points import Interrupt, Line, What

from acidsql.errors import WriteError
from acidsql.storage.files.filesystem import wrap_filesystems


def test_a_block_that_is_interrupted_while_it_is_rolled_back_is_over(layer: Layer) -> None:
    layer.reset()
    layer.run("(beat)", same_session=False)
    transactions = layer.side.transactions
    transaction = transactions.begin("a block", in_block=True)
    layer.side.store._line = Line(1, What.INTERRUPT)
    with pytest.raises(Interrupt):
        transactions.end_block(transaction, failed=True)
    layer.side.store._line = Line()
    # COMMIT and ROLLBACK are refused in a block, so no statement could end the transaction later.
    assert transactions.current is None


def test_a_block_whose_files_cannot_be_looked_at_fails_with_an_error_of_ours(layer: Layer) -> None:
    layer.reset()
    layer.run("BEGIN", same_session=False)
    transaction = layer.side.transactions.require_transaction()
    layer.run("SAVEPOINT a")
    layer.run(insert(T, 1))
    layer.run("ROLLBACK TO a")
    layer._line = Line(1, What.ERROR)
    with wrap_filesystems(layer.wrap), pytest.raises(WriteError):
        layer.side.transactions.end_block(transaction, failed=False)
