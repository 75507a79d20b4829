"""dbt's macros for acidsql.

Knows SQL of acidsql and dbt's macros. It must not know Python's objects: ``dbt.adapters.acidsql``
has what a macro asks for. Read ``macros/materializations`` first.
"""

import os

PACKAGE_PATH = os.path.dirname(__file__)
