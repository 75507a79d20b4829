"""The contract suite, on every kind of database that exists here."""

import pytest
import servers
from contract import MetastoreContract
from kinds import KINDS, open_recycled

# What differs by dialect runs every day on each kind: locks, conflicts, transactions, streams.
ROTATING = pytest.mark.rotating(4)


@pytest.mark.parametrize("kind", servers.KINDS)
def test_a_server_for_the_suite_can_be_had(kind):
    reason = servers.missing(kind)
    if reason:
        pytest.skip(reason)  # reported here once, instead of at each test


class TestSqlite(MetastoreContract):
    def open(self, path, clock):
        return open_recycled("sqlite", path, clock=clock)


@ROTATING
class TestPostgresql(MetastoreContract):
    __test__ = "postgresql" in KINDS

    def open(self, path, clock):
        return open_recycled("postgresql", path, clock=clock)


@ROTATING
class TestMariadb(MetastoreContract):
    __test__ = "mariadb" in KINDS

    def open(self, path, clock):
        return open_recycled("mariadb", path, clock=clock)


@ROTATING
class TestMysql(MetastoreContract):
    __test__ = "mysql" in KINDS

    def open(self, path, clock):
        return open_recycled("mysql", path, clock=clock)
