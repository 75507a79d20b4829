"""Functions that the tests of DML share."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from acidsql.errors import SqlError
from acidsql.metastore.interface import TxnType


def fill(acid: Any, ddl: str, *rows: str) -> None:
    """Create a table and insert rows, each given as a row of VALUES without brackets."""
    acid.sql(f"CREATE TABLE {ddl}")
    if rows:
        name = ddl.split("(")[0].strip()
        acid.sql(f"INSERT INTO {name} VALUES " + ", ".join(f"({row})" for row in rows))


def rows(acid: Any, query: str, args: Any = None) -> list[tuple[Any, ...]]:
    """The rows of a query, sorted, so that they can be compared."""
    return ordered(tuple(row) for row in acid.sql(query, args).collect())


def calls_of(monkeypatch: Any, module: Any, name: str) -> list[tuple[Any, ...]]:
    """The arguments of each later call of a function, which still does its work."""
    found: list[tuple[Any, ...]] = []
    real = getattr(module, name)

    def noted(*args: Any, **options: Any) -> Any:
        found.append(args)
        return real(*args, **options)

    monkeypatch.setattr(module, name, noted)
    return found


def ordered(found: Any) -> list[tuple[Any, ...]]:
    """Rows, sorted."""
    return sorted((tuple(row) for row in found), key=repr)


def table(acid: Any, name: str = "t") -> list[tuple[Any, ...]]:
    """A table's rows."""
    return rows(acid, f"SELECT * FROM {name}")


def counts(acid: Any, statement: str, args: Any = None) -> tuple[int, int, int]:
    """Run a statement, and return the numbers of rows that it inserted, updated and deleted."""
    row = acid.sql(statement, args).collect()[0]
    affected = row.num_inserted_rows + row.num_updated_rows + row.num_deleted_rows
    assert row.num_affected_rows == affected
    return row.num_inserted_rows, row.num_updated_rows, row.num_deleted_rows


def refused(acid: Any, statement: str, condition: str, at: str | None = None) -> SqlError:
    """Check that a statement is refused before a transaction is opened. ``at``: the text at the
    caret."""
    opened = _opened(acid)
    with pytest.raises(SqlError) as caught:
        acid.sql(statement)
    error = caught.value
    assert error.condition.startswith(condition), error
    assert error.text is not None
    if at is not None:
        assert error.text[error.start : error.end] == at, error
    assert not _opened(acid) - opened
    return error


def _opened(acid: Any) -> set[int]:
    """Open and aborted transactions, without the leases of reads."""
    found = acid.metastore.show_txns()
    # A Hive Metastore does not tell who only reads.
    parts = getattr(acid.metastore, "parts", None)
    own = {} if parts is None else parts.server.own_txns
    readers = {number for number, txn in own.items() if txn.type is TxnType.READ_ONLY}
    return {txn.txn_id for txn in found if "lease" not in txn.agent_info} - readers


def clean(acid: Any) -> list[Any]:
    """What a session deletes. Over a Hive Metastore only Hive deletes."""
    return acid.clean().collect() if acid.metastore.abilities.can_clean else []


def directories(acid: Any, name: str = "t") -> list[str]:
    """The directories with a table's files, hidden ones included."""
    root = Path(acid.warehouse) / name
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_dir())


def row_ids_are_unique(acid: Any, name: str, partition_columns: tuple[str, ...] = ()) -> None:
    """No two rows of one partition have the same row id."""
    extra = "".join(f", {column}" for column in partition_columns)
    found = Counter(map(tuple, acid.sql(f"SELECT row__id{extra} FROM {name}").collect()))
    assert all(times == 1 for times in found.values()), found.most_common(3)
