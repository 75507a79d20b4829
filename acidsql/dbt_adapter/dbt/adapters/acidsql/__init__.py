"""dbt's adapter for acidsql: a profile of ``type: acidsql`` runs dbt's models by ``acid.sql``.

Knows dbt and acidsql's public session. It must not know files, transactions' ids or the metastore:
whatever it does is a statement. It stands on dbt-spark's adapter, whose macros are used wherever
this package's ``dbt.include.acidsql`` has none.

Read ``credentials`` (the profile) first, then ``session`` (one connection of dbt's), then ``impl``.
"""

from dbt.adapters.acidsql.credentials import AcidsqlCredentials
from dbt.adapters.acidsql.impl import AcidsqlAdapter
from dbt.adapters.base import AdapterPlugin
from dbt.include import acidsql

Plugin = AdapterPlugin(
    adapter=AcidsqlAdapter,
    credentials=AcidsqlCredentials,
    include_path=acidsql.PACKAGE_PATH,
    dependencies=["spark"],
)
