"""The parsed statements that count what is in tables."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.sql.parsed.parts import Name


@dataclass(frozen=True, slots=True)
class AnalyzeTable:
    """``ANALYZE TABLE t COMPUTE STATISTICS [NOSCAN | FOR COLUMNS [a, …] | FOR ALL COLUMNS]``.

    Without ``reads_rows`` (NOSCAN) only the files are measured. ``columns`` are those to look at;
    None: all columns.
    """

    name: Name
    reads_rows: bool = True
    columns: tuple[Name, ...] | None = ()


@dataclass(frozen=True, slots=True)
class AnalyzeTables:
    """``ANALYZE TABLES [IN d] COMPUTE STATISTICS [NOSCAN]``: all tables of a database."""

    database: Name | None = None
    reads_rows: bool = True
