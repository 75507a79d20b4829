"""The file that pyarrow's ORC writer writes to. It can hold back the last bytes that it gets."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from typing import Any, BinaryIO, cast

_IN_MEMORY = 128 * 1024 * 1024  # bytes; more than a stripe and a tail
_BLOCK = 4 * 1024 * 1024


class HoldingSink:
    """Passes bytes on to a file. After ``hold`` it keeps the bytes in a file of its own instead.

    Attributes:
        file: The file to which the bytes go in the end.
        written: The number of bytes written to ``file``.
        held: A temporary file with the bytes that are held back.
        held_size: The number of bytes in ``held``.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.written = file, 0
        # No context manager: the ORC writer closes the file together with the sink.
        held = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        self.held = cast(BinaryIO, held)
        self.held_size = 0
        self.closed = False
        self._holding = self._discarding = False

    def hold(self) -> None:
        """Hold back all bytes that come from now on."""
        self._holding = True

    def abort(self) -> None:
        """Close both files as they are, and forget all bytes that come from now on. An OSError of
        closing the file is ignored.
        """
        self._discarding = True
        self.held.close()
        with suppress(OSError):  # the disk may be full; the file is of no use to anybody
            self.file.close()

    def read_held(self, start: int, size: int) -> bytes:
        """Return up to ``size`` of the held bytes, from the position ``start`` among them on."""
        self.held.seek(start)
        return self.held.read(size)

    def pass_on(self, start: int, end: int) -> None:
        """Write the held bytes from ``start`` to ``end`` (positions among them) to the file. They
        stay held.
        """
        for at in range(start, end, _BLOCK):
            self.write_out(self.read_held(at, min(_BLOCK, end - at)))

    def write_out(self, data: bytes) -> None:
        """Write bytes to the file, even after ``hold``."""
        self.file.write(data)
        self.written += len(data)

    # ── what pyarrow calls ───────────────────────────────────────────────────────────────────

    def write(self, data: Any) -> int:
        """Take bytes: pass them on, hold them, or after ``abort`` forget them. Return their number,
        which ``tell`` counts in each case.
        """
        if self._discarding:
            self.held_size += len(data)
        elif self._holding:
            self.held.write(data)
            self.held_size += len(data)
        else:
            self.write_out(data)
        return len(data)

    def tell(self) -> int:
        """The number of bytes taken so far."""
        return self.written + self.held_size

    def flush(self) -> None:
        """Do nothing: the file is synced when it is closed."""

    def close(self) -> None:
        """Note that pyarrow is done. The file stays open, because the tail comes later."""
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
