"""Runs a statement or batch again after it failed because of another transaction."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from acidsql.errors import TableChangedError, TransientTxnError

_LONGEST_PAUSE_S = 0.2

_Result = TypeVar("_Result")


def retry_transient(
    run: Callable[[], _Result], retries: int, may_repeat: Callable[[], bool] = lambda: True
) -> _Result:
    """Return the result of ``run``; call it again after each TransientTxnError, after a random
    pause of at most 0.2 seconds.

    After the first TableChangedError ``run`` is called again without a pause, because it looks its
    tables up anew; a second one is raised. Other errors are raised immediately.

    Args:
        run: Takes a new snapshot at each call.
        retries: How often to call ``run`` again at most, TableChangedError aside. Then the last
            error is raised.
        may_repeat: Called before ``run`` would be called again. If it returns False, the error is
            raised.
    """
    may_look_up_again = True
    while True:
        try:
            return run()
        except TableChangedError:
            if not may_look_up_again or not may_repeat():
                raise
            may_look_up_again = False
        except TransientTxnError:
            if retries <= 0 or not may_repeat():
                raise
            retries -= 1
            # A random pause, so that two transactions in conflict do not start together again.
            time.sleep(random.uniform(0, _LONGEST_PAUSE_S))
