"""dbt's macros for acidsql.

Knows SQL of acidsql and dbt's macros. It must not know Python's objects: ``dbt.adapters.acidsql``
has what a macro asks for. Read ``macros/materializations`` first.
"""

from pathlib import Path

PACKAGE_PATH = str(Path(__file__).parent)
