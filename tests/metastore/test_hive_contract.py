"""The parts of the contract suite that a real Hive Metastore keeps.

What is left out needs an ability that it does not have, the embedded store's clock, or tables
anywhere on the disk.
"""

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from contract_base import ContractBase
from contract_deadlocks import DeadlockContract
from contract_locks import LockContract
from contract_txns import TxnContract

from acidsql.metastore.hive.store import HiveMetastore

FORGOTTEN = (
    "TXN_COMPONENTS", "COMPLETED_TXN_COMPONENTS", "TXN_TO_WRITE_ID", "NEXT_WRITE_ID", "HIVE_LOCKS",
    "WRITE_SET", "MIN_HISTORY_LEVEL",
)  # fmt: skip


class TestHive(TxnContract, LockContract, DeadlockContract, ContractBase):
    lacks = frozenset({
        "locks of their transaction alone", "numbers from one", "the statement of a transaction",
        "reasons of aborts", "how a transaction ended", "limits of a session", "a clock for tests",
    })  # fmt: skip

    @pytest.fixture(autouse=True)
    def fresh(self, hive_metastore):
        """Nothing is open, and no write id is taken; only numbers of transactions go on."""
        self._server = hive_metastore
        yield
        hive_metastore.query("UPDATE TXNS SET TXN_STATE = 'c' WHERE TXN_ID > 0")
        for table in FORGOTTEN:
            hive_metastore.query(f"DELETE FROM {table}")

    def open(self, path, clock):
        return HiveMetastore(self._server.url, list_names=lambda _: [])
