"""MySQL and MariaDB: a server, over PyMySQL.

As on PostgreSQL, a store transaction that writes locks the one row of TXN_LOCK_TBL and runs at
READ COMMITTED. In MySQL, DDL commits by itself. So every change of the schema can run again after
an interruption (see ``migrations``).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine, event, make_url

from acidsql.metastore.embedded.database.dialect import BUSY, Dialect, idle_timeout_ms

_CONNECT_SECONDS = 10
_GRACE_SECONDS = 30  # for an answer, in addition to the longest wait for a lock


def _open_mysql(url: str, busy_timeout_ms: int) -> Engine:
    """Make the engine of a MySQL or MariaDB, over PyMySQL, without a connection yet. Each
    connection will get READ COMMITTED, UTC, strict mode and the time-outs."""
    parsed = make_url(url)
    busy_seconds = max(1, round(busy_timeout_ms / 1000))
    engine = create_engine(
        parsed.set(drivername=f"{parsed.get_backend_name()}+pymysql"),
        pool_pre_ping=True,
        connect_args={
            "charset": "utf8mb4",
            "connect_timeout": _CONNECT_SECONDS,
            "read_timeout": busy_seconds + _GRACE_SECONDS,
            "write_timeout": busy_seconds + _GRACE_SECONDS,
        },
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        """Set the session's variables and READ COMMITTED in a new connection."""
        values = _session_variables(connection.get_server_info(), busy_seconds, busy_timeout_ms)
        settings = ", ".join(f"{name} = {value}" for name, value in values.items())
        with connection.cursor() as cursor:
            cursor.execute(f"SET {settings}")
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    return engine


def _session_variables(server: str, busy_seconds: int, busy_timeout_ms: int) -> dict[str, str]:
    """Return the variables to set in a new connection, name → value as SQL: UTC, strict mode, how
    long to wait for locks, and after how many idle seconds the server disconnects. ``server``: the
    server's version, which names MariaDB."""
    # MySQL has a time-out only for any idle connection; the pool then opens a new one.
    idle = "idle_transaction_timeout" if "MariaDB" in server else "wait_timeout"
    return {
        "time_zone": "'+00:00'",
        "sql_mode": "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",  # too long a text is an error
        "innodb_lock_wait_timeout": str(busy_seconds),
        "lock_wait_timeout": str(busy_seconds),
        idle: str(idle_timeout_ms(busy_timeout_ms) // 1000),
    }


MYSQL = Dialect(
    driver="pymysql",
    open=_open_mysql,
    read=(
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    ),
    write=("START TRANSACTION", "SELECT TXN_LOCK FROM TXN_LOCK_TBL FOR UPDATE"),
    # The lock is held until the connection is closed. Names of locks are shared by all databases
    # of the server.
    upgrade=(
        "SELECT GET_LOCK(SHA2(CONCAT('acidsql metastore ', DATABASE()), 224),"
        " @@SESSION.innodb_lock_wait_timeout)",
    ),
    now="SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
    advice={
        "Lock wait timeout": BUSY,
        "GET_LOCK": BUSY,
        "idle timeout": "This process paused for too long, and the server disconnected it.",
        "Connection refused": "Does the server run there?",
    },
    extra="mysql",
)
