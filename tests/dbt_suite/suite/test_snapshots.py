"""Snapshots: timestamp and check, all kinds of hard deletes, other names, and new columns."""

from dbt.tests.adapter.basic.test_snapshot_check_cols import (
    BaseSnapshotCheckCols as TestSnapshotCheckCols,
)
from dbt.tests.adapter.basic.test_snapshot_timestamp import (
    BaseSnapshotTimestamp as TestSnapshotTimestamp,
)
from dbt.tests.adapter.simple_snapshot.new_record_check_mode import (
    BaseSnapshotNewRecordCheckMode as TestSnapshotNewRecordCheckMode,
)
from dbt.tests.adapter.simple_snapshot.new_record_dbt_valid_to_current import (
    BaseSnapshotNewRecordDbtValidToCurrent as TestSnapshotNewRecordDbtValidToCurrent,
)
from dbt.tests.adapter.simple_snapshot.new_record_timestamp_mode import (
    BaseSnapshotNewRecordTimestampMode as TestSnapshotNewRecordTimestampMode,
)
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotEphemeralHardDeletes as TestSnapshotEphemeralHardDeletes,
)
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotNewColumnSpecificCheckCols as TestSnapshotNewColumnSpecificCheckCols,
)
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotNewColumnTimestampStrategy as TestSnapshotNewColumnTimestampStrategy,
)
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotNewColumnWithDeletes as TestSnapshotNewColumnWithDeletes,
)
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot as TestSimpleSnapshot
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSnapshotCheck as TestSnapshotCheck
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotColumnNames as TestSnapshotColumnNames,
)
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotColumnNamesFromDbtProject as TestSnapshotColumnNamesFromDbtProject,
)
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotDbtValidToCurrent as TestSnapshotDbtValidToCurrent,
)
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotInvalidColumnNames as TestSnapshotInvalidColumnNames,
)
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotMultiUniqueKey as TestSnapshotMultiUniqueKey,
)
