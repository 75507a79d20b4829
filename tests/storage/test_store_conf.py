"""A session's settings of object stores reach this process and Spark's workers, and no log."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from acidsql.errors import SettingError
from acidsql.storage.files.options.store_options import PLACES, open_store, settings_here
from acidsql.storage.spark.session.store_conf import (
    give_workers_store_settings,
    hand_over_store_settings,
    need_classes,
    store_settings,
)

ACCOUNT = "fs.azure.account.key.acc.dfs.core.windows.net"


@pytest.fixture
def hadoop(spark):
    """Hadoop's configuration of the application, as it was before, afterwards."""
    conf, changed = spark._jsc.hadoopConfiguration(), []

    def change(name, value):
        changed.append(name)
        conf.set(name, value)

    yield change
    for name in changed:
        conf.unset(name)
    hand_over_store_settings(spark)


def in_a_worker(spark):
    """What a task of the session finds."""

    def answer(batches):
        from acidsql.storage.files.options.store_options import settings_here

        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"found": [json.dumps(dict(settings_here()))]})

    [row] = spark.range(0, 1, 1, 1).mapInArrow(answer, "found string").collect()
    return json.loads(row.found)


def test_workers_get_what_only_hadoop_knows_and_no_log_shows_its_secrets(spark, hadoop, tmp_path):
    hadoop("fs.s3a.endpoint", "http://one")
    hadoop("fs.s3a.bucket.b.1.secret.key", "hush-hush")
    hadoop(ACCOUNT, "hush-hush")
    spark.conf.set("fs.gs.project.id", "p")  # Spark gives Hadoop a session's own settings, too
    wanted = {
        "fs.s3a.endpoint": "http://one",
        "fs.s3a.bucket.b.1.secret.key": "hush-hush",
        ACCOUNT: "hush-hush",
        "fs.gs.project.id": "p",
    }
    try:
        log = logging_to(spark, tmp_path)
        hand_over_store_settings(spark)
        assert settings_here() == store_settings(spark) == wanted
        assert in_a_worker(spark) == wanted
        shown = {row.key: row.value for row in spark.sql("SET").collect()}
        assert shown[f"{PLACES[1]}{ACCOUNT}"] == "*********(redacted)"
        assert shown[f"{PLACES[0]}fs.s3a.endpoint"] == "http://one"
        assert "hush" not in str(shown)
        written = log()
        assert f"{PLACES[1]}{ACCOUNT}" in written and "hush" not in written

        beside = spark.newSession()
        assert in_a_worker(beside) == {}
        give_workers_store_settings(beside, store_settings(spark))
        assert in_a_worker(beside) == wanted
    finally:
        spark.conf.unset("fs.gs.project.id")
    hadoop("fs.s3a.endpoint", "http://two")
    hand_over_store_settings(spark)
    del wanted["fs.gs.project.id"]
    assert in_a_worker(spark) == {**wanted, "fs.s3a.endpoint": "http://two"}


def logging_to(spark, directory):
    """Let Spark write its event log. Returns a function that ends this, and gives the text."""
    jvm, context = spark._jvm, spark._jsparkSession.sparkContext()
    context.conf().set("spark.eventLog.compress", "false")
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "app", jvm.scala.Option.empty(), jvm.java.net.URI(f"file://{directory}"),
        context.conf(), spark._jsc.hadoopConfiguration(),
    )  # fmt: skip
    listener.start()
    context.addSparkListener(listener)

    def text():
        context.listenerBus().waitUntilEmpty()
        context.removeSparkListener(listener)
        listener.stop()
        context.conf().remove("spark.eventLog.compress")
        return "".join(file.read_text() for file in directory.rglob("*") if file.is_file())

    return text


def test_secrets_in_files_of_keys_are_found(spark, hadoop, tmp_path):
    jvm = spark._jvm
    for name, entries in {
        "all": {"fs.s3a.access.key": "a", "fs.s3a.secret.key": "all", "ssl.client": "no"},
        "one": {"fs.s3a.secret.key": "one"},
    }.items():
        path = f"localjceks://file{tmp_path}/{name}.jceks"
        conf = jvm.org.apache.hadoop.conf.Configuration()
        conf.set("hadoop.security.credential.provider.path", path)
        factory = jvm.org.apache.hadoop.security.alias.CredentialProviderFactory
        provider = factory.getProviders(conf)[0]
        for alias, value in entries.items():
            characters = spark.sparkContext._gateway.new_array(jvm.char, len(value))
            for at, character in enumerate(value):
                characters[at] = character
            provider.createCredentialEntry(alias, characters)
        provider.flush()
    all_keys, one = (f"localjceks://file{tmp_path}/{name}.jceks" for name in ("all", "one"))
    hadoop("hadoop.security.credential.provider.path", all_keys)
    hadoop("fs.s3a.bucket.b.security.credential.provider.path", one)
    hadoop("fs.s3a.secret.key", "in plain")
    assert store_settings(spark) == {
        "fs.s3a.access.key": "a",
        "fs.s3a.secret.key": "all",
        "fs.s3a.bucket.b.secret.key": "one",
    }
    (tmp_path / "all.jceks").write_text("damaged")
    with pytest.raises(SettingError, match="file of Hadoop's keys cannot be read"):
        store_settings(spark)


@pytest.mark.classic
def test_spark_without_a_file_system_is_told_which_package_it_lacks(spark):
    need_classes(spark, "file:///d")
    with pytest.raises(SettingError, match=r"'gs:'.*org\.apache\.hadoop:hadoop-gcp:\d"):
        need_classes(spark, "gs://b/d")


def test_spark_and_arrow_see_the_same_objects(spark, s3a):
    need_classes(spark, s3a)
    hand_over_store_settings(spark)
    spark.range(3).coalesce(1).write.orc(f"{s3a}/t")
    bucket = s3a.removeprefix("s3a://")
    store = open_store("s3a", bucket, settings_here())
    [part] = [
        info
        for info in store.get_file_info(pafs.FileSelector(f"{bucket}/t"))
        if info.base_name.endswith(".orc")
    ]
    store.copy_file(part.path, f"{bucket}/t/copy.orc")
    assert spark.read.orc(f"{s3a}/t").count() == 6
