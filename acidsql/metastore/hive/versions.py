"""Versions of tables, which a Hive Metastore does not keep: see ``Abilities.keeps_versions``."""

from __future__ import annotations

from acidsql.acid.table import TableName
from acidsql.metastore.versions import Version


class HiveVersions:
    """The part of the store about versions; ``VersionLog`` describes the methods."""

    def versions(self, table: TableName) -> list[Version]:
        return []

    def changed_by(self, txn_id: int) -> dict[TableName, int]:
        return {}

    def oldest_version(self, table: TableName) -> int:
        raise AssertionError("a Hive Metastore keeps no versions")

    def first_version(self, table: TableName) -> int | None:
        raise AssertionError("a Hive Metastore keeps no versions")

    def identity(self, table: TableName) -> str:
        raise AssertionError("a Hive Metastore keeps no versions")

    def forget_versions(self, table: TableName, oldest: int) -> None:
        raise AssertionError("a Hive Metastore keeps no versions")

    def last_commit(self, *, until_ms: int | None = None, txn_id: int | None = None) -> int | None:
        return None
