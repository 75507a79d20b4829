"""The conditions that a check of a table can find, with the severity and the advice of each.

The names of conditions are stable: programs may compare them. The name decides the severity and
the advice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass

ERROR, WARNING, INFO = "error", "warning", "info"  # from the worst on
_RANK = {ERROR: 0, WARNING: 1, INFO: 2}

_RESTORE = "Restore it from a backup: without it, its rows are lost."
_REWRITE = (
    "Compare the table's rows with their source. If they are right, INSERT OVERWRITE of the table "
    "with its own rows writes sound files."
)
_MEND = (
    "No row is lost. A major compaction by acidsql (ALTER TABLE … COMPACT 'major') writes sound "
    "files; if the table is bucketed, INSERT OVERWRITE of the table with its own rows does."
)
_REPAIR = "acid.repair(table, dry_run=False), or `acidsql repair TABLE --yes`, does it."

# Condition → severity, advice.
CONDITIONS = {
    "TABLE_DIRECTORY_MISSING": (ERROR, _RESTORE),
    "PARTITION_WITHOUT_DIRECTORY": (
        ERROR, f"{_RESTORE} Or take the partition from the catalog: {_REPAIR}"
    ),
    "UNREADABLE_DIRECTORY": (ERROR, "Readers refuse the table or partition. Do what they say."),
    "OVERLAPPING_DELTAS": (ERROR, "Rows of both are read twice. Restore the table from a backup."),
    "LOST_HALF_OF_A_PAIR": (ERROR, f"Readers ignore it. Restore its twin: {_RESTORE}"),
    "WRITE_ID_NEVER_ALLOCATED": (
        ERROR, "Its rows would appear when a later transaction gets the number. Move it away."
    ),
    "TRANSACTION_NEVER_OPENED": (
        ERROR, "Its rows would appear when a later transaction gets the number. Move it away."
    ),
    "UNREADABLE_FILE": (ERROR, _RESTORE),
    "UNREACHABLE_FILE": (
        ERROR, "It need not be damaged. See to keys, permissions and network, then check again."
    ),
    "FILE_GONE": (ERROR, _RESTORE),
    "FILES_NOT_AS_COMMITTED": (ERROR, f"Compare them with DESCRIBE HISTORY. {_RESTORE}"),
    "NO_EVENTS": (ERROR, _RESTORE),
    "EVENTS_IN_A_PLAIN_FILE": (ERROR, _RESTORE),
    "NAME_WITHOUT_BUCKET": (
        ERROR, "Readers refuse it: its rows have no row ids. Move it away, and LOAD DATA."
    ),
    "UNKNOWN_BUCKET": (ERROR, f"Queries that search by bucket do not find its rows. {_REWRITE}"),
    "ROW_IN_WRONG_BUCKET": (ERROR, f"Queries that search by bucket do not find it. {_REWRITE}"),
    "FOOTER_CONTRADICTS_CONTENTS": (ERROR, _RESTORE),
    "WRONG_KEY_INDEX": (ERROR, f"Hive may skip events of the file. {_MEND}"),
    "ROWS_OUT_OF_ORDER": (ERROR, f"Hive may apply deletes wrong. {_MEND}"),
    "WRONG_BUCKET_ID": (
        ERROR, f"Another writer, such as Trino, wrote the file. acidsql reads it right; Hive may "
        f"not read the table, or may show deleted rows. {_MEND}"
    ),
    "WRONG_OPERATION": (ERROR, f"No reader applies such an event. {_REWRITE}"),
    "WRITE_ID_OUT_OF_RANGE": (ERROR, f"A snapshot may see it too early, or never. {_REWRITE}"),
    "DUPLICATE_ROW_ID": (ERROR, f"A delete deletes both rows, or none. {_REWRITE}"),
    "TWIN_DELETE": (
        ERROR, "Neither change saw the other, as where Trino changes a table while others do. Each "
        "may have written a new version of the row: SELECT row__id.writeid, * shows both. DELETE "
        "the one that is wrong; a major compaction then removes the traces."
    ),
    "DELETE_OF_NO_ROW": (
        ERROR, "A file of rows may be missing. Look for it, or compare the rows with their source."
    ),
    "PARTITION_NOT_IN_CATALOG": (
        WARNING, f"No reader reads it. Move it away, or take it into the catalog: {_REPAIR}"
    ),
    "ABORTED_DIRECTORY": (WARNING, f"Nobody reads it, and every cleaner deletes it. {_REPAIR}"),
    "LITTER": (WARNING, f"Nobody reads it, and every cleaner deletes it. {_REPAIR}"),
    "STRAY_FILE": (WARNING, "No reader reads it. Move it away."),
    "HALF_OF_A_PAIR": (
        WARNING, "A compaction died. Readers read the old files. The next compaction takes it away."
    ),
    "PAIR_MARK_MISSING": (WARNING, "A major compaction writes a base in the place of both."),
    "VERSION_MARK_MISSING": (WARNING, "Hive looks into the files instead. Restore the mark: 2."),
    "EMPTY_FILE": (WARNING, f"Readers take it for a file without rows. If it had some: {_RESTORE}"),
    "REPEATED_DELETE": (WARNING, "It does no harm. Hive writes it if it lets a MERGE match twice."),
    "NOT_COMPARED": (INFO, "Mend what the errors say, then check again."),
    "TOO_MANY_FINDINGS": (INFO, "Mend what is shown, then check again."),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of a table.

    Attributes:
        path: The file or directory.
        condition: One of CONDITIONS.
        message: What is wrong.
        repair_outcome: What a repair has done about it, or would do; "" without a repair.
    """

    path: str
    condition: str
    message: str
    repair_outcome: str = ""

    @property
    def severity(self) -> str:
        """error: rows are wrong, lost or unreadable, or will be. warning: a file or directory does
        not belong there. info: a message about the check itself."""
        return CONDITIONS[self.condition][0]

    @property
    def advice(self) -> str:
        """The outcome of a repair if there is one, otherwise the advice of the condition."""
        return self.repair_outcome or CONDITIONS[self.condition][1]

    def to_json(self) -> str:
        """Return path, condition, message and repair outcome as a JSON list, in one line."""
        return json.dumps(astuple(self))

    @classmethod
    def from_json(cls, text: str) -> Finding:
        """Parse a text of ``to_json``."""
        return cls(*json.loads(text))


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings without repeated ones, by severity (error, warning, info), then by path,
    condition and message."""
    return sorted(
        set(findings),
        key=lambda finding: (
            _RANK[finding.severity],
            finding.path,
            finding.condition,
            finding.message,
        ),
    )
