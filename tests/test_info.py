"""What is sent with a question: it says what is needed, and has no secrets."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import acidsql
from acidsql.api.info import Info, _shown_value, installation_info
from acidsql.errors import CatalogError
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.embedded.database.schema import SCHEMA_VERSION
from acidsql.terminal.cli import main


def test_the_command_works_without_a_warehouse():
    done = CliRunner().invoke(main, ["info"])
    assert done.exit_code == 0, done.output
    facts = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert facts["acidsql"] == acidsql.__version__
    for name in ("Python", "PySpark", "pyarrow", "sqlglot", "Java", "system"):
        assert facts[name]
    assert "give --metastore or --warehouse" in facts["metastore"]


def test_the_metastore_is_named_by_its_kind_and_schema(tmp_path):
    (tmp_path / ".acidsql").mkdir()
    url = f"sqlite:///{tmp_path}/.acidsql/metastore.db"
    EmbeddedMetastore(url, warehouse=str(tmp_path)).close()
    words = [
        "--warehouse",
        str(tmp_path),
        "--conf",
        "spark.hadoop.fs.s3a.secret.key=hidden",
        "info",
    ]
    shown = CliRunner().invoke(main, words).stdout
    assert f"sqlite, schema version {SCHEMA_VERSION} of acidsql" in shown
    assert "local files" in shown and str(tmp_path) not in shown
    assert "fs.s3a.secret.key" in shown and "hidden" not in shown


def test_a_metastore_that_does_not_open_is_told_by_its_error():
    url = "postgresql+psycopg://anna:hidden@127.0.0.1:1/db"
    facts = dict(installation_info(url, "s3a://bucket/wh", {}).facts)
    assert "METASTORE" in facts["metastore"] and "hidden" not in facts["metastore"]
    assert facts["warehouse"] == "s3a"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("spark.hadoop.fs.s3a.access.key", "AKIA", "***"),
        ("spark.hadoop.fs.azure.account.key.x", "abc", "***"),
        ("spark.authenticate.secret", "abc", "***"),
        ("spark.ssl.keyPassword", "abc", "***"),
        ("spark.x.token", "abc", "***"),
        ("spark.x.url", "jdbc:mysql://anna:abc@host/db?user=a", "jdbc:mysql://anna:***@host/db?user=a"),
        ("spark.x.url", "postgresql://anna:a/b?c@host/db", "postgresql://anna:***@host/db"),
        ("spark.x.url", "s3a://AKIA:a/b+c@bucket/x", "s3a://AKIA:***@bucket/x"),
        ("spark.x.url", "thrift://a:9083,thrift://b:9083", "thrift://a:9083,thrift://b:9083"),
        ("spark.x.url", "jdbc:mysql://host/db?password=abc&a=1", "jdbc:mysql://host/db?password=***&a=1"),
        ("spark.x.options", "-Dstore.password='a b' -Dx=1", "-Dstore.password=*** -Dx=1"),
        ("spark.sql.ansi.enabled", "false", "false"),
        ("spark.x", "MERGE … ON t.key = s.key", "MERGE … ON t.key = s.key"),
    ],
)  # fmt: skip
def test_a_secret_is_never_shown(name, value, shown):
    assert _shown_value(name, value) == shown


def test_later_lines_of_a_fact_stand_below_its_first():
    assert (
        str(Info((("a", "1"), ("last error", "x\ny"))))
        == "a           1\nlast error  x\n            y"
    )


def test_a_session_tells_its_settings_and_its_last_error(acid):
    acid.sql("SET hive.txn.timeout = 77s")
    assert "last error" not in str(acid.info())
    with pytest.raises(CatalogError):
        acid.table("nowhere")
    with pytest.raises(acidsql.SqlError):
        acid.sql("DELETE FROM nowhere WHERE password = 'hidden'")
    facts = dict(acid.info().facts)
    assert facts["hive.txn.timeout"] == "77000ms"
    assert "[TABLE_OR_VIEW_NOT_FOUND]" in facts["last error"]
    assert "hidden" not in str(acid.info()) and acid.warehouse not in facts["warehouse"]
    assert facts["Spark"] == acid.spark.version
    assert acid.info()._repr_html_().startswith("<pre")
