"""Which settings of object stores and HDFS a Spark session has, and how its workers get them.

Hadoop's configuration has them, where a JVM is: what Spark's conf gives (``spark.hadoop.fs.…``),
``core-site.xml`` and ``hdfs-site.xml``, the session's own, and secrets in files of keys (JCEKS). A
worker has no JVM. But each job carries the session's settings whose names begin with ``spark``, so
those that Spark's conf has not are set in the session under names of ours. Spark shows no value of
a secret one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, cast

from pyspark.sql import SparkSession

from acidsql.acid.paths import S3_SCHEMES, scheme_and_root
from acidsql.errors import SettingError
from acidsql.storage.files.options import hdfs_options
from acidsql.storage.files.options.hadoop_conf import is_secret
from acidsql.storage.files.options.store_options import NAMES, PLACES, PREFIXES, register
from acidsql.storage.spark.session.java_classes import java_class
from acidsql.storage.spark.session.jvm import is_remote

_OURS, _SECRET, _SPARKS = PLACES
_PATTERN = "^(" + "|".join(prefix.replace(".", r"\.") for prefix in PREFIXES) + ")"
_KEY_FILES = "security.credential.provider.path"
_PER_BUCKET = "fs.s3a.bucket."
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_ARTIFACTS = {
    **dict.fromkeys(S3_SCHEMES, "hadoop-aws"),
    "gs": "hadoop-gcp",
    **dict.fromkeys(("abfs", "abfss"), "hadoop-azure"),
}


def hadoop_conf(spark: SparkSession) -> Any | None:
    """Return Hadoop's configuration of a session, as Spark reads files with it; None without
    a JVM.
    """
    session = getattr(spark, "_jsparkSession", None)
    if session is None:
        return None
    _load_hdfs_site(spark._jvm)
    return session.sessionState().newHadoopConf()


def hand_over_store_settings(spark: SparkSession) -> None:
    """Let this process and the session's workers open object stores and HDFS with the session's
    settings. This changes the session's conf (see ``give_workers_store_settings``), takes back what
    ``give_thread_store_settings`` gave this thread, and lets Spark read ``s3:`` and ``s3n:``.

    In this process the settings of the latest call hold, as file systems are the process's own.

    Raises:
        SettingError: A file of keys cannot be read.
    """
    settings = store_settings(spark)
    register(settings)
    give_workers_store_settings(spark, settings)
    if not is_remote(spark):
        # None takes away what ``give_thread_store_settings`` gave before.
        spark.sparkContext.setLocalProperty(NAMES, cast(str, None))
    _let_spark_know_old_names(spark)


def _let_spark_know_old_names(spark: SparkSession) -> None:
    """Let Spark read ``s3:`` and ``s3n:`` as ``s3a:``, unless its Hadoop conf says how to read
    them: a metastore's tables may have such locations. Do nothing over Spark Connect.
    """
    context: Any = getattr(spark, "_jsc", None)
    for scheme in S3_SCHEMES[1:] if context is not None else ():
        context.hadoopConfiguration().setIfUnset(f"fs.{scheme}.impl", _S3A)


def give_workers_store_settings(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Let the workers of a session open object stores with these settings (Hadoop's names), and no
    others but the secret ones in the conf of a Spark Connect server. They are put into the
    session's conf, under names of ours, and earlier ones are taken out. Without settings and
    earlier ones, do nothing: the workers then take those of Spark's conf.
    """
    names_before = spark.conf.get(NAMES, None)
    if not settings and not names_before:
        return
    for name in {*settings, *(names_before or "").split(",")} - {""}:
        _set_for_workers(spark, name, settings.get(name))
    if settings:
        spark.conf.set(
            NAMES, ",".join(sorted({*settings, *_secret_names_on_connect_server(spark)}))
        )
    else:
        spark.conf.unset(NAMES)


def _secret_names_on_connect_server(spark: SparkSession) -> set[str]:
    """Return the names, without ``spark.hadoop.``, of the secret settings of object stores that the
    conf of a Spark Connect server has.

    The client cannot read their values, but the workers can. Empty for a classic session.
    """
    if not is_remote(spark):
        return set()
    names = {row.key.removeprefix(_SPARKS) for row in spark.sql("SET").collect()}
    return {name for name in names if name.startswith(PREFIXES) and is_secret(name)}


def _set_for_workers(spark: SparkSession, name: str, value: str | None) -> None:
    """Set a setting of the session for its workers, under a name of ours; unset it if Spark's conf
    has this value already, or ``value`` is None. The name of a secret one also goes into the
    application's conf, so that the event log hides its value.
    """
    property_name = f"{_SECRET if is_secret(name) else _OURS}{name}"
    value_to_set = None if spark.conf.get(f"{_SPARKS}{name}", None) == value else value
    if value_to_set == spark.conf.get(property_name, None):
        return
    if value_to_set is None:
        spark.conf.unset(property_name)
        return
    if is_secret(name) and (java := getattr(spark, "_jsparkSession", None)) is not None:
        # Of a job's properties, the event log hides those whose names are in the application's
        # conf, too.
        java.sparkContext().conf().set(property_name, "handed over")
    spark.conf.set(property_name, value_to_set)


def give_thread_store_settings(spark: SparkSession) -> None:
    """Let workers open object stores in jobs that are none of Spark SQL's, if this thread, or one
    that inherits its properties, begins them: those of ``DataFrame.rdd`` and
    ``toLocalIterator``.

    Such a job carries the thread's properties, and not the session's settings. Nothing happens over
    Spark Connect, or if no settings were handed over to the session's workers.
    """
    if is_remote(spark) or (names := spark.conf.get(NAMES, None)) is None:
        return
    # The values stay in the JVM: py4j logs what it sends. The names are those that the session has,
    # so that the event log hides the same ones.
    property_names = [f"{place}{name}" for name in names.split(",") for place in PLACES]
    jvm: Any = spark._jvm
    java = spark._jsparkSession
    properties = java_class(jvm, "java.util.HashMap")(java.sessionState().conf().settings())
    properties.keySet().retainAll([NAMES, *property_names])
    java.sparkContext().getLocalProperties().putAll(properties)


def store_settings(spark: SparkSession) -> dict[str, str]:
    """Return Hadoop's settings of object stores and HDFS in a session, name → value, without
    Hadoop's defaults, and which client opens HDFS, if Spark's conf says it. Values of files of keys
    are among them, in place of the settings that name the files. Over Spark Connect, they are only
    those of Spark's conf.

    Raises:
        SettingError: A file of keys cannot be read.
    """
    client = spark.conf.get(f"spark.{hdfs_options.CLIENT}", None)
    chosen = {} if client is None else {hdfs_options.CLIENT: client}
    conf = hadoop_conf(spark)
    if conf is None:  # Spark Connect
        spark_settings = {
            name.removeprefix(_SPARKS): value
            for name, value in spark.conf.getAll.items()
            if name.startswith(_SPARKS)
        }
        return chosen | {
            name: value for name, value in spark_settings.items() if name.startswith(PREFIXES)
        }
    settings_map = conf.getValByRegex(_PATTERN)
    settings_map.entrySet().removeAll(_defaults(spark._jvm))
    settings = chosen | (dict(settings_map) if settings_map.size() else {})
    keys = {name for name in settings if name.endswith(_KEY_FILES)}
    if keys or conf.get(f"hadoop.{_KEY_FILES}"):
        settings.update(
            _settings_in_key_files(spark._jvm, conf, {n: settings.pop(n) for n in keys})
        )
    return settings


@lru_cache(maxsize=1)
def _load_hdfs_site(jvm: Any) -> None:
    """Let Hadoop's configurations have ``hdfs-site.xml``: Java reads it when this class is first
    used, which may be later."""
    java_class(jvm, "org.apache.hadoop.hdfs.HdfsConfiguration").init()


@lru_cache(maxsize=1)
def _defaults(jvm: Any) -> Any:
    """Return Hadoop's own defaults of the settings of object stores and HDFS: a set of Java's of
    entries, name and value. It is kept.
    """
    conf = java_class(jvm, "org.apache.hadoop.conf.Configuration")(False)
    for resource in ("core-default.xml", "hdfs-default.xml"):
        conf.addResource(resource)
    return conf.getValByRegex(_PATTERN).entrySet()


def _settings_in_key_files(jvm: Any, conf: Any, files: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of object stores in files of keys, name → value.

    ``files``: the settings that name a file for S3, or for one bucket → the file. They override
    Hadoop's file, which is read first. A setting ``fs.s3a.…`` in a bucket's file gets the name of
    the bucket's own setting. Raises SettingError if a file cannot be read.
    """
    settings: dict[str, str] = {}
    every = conf.get(f"hadoop.{_KEY_FILES}")
    for setting, path in [*([("", every)] if every else []), *files.items()]:
        conf_copy = java_class(jvm, "org.apache.hadoop.conf.Configuration")(conf)
        conf_copy.set(f"hadoop.{_KEY_FILES}", path)
        try:
            names = list(_names_in_key_files(jvm, conf_copy))
            values = [
                str(java_class(jvm, "java.lang.String").valueOf(conf_copy.getPassword(name)))
                for name in names
            ]
        except Exception as error:
            raise SettingError(f"A file of Hadoop's keys cannot be read: {error}") from error
        bucket = setting.removesuffix(_KEY_FILES) if setting.startswith(_PER_BUCKET) else ""
        for name, value in zip(names, values, strict=True):
            is_own = not bucket or name.startswith(_PER_BUCKET)
            settings[name if is_own else name.replace("fs.s3a.", bucket, 1)] = value
    return settings


def _names_in_key_files(jvm: Any, conf: Any) -> Iterable[str]:
    """Yield the names of object stores' settings in the files of keys that a Hadoop conf names."""
    factory = java_class(jvm, "org.apache.hadoop.security.alias.CredentialProviderFactory")
    for provider in factory.getProviders(conf):
        yield from (name for name in provider.getAliases() if name.startswith(PREFIXES))


def need_classes(spark: SparkSession, location: str) -> None:
    """Raise SettingError if Spark's JVM has no class of a file system for a location on an object
    store. Do nothing for other locations, and without a JVM.
    """
    scheme = scheme_and_root(location)[0]
    if scheme not in _ARTIFACTS or (conf := hadoop_conf(spark)) is None:
        return
    jvm: Any = spark._jvm
    try:
        java_class(jvm, "org.apache.hadoop.fs.FileSystem").getFileSystemClass(scheme, conf)
    except Exception as error:
        version = java_class(jvm, "org.apache.hadoop.util.VersionInfo").getVersion()
        artifact = f"org.apache.hadoop:{_ARTIFACTS[scheme]}:{version}"
        raise SettingError(
            f"Spark has no file system for '{scheme}:'. Start it with "
            f"spark.jars.packages={artifact}.",
            scheme=scheme,
        ) from error
