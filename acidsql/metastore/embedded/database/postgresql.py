"""PostgreSQL: a server, over psycopg.

A store transaction that writes locks the one row of TXN_LOCK_TBL, and runs at READ COMMITTED. So
each of its statements sees everything that earlier writers have committed, and no later writer can
begin.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine, event, make_url

from acidsql.metastore.embedded.database.dialect import BUSY, Dialect, idle_timeout_ms

# libpq's options. A server that is gone is noticed after a minute, even in the middle of an answer.
_CONNECT = {
    "connect_timeout": "10",
    "keepalives": "1",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "client_encoding": "utf8",
    "application_name": "acidsql",
}


def _open_postgresql(url: str, busy_timeout_ms: int) -> Engine:
    """Make the engine of a PostgreSQL, over psycopg, without a connection yet. Each connection will
    get READ COMMITTED, synchronous commit and the time-outs. Options of the connection in the URL
    win over acidsql's."""
    parsed = make_url(url).set(drivername="postgresql+psycopg")
    # Options in the user's URL win.
    options = {name: value for name, value in _CONNECT.items() if name not in parsed.query}
    engine = create_engine(
        parsed, connect_args=options, pool_pre_ping=True, use_native_hstore=False
    )
    session = (
        "SET default_transaction_isolation = 'read committed';"
        "SET synchronous_commit = on;"  # a commit survives a power cut, even if the default is off
        f"SET lock_timeout = {busy_timeout_ms};"
        f"SET idle_in_transaction_session_timeout = {idle_timeout_ms(busy_timeout_ms)}"
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        """Set isolation, synchronous commit and the time-outs in a new connection."""
        connection.autocommit = True  # otherwise the next rollback would undo the settings
        connection.execute(session)
        connection.autocommit = False

    return engine


POSTGRESQL = Dialect(
    driver="psycopg",
    open=_open_postgresql,
    # The driver sends BEGIN before the first of these statements.
    read=("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",),
    write=('SELECT "TXN_LOCK" FROM "TXN_LOCK_TBL" FOR UPDATE',),
    upgrade=("SELECT 1 FROM pg_advisory_xact_lock(x'61636964'::int)",),  # "acid"
    now="SELECT CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)",
    advice={
        "lock timeout": BUSY,
        "idle-in-transaction": "This process paused for too long, and the server disconnected it.",
        "Connection refused": "Does the server run there?",
    },
    extra="postgresql",
)
