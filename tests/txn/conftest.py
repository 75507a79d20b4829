"""A real store with a clock that the test moves, behind a connection that the test can cut."""

from types import SimpleNamespace

import pytest
from fake_store import Unreliable

from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.settings import Settings
from acidsql.txn import TxnManager


@pytest.fixture
def clock():
    return SimpleNamespace(now=1_000_000)


@pytest.fixture
def store(tmp_path, clock):
    real = EmbeddedMetastore(
        sqlite_url(tmp_path / "s.db"), warehouse="/wh", clock=lambda: clock.now
    )
    yield Unreliable(real)
    real.close()


@pytest.fixture
def managers(store):
    """Makes sessions: ``managers(user="bob", settings={…}, sleep=…)``."""
    made = []

    def make(user="ann", settings=None, **keywords):
        made.append(TxnManager(store, Settings.of(settings), user=user, host="h1", **keywords))
        return made[-1]

    yield make
    for manager in made:
        manager.close()


@pytest.fixture
def manager(managers):
    return managers()
