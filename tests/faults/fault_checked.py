"""A session of the transaction layer. After every step its state is compared with the possible
worlds."""

from __future__ import annotations

from fault_layer import Found, Layer, Step
from fault_points import Line, What
from fault_worlds import World, after

from acidsql.errors import TxnError


class Checked:
    """Runs steps, and removes the worlds that do not agree with what is seen.

    Args:
        layer: The layer; it is reset first.
    """

    def __init__(self, layer: Layer) -> None:
        self._layer, self._said = layer, list[str]()
        layer.reset()
        self.worlds = {World(self._layer.rows())}
        self._is_dead = True  # no session yet

    @property
    def is_open(self) -> bool:
        """The session has an open transaction, as far as it knows."""
        return not self._is_dead and self._layer.side.transactions.current is not None

    def may_be(self, end: str) -> bool:
        """The transaction may have ended in this way."""
        return any(world.inside is not None and world.inside.end == end for world in self.worlds)

    def do(self, step: Step, line: Line | None = None, *, look: bool = True) -> str:
        """Run a step, then look. If the session has died, the next step opens a new one."""
        line = line or Line()
        if step == "(beat)" and line.what is What.INTERRUPT:
            line = Line()  # nothing interrupts the heartbeat's thread
        outcome = self._outcome(step, line)
        is_faulty = 0 < line.at <= len(line.calls)
        where = f" ({line.failed}: {line.what.value})" if is_faulty else ""
        self._said.append(f"{step}: {outcome}{where}")
        self.worlds = after(self.worlds, step, outcome, faulty=is_faulty)
        assert self.worlds, f"{self.story}: that cannot be"
        if is_faulty and not self.is_open:
            # Transactions that the session could not end, or does not know of.
            self._layer.time_out()
        if look:
            self.look()
        return outcome

    def look(self) -> None:
        """Compare the worlds with the rows that others see, and with those that the session
        sees."""
        outside = self._layer.rows()
        left = {
            world
            for world in self.worlds
            if world.committed == outside and (world.inside is not None) == self.is_open
        }
        if any(world.inside and not world.inside.end for world in left):
            rows = self._rows_within()
            left = {w for w in left if not w.inside or w.inside.end or w.inside.rows == rows}
        assert left, f"{self.story}\nleaves {sorted(outside)}; possible: {self.worlds}"
        self.worlds = left

    def end(self) -> None:
        """COMMIT an open transaction. Then no transaction or lock may be left."""
        if self.is_open:
            self.do("COMMIT")
        self._layer.time_out()
        assert self._layer.is_at_rest(), self.story
        self._layer.do_late()
        self.look()

    @property
    def story(self) -> str:
        """All steps with their outcomes."""
        return "\n".join(self._said)

    def _outcome(self, step: Step, line: Line) -> str:
        if step == "(abort)":
            for txn_id in self._layer.open_txns():
                self._layer.theirs.abort_txn(txn_id, "ABORT TRANSACTIONS")
            return "done"
        outcome = self._layer.run(step, line, same_session=not self._is_dead)
        self._is_dead = outcome == "Crash" or step == "(close)"
        return outcome

    def _rows_within(self) -> Found | None:
        try:
            return self._layer.rows_within()
        except TxnError:
            return None  # the transaction has ended
