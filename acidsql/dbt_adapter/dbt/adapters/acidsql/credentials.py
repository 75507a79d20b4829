"""What a profile of ``type: acidsql`` says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.contracts.connection import Credentials
from dbt_common.exceptions import DbtConfigError

METHODS = ("session", "connect")
_COMPACTORS = ("inline", "background", "off")


@dataclass
class AcidsqlCredentials(Credentials):
    """A target of ``profiles.yml``.

    Attributes:
        schema: The database of the models.
        method: ``session``: Spark runs in dbt's own process. ``connect``: Spark Connect.
        host: The URL of the Spark Connect server, ``sc://host:15002``.
        warehouse: As in ``acidsql.connect``.
        metastore: As in ``acidsql.connect``.
        compactor: As in ``acidsql.connect``. Default: ``inline``, because dbt's process ends soon.
        retries: How often a statement runs again after another transaction's conflicting commit.
        settings: acidsql's settings by their names.
        server_side_parameters: Spark's conf, as in dbt-spark's profiles.
    """

    database: str | None = None  # type: ignore[assignment]
    schema: str | None = None  # type: ignore[assignment]
    method: str = "session"
    host: str | None = None
    warehouse: str | None = None
    metastore: str | None = None
    compactor: str = "inline"
    retries: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    server_side_parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.schema:
            raise DbtConfigError("The profile needs a schema: the database of the models.")
        if self.method not in METHODS:
            raise DbtConfigError(f"method: {self.method} is not one of {', '.join(METHODS)}.")
        if self.method == "connect" and not self.host:
            raise DbtConfigError("method: connect needs a host, as sc://localhost:15002.")
        if self.method == "session" and self.host:
            raise DbtConfigError(
                "method: session runs Spark in dbt's own process and has no host. For a server of "
                "Spark Connect say method: connect."
            )
        if self.compactor not in _COMPACTORS:
            raise DbtConfigError(
                f"compactor: {self.compactor} is not one of {', '.join(_COMPACTORS)}."
            )
        if self.database is not None and self.database != self.schema:
            raise DbtConfigError(
                f"database: {self.database} is not the schema, {self.schema}. Leave it out: in "
                "acidsql a database and a schema are the same."
            )
        self.database = None

    @property
    def type(self) -> str:
        return "acidsql"

    @property
    def unique_field(self) -> str:
        return self.metastore or self.warehouse or self.host or "local"

    def _connection_keys(self) -> tuple[str, ...]:
        return ("method", "host", "warehouse", "metastore", "schema", "compactor", "retries")

    @property
    def spark_conf(self) -> dict[str, str]:
        """Spark's conf as texts: ``true`` of YAML is the text ``true``."""
        return {
            str(name): str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in self.server_side_parameters.items()
        }
