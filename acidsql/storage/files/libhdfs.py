"""HDFS by Arrow and Hadoop's own client ``libhdfs``, which runs a JVM in this process.

It is the other choice (``acidsql.hdfs.client=arrow``), and reads files that ``hdfs-native`` cannot.
"""

from __future__ import annotations

import glob
import importlib.util
import os
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from acidsql.acid.paths import scheme_and_root
from acidsql.errors import SettingError
from acidsql.storage.files.arrow import ArrowFileSystem
from acidsql.storage.files.options import hdfs_options

_CLIENT_JARS = "hadoop-client-api-*.jar", "hadoop-common-*.jar"


class LibhdfsFileSystem(ArrowFileSystem):
    """HDFS by Arrow."""

    unsynced_reason = (
        f"{hdfs_options.CLIENT}=arrow cannot let HDFS sync a file to its disks: a power cut of all "
        "data nodes that have it may lose committed rows. hdfs-native syncs, or let the data nodes "
        "do it: dfs.datanode.synconclose=true"
    )


@lru_cache(maxsize=16)
def open_libhdfs(root: str, settings: tuple[tuple[str, str], ...]) -> ArrowFileSystem:
    """Open HDFS by Arrow; ``root`` is ``hdfs://host:port``, or ``hdfs:`` without a host for
    ``fs.defaultFS``. ``settings``: Hadoop's, pairs of name and value. Opened ones are kept.

    Raises SettingError if Hadoop's native client is missing, or that default is no HDFS.
    """
    _set_class_path()
    conf = dict(settings)
    url = root if scheme_and_root(root)[1] else hdfs_options.default_root(conf) or root
    address = urlsplit(url)
    extra_conf = {name: value for name, value in conf.items() if name != hdfs_options.CLIENT}
    try:
        # "default" is fs.defaultFS of Hadoop's own configuration.
        arrow = pafs.HadoopFileSystem(
            address.hostname or "default", address.port or 0, extra_conf=extra_conf or None
        )
    except OSError as error:
        raise SettingError(
            f"Hadoop's native client cannot be opened here: {str(error).splitlines()[0]}. It needs "
            "libhdfs.so in $HADOOP_HOME/lib/native or $ARROW_LIBHDFS_DIR, a Java in $JAVA_HOME, "
            "and Hadoop's jars in $CLASSPATH (Spark's own are taken by default); on executors, "
            "too. Set them before Python starts.",
        ) from error
    if address.hostname is None:
        _need_hdfs(arrow)
    return LibhdfsFileSystem(arrow, scheme_and_root(root)[1])


def _need_hdfs(default: pafs.FileSystem) -> None:
    """Raise SettingError if the default file system does not answer a request for a list as HDFS
    does. Without a configuration it is this machine's disk, which answers with an error.
    """
    try:
        default.get_file_info(pafs.FileSelector("/none", allow_not_found=True))
    except OSError as error:
        raise SettingError(
            f"'hdfs:///' names no host, and the default file system here is no HDFS that answers: "
            f"{error}. Name the host (hdfs://name:8020/…), or let $CLASSPATH begin with the "
            "directory of a core-site.xml that says fs.defaultFS.",
        ) from error


def _set_class_path() -> None:
    """Put Spark's jars into CLASSPATH unless Hadoop's client is there: without it, ``libhdfs``
    would end this process."""
    entries = [entry for entry in os.environ.get("CLASSPATH", "").split(":") if entry]
    if any(_has_hadoop(entry) for entry in entries):
        return
    conf = os.environ.get("HADOOP_CONF_DIR")
    jars = next((place for place in _jar_directories() if _has_hadoop(f"{place}/*")), None)
    if jars is None:
        raise SettingError(
            "Hadoop's jars are not here, which its native client needs: let $CLASSPATH be what "
            "`hadoop classpath --glob` prints, on executors, too, before Python starts.",
        )
    os.environ["CLASSPATH"] = ":".join([*([conf] if conf else []), *entries, f"{jars}/*"])


def _jar_directories() -> Iterator[str]:
    """Yield where Spark's jars may be: SPARK_HOME, PySpark's package, a container of YARN."""
    if spark_home := os.environ.get("SPARK_HOME"):
        yield f"{spark_home}/jars"
    if (pyspark := importlib.util.find_spec("pyspark")) is not None and pyspark.origin:
        yield f"{os.path.dirname(pyspark.origin)}/jars"
    yield f"{os.getcwd()}/__spark_libs__"


def _has_hadoop(entry: str) -> bool:
    """Whether an entry of a class path, a jar or ``directory/*``, has Hadoop's client."""
    directory, name = os.path.split(entry)
    return any(
        path == entry or name == "*"
        for jar in _CLIENT_JARS
        for path in glob.glob(f"{glob.escape(directory)}/{jar}")
    )
