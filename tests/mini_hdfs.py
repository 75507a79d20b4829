"""A real HDFS 3.5, in one process, from Maven artifacts. Its sources are in the folder ``hadoop``.

The server lives as long as its object, at most as long as the process that started it.
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import hive_jars
from hive_jars import built, javac, maven
from java_program import JavaProgram

SOURCES = Path(__file__).with_name("hadoop")


class MiniHdfs(JavaProgram):
    """A running HDFS: a name node (or two) and its data nodes.

    Attributes:
        root: Its address, ``hdfs://127.0.0.1:port``; with two name nodes ``hdfs://`` and the name
            of the service, which has the number of the server's process.
        conf: The directory of a client's ``core-site.xml`` and ``hdfs-site.xml``.

    Args:
        work: An empty directory.
        data_nodes: How many data nodes there are.
        has_standby: Whether there is a second name node, which can take over.
    """

    def __init__(self, work: Path, *, data_nodes: int = 2, has_standby: bool = False) -> None:
        self.work, self.conf = work, work / "conf"
        classes = [build() / "classes", SOURCES, build() / "jars" / "*"]
        command = [
            javac().with_name("java"), "-Xmx400m", "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1", f"-Dhdfs.work={work}",
            "-cp", ":".join(map(str, classes)), "mini.MiniHdfs", str(work),
            str(data_nodes), "ha" if has_standby else "single",
        ]  # fmt: skip
        self._start(command, work / "errors")
        self.root = self._read_reply()

    def run(self, command: str) -> str:
        """Run a command of ``MiniHdfs.java``, and return its result."""
        self._send(command)
        return self._read_reply()

    def _read_reply(self) -> str:
        status, _, result = self._read_line().strip().partition(" ")
        if status == "OK":
            return result
        raise AssertionError(result or self._last_errors())

    @property
    def syncs(self) -> int:
        """How often the data nodes have synced a file to their disks so far."""
        return int(self.run("syncs"))

    @contextmanager
    def counted_calls(self, user: str) -> Iterator[Counter[str]]:
        """Count in the block the calls to the name node, by their names, of one user of HDFS. The
        counter is filled when the block has ended.
        """
        audit = self.work / "audit.log"
        before = len(audit.read_text().splitlines()) if audit.exists() else 0
        calls: Counter[str] = Counter()
        yield calls
        time.sleep(0.2)  # the name node writes its log a little later
        for line in audit.read_text().splitlines()[before:]:
            if f"ugi={user} " in line:
                calls[line.partition("cmd=")[2].split("\t")[0]] += 1

    @property
    def settings(self) -> dict[str, str]:
        """What a client's configuration says."""
        return {
            prop.findtext("name"): prop.findtext("value")
            for name in ("core-site.xml", "hdfs-site.xml")
            for prop in ElementTree.parse(self.conf / name).iter("property")
        }


@functools.cache
def missing() -> str | None:
    """Why there can be no HDFS here; None if there can be one."""
    try:
        import hdfs_native  # noqa: F401
    except ImportError:
        return "no HDFS for tests: pip install 'acidsql[hdfs]'"
    return hive_jars.missing("HDFS", build)


def build() -> Path:
    """The folder with the jars and the classes."""
    return built(
        "hdfs",
        SOURCES,
        lambda directory: maven(
            SOURCES / "pom.xml", "copy-dependencies", str(Path(directory, "jars"))
        ),
    )


def _serve() -> None:
    """Run an HDFS for a person, until it is interrupted."""
    import tempfile

    if (reason := missing()) is not None:
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory() as work:
        server = MiniHdfs(Path(work))
        print(f"{server.root} — its clients' configuration: HADOOP_CONF_DIR={server.conf}")
        print("Commands of tests/hadoop/mini/MiniHdfs.java work here. An empty line ends it.")
        while command := input("> ").strip():
            try:
                print(server.run(command))
            except AssertionError as error:
                print(error)
        server.close()


if __name__ == "__main__":
    _serve()
