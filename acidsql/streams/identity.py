"""Checks the names and numbers by which a program says which batch it commits."""

from __future__ import annotations

from acidsql.errors import SettingError
from acidsql.metastore.streams import Batch

_APP_ID_MAX = 250  # characters: the width of STREAMS.TXN_APP_ID


def numbered_batch(txn_app_id: str | None, txn_version: int | None, sink: str = "") -> Batch | None:
    """Return the batch that a program names by application and number; None if it passes neither.

    Raises:
        SettingError: Only one argument was passed; or the application's id is none (see
            ``check_app_id``), or the number is not an integer from 0 to 2^63 - 1.
    """
    if txn_app_id is None and txn_version is None:
        return None
    if txn_app_id is None or txn_version is None:
        raise SettingError("Pass txn_app_id and txn_version together.", name="txn_app_id")
    check_app_id(txn_app_id)
    if type(txn_version) is not int or not 0 <= txn_version < 1 << 63:
        raise SettingError(
            f"txn_version={txn_version!r} is not an integer from 0 to 2^63 - 1.",
            name="txn_version",
        )
    return Batch(txn_app_id, txn_version, sink)


def check_app_id(app_id: str) -> None:
    """Raise SettingError if an application's id (``txn_app_id``) is not a text of 1 to 250
    printable characters. Not every metastore could keep another one unchanged."""
    is_text = isinstance(app_id, str) and app_id.isprintable()
    if not is_text or not 1 <= len(app_id) <= _APP_ID_MAX:
        raise SettingError(
            f"txn_app_id={app_id!r} is not a text of 1 to {_APP_ID_MAX} printable characters.",
            name="txn_app_id",
        )
