"""What every metastore must do, whatever it is made of.

An implementation subclasses ``MetastoreContract`` in a test module and says how it is made.
"""

from contract_base import ContractBase
from contract_candidates import CandidateContract
from contract_catalog import CatalogContract
from contract_catalog_history import CatalogHistoryContract
from contract_cleaning import CleaningContract
from contract_compactions import CompactionContract
from contract_conflicts import ConflictContract
from contract_deadlocks import DeadlockContract
from contract_housekeeping import HousekeepingContract
from contract_locks import LockContract
from contract_session_locks import SessionLockContract
from contract_streams import StreamContract
from contract_txns import TxnContract
from contract_versions import VersionContract
from contract_views import ViewContract, ViewHistoryContract

__all__ = ["MetastoreContract"]


class MetastoreContract(
    CatalogContract,
    CatalogHistoryContract,
    TxnContract,
    LockContract,
    SessionLockContract,
    DeadlockContract,
    ConflictContract,
    HousekeepingContract,
    CompactionContract,
    CleaningContract,
    CandidateContract,
    StreamContract,
    VersionContract,
    ViewContract,
    ViewHistoryContract,
    ContractBase,
):
    """All parts; they share the fixtures ``store``, ``clock`` and ``reopen``."""
