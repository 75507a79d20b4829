"""A table or view, as dbt names it: always in back-quotes, in any case of letters."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt.adapters.base.relation import Policy
from dbt.adapters.contracts.relation import ComponentName
from dbt.adapters.spark.relation import SparkRelation

from acidsql.storage.columns import quote


@dataclass
class AcidsqlQuotePolicy(Policy):
    database: bool = True
    schema: bool = True
    identifier: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class AcidsqlRelation(SparkRelation):
    """A table or view. Names are quoted, so reserved words are names; acidsql keeps names in lower
    case, so dbt's ``MyModel`` is the table ``mymodel``."""

    quote_policy: Policy = field(default_factory=AcidsqlQuotePolicy)

    def _is_exactish_match(self, field: ComponentName, value: str) -> bool:
        return self.path.get_lowered_part(field) == value.lower()

    def quoted(self, identifier: str) -> str:
        return quoted_name(identifier)


def quoted_name(name: str) -> str:
    """Return a name in back-quotes."""
    return quote(str(name))  # dbt quotes a missing database, too
