"""Looks at a Hive Metastore: settings and tables of all kinds. It only asks: no transaction, no
lock, no change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acidsql.acid.table import TableName
from acidsql.errors import AcidSqlError
from acidsql.metastore.hive.store import HiveMetastore
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.kinds import TableKind, engine_of, format_of, kind_of


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table as the metastore describes it.

    Attributes:
        name: Its name.
        kind: What it is.
        format: ``orc``, ``parquet``, ``text``, the name of another format's class, or the engine of
            a table that is not Hive's. Empty for a view.
        location: Its directory; empty for a view.
    """

    name: TableName
    kind: TableKind
    format: str
    location: str

    @property
    def is_acid(self) -> bool:
        """Whether Hive keeps transactions for it."""
        return self.kind in (TableKind.FULL_ACID, TableKind.INSERT_ONLY)


class Survey(HiveMetastore):
    """A Hive Metastore to look at; its arguments are those of ``HiveMetastore``."""

    @property
    def security(self) -> str:
        """The security of the connection in words: ``auth=none, no TLS, user ann``; also whether it
        goes over HTTP, and what Kerberos does to messages. The password or token is not shown."""
        client = self.parts.server.client
        address = client.address
        over = "" if address.path is None else " over HTTP"
        how = ["TLS" if address.tls else "no TLS"]
        if client.protection:
            how.append(f"{client.protection} by Kerberos")
        user = "the token's user" if address.auth == "jwt" else f"user {client.user}"
        return f"auth={address.auth}, {', '.join(how)}{over}, {user}"

    @property
    def sends_password_openly(self) -> bool:
        """Whether somebody on the network could read the password or token."""
        address = self.parts.server.client.address
        return address.auth in ("plain", "jwt") and not address.tls

    def setting(self, name: str) -> str:
        """Return a setting of the server's, as text; "" if the server does not tell it."""
        try:
            return str(self.parts.server.call("get_config_value", name, ""))
        except AcidSqlError:
            return ""

    def all_tables(self, database: str) -> Iterator[FoundTable]:
        """Yield all tables and views of a database, of any kind, by name; the server is asked when
        the first is wanted."""
        server, raw_tables = self.parts.server, self.parts.raw_tables
        names = sorted(server.call("get_all_tables", server.qualified_database(database)))
        for raw in sorted(
            raw_tables.named_tables(database, names), key=lambda raw: str(raw.tableName)
        ):
            kind = kind_of(raw)
            is_view = kind in (TableKind.VIEW, TableKind.MATERIALIZED_VIEW)
            yield FoundTable(
                TableName(raw.dbName, raw.tableName),
                kind,
                "" if is_view else engine_of(raw) or format_of(raw),
                "" if is_view else convert.from_server_location(raw.sd.location or ""),
            )
