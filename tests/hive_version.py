"""Which Hive Metastore tests start by the fixture ``hive_metastore``: one of 4.0.1 or, with
``ACIDSQL_HIVE=4.2``, one of 4.2.0.
"""

from __future__ import annotations

import os
from types import ModuleType

import hive42_metastore
import hive_metastore

_VERSION = os.environ.get("ACIDSQL_HIVE", "4")
IS_42 = _VERSION == "4.2"


def servers() -> ModuleType:
    """The module that starts servers of the version that is asked for."""
    return {"4": hive_metastore, "4.2": hive42_metastore}[_VERSION]
