"""What pyarrow's ORC writer writes to: a file that can keep back the end of what it is given."""

from __future__ import annotations

import tempfile
from typing import Any, BinaryIO, cast

_IN_MEMORY = 128 * 1024 * 1024  # bytes; more than a stripe and a tail
_BLOCK = 4 * 1024 * 1024


class HoldingSink:
    """Passes bytes on to a file, and from ``hold`` on keeps them until they are asked for.

    Attributes:
        file: Where bytes go in the end.
        written: Bytes that went there.
        held: What was kept back, a file of its own.
        held_size: Bytes in it.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.written = file, 0
        # Closed by the writer, whose life it shares.
        held = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        self.held = cast(BinaryIO, held)
        self.held_size = 0
        self.closed = False
        self._holding = False

    def hold(self) -> None:
        """Keep back what comes from now on."""
        self._holding = True

    def read_held(self, start: int, size: int) -> bytes:
        """Bytes of what was kept back."""
        self.held.seek(start)
        return self.held.read(size)

    def pass_on(self, start: int, end: int) -> None:
        """Write a part of what was kept back to the file."""
        for at in range(start, end, _BLOCK):
            self.write_out(self.read_held(at, min(_BLOCK, end - at)))

    def write_out(self, data: bytes) -> None:
        """Write to the file itself."""
        self.file.write(data)
        self.written += len(data)

    # ── what pyarrow calls ───────────────────────────────────────────────────────────────────

    def write(self, data: Any) -> int:
        """Take bytes; pass them on, or keep them."""
        if self._holding:
            self.held.write(data)
            self.held_size += len(data)
        else:
            self.write_out(data)
        return len(data)

    def tell(self) -> int:
        """Bytes taken so far."""
        return self.written + self.held_size

    def flush(self) -> None:
        """Nothing: the file is synced when it is closed."""

    def close(self) -> None:
        """Nothing yet: pyarrow is done, but the tail has still to come."""
        self.closed = True

    def readable(self) -> bool:
        """False."""
        return False

    def writable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """False."""
        return False
