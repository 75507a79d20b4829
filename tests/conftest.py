"""Fixtures for all tests: one Spark, a fresh warehouse for each test; fast tests run first."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import daily
import over_connect
import pytest
import servers
from over_connect import OVER_CONNECT
from over_hive import ON_HDFS, ON_S3, OVER_HIVE, session_over_hive, skip_what_hive_lacks
from running_server import running_server
from small_spark import small_spark

from acidsql.java import use_java
from acidsql.storage.files.filesystem import filesystem_for

HIVE_SERVERS = frozenset({"hive", "hive_metastore", "hive42_metastore", "hive3_metastore"})
MEMORY, ROOM = Path("/dev/shm"), 4 << 30


def pytest_addoption(parser: pytest.Parser) -> None:
    daily.add_option(parser)


def pytest_report_header(config: pytest.Config) -> str:
    return daily.describe_choice(config)


def pytest_configure(config: pytest.Config) -> None:
    """Put temporary directories into memory if there is room: there are no power cuts here, and a
    statement syncs a dozen times."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    daily.set_day(config)
    if OVER_CONNECT:
        config.pluginmanager.register(over_connect)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark all tests that use the fixture ``spark``, and run their modules last; mark those that
    need a server of their own. Choose the tests of the day. Over a Hive Metastore, skip those that
    need more.

    ``tryfirst``: ``-m spark`` must see the marks.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if _needs_server(item):
            item.add_marker("server")
        if OVER_HIVE:
            skip_what_hive_lacks(item)
    daily.choose_tests(config, items)
    # A module stays in one process, so its place is that of its last tests.
    spark_modules = {item.path for item in items if item.get_closest_marker("spark")}
    items.sort(key=lambda item: item.path in spark_modules)


def _needs_server(item: pytest.Item) -> bool:
    """Whether a test needs a Hive Metastore, a Hive, a PostgreSQL or a MariaDB."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    class_name = item.cls.__name__ if isinstance(item, pytest.Function) and item.cls else ""
    return (
        not HIVE_SERVERS.isdisjoint(getattr(item, "fixturenames", ()))
        or any(value in servers.KINDS for value in values if isinstance(value, str))
        or any(class_name == f"Test{kind.capitalize()}" for kind in servers.KINDS)
        or class_name in ("TestHive", "TestHive42", "TestHive3")
    )


@pytest.fixture(scope="session")
def java_home() -> str:
    """A Java that PySpark runs on. Without one the run stops and says what to do."""
    return str(use_java().home)


@pytest.fixture(scope="session")
def spark(
    java_home: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Any]:
    """A Spark session with two threads that all tests share. A test restores each conf that it
    changes. With ``ACIDSQL_CONNECT=1``, one of Spark Connect."""
    if OVER_CONNECT:
        hadoop = request.getfixturevalue("s3").hadoop if ON_S3 else {}
        yield from over_connect.session(tmp_path_factory.mktemp("connect"), hadoop)
        return
    import s3a_jars

    session = small_spark(
        tmp_path_factory.mktemp("spark-warehouse"),
        threads=2,
        memory="2g",
        java_options="-Duser.timezone=UTC",
        class_path=s3a_jars.class_path(),
    )
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def own_views(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test's temporary views end with the test: other tests list tables and complete names in the
    same Spark session. Those of a module's fixtures stay."""
    if "spark" not in request.fixturenames:
        yield
        return
    spark = request.getfixturevalue("spark")
    before = set(_temporary_views(spark))
    yield
    for view in set(_temporary_views(spark)) - before:
        spark.catalog.dropTempView(view)


def _temporary_views(spark: Any) -> list[str]:
    if OVER_CONNECT:
        names = (one.name for one in spark.catalog.listTables() if one.isTemporary)
        return [name for name in names if not name.startswith("__acidsql_")]
    found = spark._jsparkSession.sessionState().catalog().listLocalTempViews("*")
    return [found.apply(at).table() for at in range(found.size())]


@pytest.fixture(scope="session")
def mini_hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real HDFS with a name node and two data nodes (``mini_hdfs.MiniHdfs``)."""
    import mini_hdfs

    work = tmp_path_factory.mktemp("hdfs")
    yield from running_server(mini_hdfs.missing(), lambda: mini_hdfs.MiniHdfs(work))


@pytest.fixture
def hdfs(request: pytest.FixtureRequest) -> Iterator[str]:
    """A directory of the test's own on an HDFS: that of ``ACIDSQL_HDFS``, or else a small one."""
    above = os.environ.get("ACIDSQL_HDFS") or request.getfixturevalue("mini_hdfs").root
    directory = f"{above}/{uuid4().hex}"
    files = filesystem_for(directory)
    files.create_directory(directory)
    yield directory
    files.delete_directory(directory)


@pytest.fixture(scope="session")
def s3() -> Iterator[Any]:
    """An S3 server that counts requests and fails by rule (``object_store.ObjectStore``), or with
    ``ACIDSQL_S3``, another one."""
    import object_store
    from other_store import OTHER_STORE, OtherStore

    if OTHER_STORE:
        yield from running_server(None, lambda: OtherStore(OTHER_STORE))
        return
    yield from running_server(object_store.missing(), object_store.ObjectStore)


@pytest.fixture
def bucket(s3: Any) -> Iterator[str]:
    """A bucket of the test's own."""
    name = s3.new_bucket()
    yield name
    s3.drop_bucket(name)


@pytest.fixture
def s3a(spark: Any, s3: Any, bucket: str) -> Iterator[str]:
    """The location of a bucket of the test's own, which Spark can open, too: its settings are in
    Hadoop's configuration, as ``core-site.xml`` would put them there."""
    import s3a_jars

    if (missing := s3a_jars.missing()) is not None:
        pytest.skip(missing)
    location = f"s3a://{bucket}"
    if OVER_CONNECT and ON_S3:
        yield location
        return
    hadoop = spark._jsc.hadoopConfiguration()
    own = {name.replace("fs.s3a.", f"fs.s3a.bucket.{bucket}."): v for name, v in s3.hadoop.items()}
    for name, value in own.items():
        hadoop.set(name, value)
    yield location
    spark._jvm.org.apache.hadoop.fs.Path(location).getFileSystem(hadoop).close()
    for name in own:
        hadoop.unset(name)


@pytest.fixture(scope="session")
def hive_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real Hive Metastore, 4.0.1 or the version in ``ACIDSQL_HIVE``. Each test makes a database
    of its own, because a start takes long.

    If tests run over it, the warehouse is the directory around all tests' directories: the server
    refuses tables outside of its warehouse, and tests put tables into directories of theirs.
    """
    import hive_version

    yield from _hive_metastore(hive_version.servers(), tmp_path_factory)


@pytest.fixture(scope="session")
def hive3_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real Hive Metastore 3.1.3. Each test makes a database of its own."""
    import hive3_metastore

    yield from _hive_metastore(hive3_metastore, tmp_path_factory)


@pytest.fixture(scope="session")
def hive42_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real Hive Metastore 4.2.0. Each test makes a database of its own."""
    import hive42_metastore

    yield from _hive_metastore(hive42_metastore, tmp_path_factory)


def _hive_metastore(module: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    work, given = tmp_path_factory.mktemp(module.__name__), {}
    if OVER_HIVE:
        given["warehouse"] = tmp_path_factory.getbasetemp()
        given["settings"] = {"metastore.disallow.incompatible.col.type.changes": "false"}
    yield from running_server(module.missing(), lambda: module.HiveMetastoreServer(work, **given))


@pytest.fixture
def acid_over_hive(spark: Any, hive_metastore: Any) -> Iterator[Any]:
    """A session on a Hive Metastore, in a database of the test's own."""
    import acidsql

    with acidsql.connect(spark, metastore=hive_metastore.url) as session:
        name = f"own_{uuid4().hex}"
        session.sql(f"CREATE DATABASE {name}")
        session.sql(f"USE {name}")
        yield session
        spark.catalog.setCurrentDatabase("default")
        session.sql(f"DROP DATABASE {name} CASCADE")


@pytest.fixture(scope="session")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real Hive: its SQL, and a metastore of its own. Each test makes a database of its own."""
    import hive_sql

    work = tmp_path_factory.mktemp("hive")
    yield from running_server(hive_sql.missing(), lambda: hive_sql.Hive(work))


@pytest.fixture(scope="session")
def new_metastore(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The SQLite file that ``connect`` would make. To make its tables takes longer than many
    tests."""
    from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url

    path = tmp_path_factory.mktemp("metastore") / "metastore.db"
    EmbeddedMetastore(sqlite_url(path), warehouse="").close()
    return path.read_bytes()


@pytest.fixture
def acid(
    spark: Any, tmp_path: Path, new_metastore: bytes, request: pytest.FixtureRequest
) -> Iterator[Any]:
    """A session on a warehouse of the test's own.

    With ``ACIDSQL_OVER_HIVE=4``, ``4.2`` or ``3``, on a Hive Metastore that all tests share. With
    ``ACIDSQL_ON_S3=1``, the warehouse is on an object store, with ``ACIDSQL_ON_HDFS=1`` on HDFS.
    """
    import acidsql

    if OVER_HIVE:
        with session_over_hive(spark, request) as session:
            yield session
        return
    warehouse = str(tmp_path / "warehouse")
    if ON_S3:
        warehouse = f"{request.getfixturevalue('s3a')}/warehouse"
    elif ON_HDFS:
        warehouse = f"{request.getfixturevalue('hdfs')}/warehouse"
    metastore = tmp_path / "warehouse" / ".acidsql" / "metastore.db"
    metastore.parent.mkdir(parents=True)
    metastore.write_bytes(new_metastore)
    with closing(sqlite3.connect(metastore)) as store, store:
        store.execute("UPDATE DBS SET DB_LOCATION_URI = ?", [warehouse])
    # Nothing is compacted automatically, and nothing kept for older versions, because tests look at
    # directories.
    settings = {"acidsql.history.retention": "0s"}
    with acidsql.connect(
        spark, warehouse=warehouse, metastore=f"sqlite:///{metastore}", compactor="off",
        settings=settings,
    ) as session:  # fmt: skip
        yield session
    spark.catalog.setCurrentDatabase("default")
