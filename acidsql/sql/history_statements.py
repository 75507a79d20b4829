"""The parsed statements about the versions of tables. Import them from ``statements``."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.sql.parts import Name


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """``DESCRIBE|DESC HISTORY t [LIMIT n]``."""

    name: Name
    limit: int | None = None
