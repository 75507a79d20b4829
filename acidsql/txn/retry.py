"""Runs something again after it failed because of another transaction."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from acidsql.errors import TableChangedError, TransientTxnError

_LONGEST_PAUSE_S = 0.2

_Result = TypeVar("_Result")


def again(
    run: Callable[[], _Result], retries: int, may_repeat: Callable[[], bool] = lambda: True
) -> _Result:
    """The result of ``run``, which runs again after a TransientTxnError.

    Once it also runs again after a TableChangedError: then it looks up its tables anew.

    Args:
        run: What to run; each time it takes a new snapshot.
        retries: How often to run again at most.
        may_repeat: Asked after a failure: False raises the error at once.
    """
    looks_again = True
    while True:
        try:
            return run()
        except TableChangedError:
            if not looks_again or not may_repeat():
                raise
            looks_again = False
        except TransientTxnError:
            if retries <= 0 or not may_repeat():
                raise
            retries -= 1
            # A random pause, so that two in conflict do not start together again.
            time.sleep(random.uniform(0, _LONGEST_PAUSE_S))
