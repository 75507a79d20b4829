"""The parsed statements about the versions of tables. Import them from ``statements``."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.sql.parsed.parts import Name
from acidsql.sql.parsed.time_travel import AsOf
from acidsql.sql.text.tokens import Span


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """``DESCRIBE|DESC HISTORY t [LIMIT n]``."""

    name: Name
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Restore:
    """``RESTORE [TABLE] t [TO] VERSION AS OF n``, or ``TIMESTAMP AS OF e``."""

    target: Name
    as_of: AsOf


@dataclass(frozen=True, slots=True)
class RevertTransaction:
    """``REVERT TRANSACTION n [SKIP CONFLICTS]``. ``txn_span`` is the place of the number."""

    txn_id: int
    txn_span: Span
    skips_conflicts: bool = False


Undo = Restore | RevertTransaction
