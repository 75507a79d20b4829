"""dbt's connections: opened and closed by dbt, each an acidsql session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.acidsql.column import stored_type
from dbt.adapters.acidsql.session import SessionHandle, open_session
from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.spark.connections import SparkConnectionManager
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from acidsql.errors import AcidSqlError

_log = AdapterLogger("acidsql")
_HOOK_ADVICE = (
    " A hook of dbt's is part of its model's transaction. Say after_commit(…), before_begin(…) or "
    "{'sql': …, 'transaction': false} for one that is not."
)


class AcidsqlConnectionManager(SparkConnectionManager):
    """Opens a session for each connection. dbt's BEGIN, COMMIT and ROLLBACK of a connection do
    nothing, because statements that define tables cannot be part of a transaction: the
    materializations begin and commit where they change rows."""

    TYPE = "acidsql"

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Open a session for a connection, unless it is open already. Raise FailedToConnectError if
        Spark, the warehouse or the metastore cannot be opened."""
        if connection.state == ConnectionState.OPEN:
            return connection
        try:
            credentials = connection.credentials
            connection.handle = SessionHandle(
                open_session(credentials), is_remote=credentials.method == "connect"
            )
        except SystemExit as error:  # no Java
            raise FailedToConnectError(str(error)) from error
        except Exception as error:
            raise FailedToConnectError(f"{type(error).__name__}: {error}") from error
        connection.state = ConnectionState.OPEN
        return connection

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Turn errors of a statement into dbt's."""
        try:
            yield
        except DbtRuntimeError:
            raise
        except AcidSqlError as error:
            _log.debug(f"Error while running:\n{sql}")
            advice = _HOOK_ADVICE if error.condition == "OP_NOT_ALLOWED_IN_TXN" else ""
            raise DbtDatabaseError(f"{error}{advice}") from error
        except Exception as error:
            _log.debug(f"Error while running:\n{sql}")
            raise DbtDatabaseError(str(error)) from error

    @classmethod
    def get_response(cls, cursor: SessionHandle | None) -> AdapterResponse:
        """Return what dbt prints of the last statement: its first word, and how many rows changed
        if it has changed some."""
        if cursor is None or cursor.rows_affected is None:
            return AdapterResponse(_message="OK")
        return AdapterResponse(
            _message=f"{cursor.statement_name} {cursor.rows_affected}",
            code=cursor.statement_name,
            rows_affected=cursor.rows_affected,
        )

    def cancel(self, connection: Connection) -> None:
        connection.handle.cancel()

    @classmethod
    def data_type_code_to_name(cls, type_code: Any) -> str:
        return stored_type(str(type_code))
