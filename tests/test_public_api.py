"""The public API: names, signatures, docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys

import pytest

import acidsql
from acidsql import errors

# The signatures that the design promises, without annotations.
SIGNATURES = {
    "connect": "(spark=None, *, warehouse=None, metastore=None, retries=0, "
    "compactor='background', settings=None, extend=None)",
    "read": "(spark, path, schema=None, partitioned_by=None, *, insert_only=False, "
    "file_format='orc', valid_write_ids=None, valid_txns=None)",
    "Session.sql": "(self, text, args=None, *, retries=None, txn_app_id=None, txn_version=None, "
    "**frames)",
    "Session.auto_cdc": "(self, target, *, by=None, transform=None, keys=None, sequence_by=None, "
    "ignore_null_updates=False, ignore_null_updates_column_list=None, "
    "ignore_null_updates_except_column_list=None, apply_as_deletes=None, "
    "apply_as_truncates=None, column_list=None, except_column_list=None, "
    "stored_as_scd_type=1, track_history_column_list=None, "
    "track_history_except_column_list=None, bad_records=None, commit_points=None, "
    "txn_app_id=None, retries=3)",
    "CommitPoints": "(ends, txn='_source_txn', place=None)",
    "Session.transactions_from": "(self, format, rows)",
    "Session.changes_from": "(self, format, rows, schema=None, *, keys=None, sequence=None, "
    "absent='error')",
    "Session.update": "(self, table, set, where=None, args=None)",
    "Session.delete": "(self, table, where=None, args=None)",
    "Session.merge_into": "(self, source, table, on)",
    "Session.insert_into": "(self, table, rows, *, overwrite=False, by_name=True, partition=None)",
    "Session.create_table": "(self, table, rows_or_schema, *, partitioned_by=(), "
    "clustered_by=(), buckets=None, properties=None, if_not_exists=False)",
    "Session.script": "(self, text_or_path)",
    "Session.table": "(self, name, *, row_id=False, version=None, timestamp=None)",
    "Session.history": "(self, table, limit=None)",
    "Session.snapshot": "(self, *, timestamp=None, txn_id=None)",
    "Session.files": "(self, table)",
    "Session.events": "(self, path)",
    "Session.check": "(self, table, level='files')",
    "Session.health": "(self, table=None, partition=None)",
    "Session.repair": "(self, table, *, dry_run=True)",
    "Session.close": "(self)",
    "Session.info": "(self)",
    "Session.export_to_hive": "(self, table, *, metastore, name=None)",
    "Session.import_from_hive": "(self, table, *, metastore, name=None)",
}


def test_exported_names():
    assert set(acidsql.__all__) == {
        "AcidSqlError", "CommitPoints", "CommitUnknownError", "Costs", "Receipt", "Session",
        "SqlError", "TransientTxnError", "TxnError", "__version__", "connect",
        "load_ipython_extension", "read",
    }  # fmt: skip
    for name in acidsql.__all__:
        assert getattr(acidsql, name) is not None
    assert dir(acidsql) == sorted(acidsql.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        getattr(acidsql, "nonsense")  # noqa: B009 - the point is that it is looked up


def test_type_checkers_see_each_exported_name_in_its_own_module():
    tree = ast.parse(inspect.getsource(acidsql))
    guarded = [
        node
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
    ]
    shown = {
        alias.asname: node.module
        for node in guarded
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert shown == acidsql._HOMES
    assert {*shown, "__version__"} == set(acidsql.__all__)


def test_importing_acidsql_imports_none_of_its_modules():
    program = (
        "import sys, acidsql; "
        "print([n for n in sys.modules if n.startswith(('acidsql.', 'pyspark', 'pyarrow'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(("name", "expected"), SIGNATURES.items(), ids=SIGNATURES)
def test_signatures(name, expected):
    found = acidsql
    for part in name.split("."):
        found = getattr(found, part)
    signature = inspect.signature(found)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    assert str(signature.replace(parameters=bare, return_annotation=signature.empty)) == expected


def public_members(cls: type) -> list[str]:
    """Those of its own, and of the classes of acidsql that it inherits from."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("acidsql")]
    return [name for base in ours for name in vars(base) if not name.startswith("_")]


def test_a_session_has_what_is_promised():
    assert {"sql", "last", "costs", "table", "history", "files", "events", "close"} <= set(
        public_members(acidsql.Session)
    )


def test_every_public_name_has_a_docstring():
    for name in acidsql.__all__:
        thing = getattr(acidsql, name)
        if name == "__version__":
            continue
        assert inspect.getdoc(thing), name
        for member in public_members(thing) if inspect.isclass(thing) else ():
            value = inspect.getattr_static(thing, member)
            if inspect.isfunction(value) or isinstance(value, property):
                assert inspect.getdoc(value), f"{name}.{member}"


@pytest.mark.parametrize(
    "name",
    [
        "connect", "read", "Session.sql", "Session.table", "Session.events", "Session.history",
        "Session.check", "Session.repair",
        "Session.changes_from", "Session.export_to_hive", "Session.import_from_hive",
    ],
)  # fmt: skip
def test_a_docstring_names_every_argument(name):
    found = acidsql
    for part in name.split("."):
        found = getattr(found, part)
    text = inspect.getdoc(found)
    for argument in inspect.signature(found).parameters:
        assert argument == "self" or f"{argument}:" in text, argument


def test_errors_are_as_pysparks():
    for kind in vars(errors).values():
        if inspect.isclass(kind) and issubclass(kind, errors.AcidSqlError):
            error = kind("Said.", fact=1)
            assert str(error) == f"[{kind.condition}] Said. SQLSTATE: {kind.sqlstate}"
            assert error.getCondition() == kind.condition
            assert re.fullmatch(r"[0-9A-Z]{5}", error.getSqlState())
            assert error.getMessageParameters() == {"fact": "1"}
            assert kind.__name__ in errors.__doc__
