"""What is known to be wrong: the shortest way to each. A test that passes asks to be moved."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_layer import Layer, T, insert
from fault_points import Interrupt, Line, What
from fault_power import Disk
from fault_statements import BY_NAME
from fault_world import World

from acidsql.storage.filesystem import wrap_filesystems


@pytest.mark.xfail(strict=True, reason="end_block forgets the transaction last of all")
def test_a_block_that_is_interrupted_while_it_is_rolled_back_is_over(layer: Layer) -> None:
    layer.reset()
    layer.run("(beat)", same_session=False)
    transactions = layer.side.transactions
    transaction = transactions.begin("a block", in_block=True)
    layer.side.store._line = Line(1, What.INTERRUPT)
    with pytest.raises(Interrupt):
        transactions.end_block(transaction, failed=True)
    layer.side.store._line = Line()
    # COMMIT and ROLLBACK are refused in a block, so nothing could end it any more.
    assert transactions.current is None


@pytest.mark.xfail(strict=True, raises=OSError, reason="only the runner translates it")
def test_a_block_whose_files_cannot_be_looked_at_fails_with_an_error_of_ours(layer: Layer) -> None:
    layer.reset()
    layer.run("BEGIN", same_session=False)
    transaction = layer.side.transactions.need()
    layer.run("SAVEPOINT a")
    layer.run(insert(T, 1))
    layer.run("ROLLBACK TO a")
    layer._line = Line(1, What.ERROR)
    with wrap_filesystems(layer.wrap):
        layer.side.transactions.end_block(transaction, failed=False)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["drop_table", "drop_partitioned_table"])
@pytest.mark.xfail(strict=True, reason="a clean-up counts as done before it is durable")
def test_a_power_cut_after_drop_table_leaves_the_name_free(
    world: World, name: str, copies: Path
) -> None:
    kind = BY_NAME[name]
    world.reset()
    disk = world.disk = Disk(copies)
    assert world.run(kind) == "done"
    world.disk = None
    disk.cut()
    assert world.run(kind.probe) == "done"
