"""An interrupted COMMIT that has happened: in none of the shortest ways is it lost."""

from __future__ import annotations

from fault_layer import Layer, T, insert
from fault_points import Line, What


def test_rollback_to_a_savepoint_after_a_commit_that_happened_deletes_nothing(layer: Layer) -> None:
    layer.reset()
    layer.run("BEGIN", same_session=False)
    layer.run("SAVEPOINT a")
    layer.run(insert(T, 1))
    assert layer.run("COMMIT", Line(1, What.INTERRUPT, lost=True)) == "Interrupt"
    committed = layer.rows()
    assert ("t", 1, "1") in committed
    assert layer.run("ROLLBACK TO a") != "done"
    assert layer.rows() == committed


def test_rollback_of_a_commit_in_doubt_does_not_say_done_while_nobody_can_tell(
    layer: Layer,
) -> None:
    layer.reset()
    layer.run("BEGIN", same_session=False)
    layer.run(insert(T, 1))
    assert layer.run("COMMIT", Line(1, What.INTERRUPT, lost=True)) == "Interrupt"
    assert layer.run("ROLLBACK", Line(1, What.OUTAGE)) != "done"
    assert ("t", 1, "1") in layer.rows()
