"""A real HDFS 3.5, in one process, from Maven artifacts. Its sources are in the folder ``hadoop``.

The server lives as long as its object, at most as long as the process that started it.
"""

from __future__ import annotations

import functools
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import hive_jars
from hive_jars import built, javac, maven

SOURCES = Path(__file__).with_name("hadoop")


class MiniHdfs:
    """A running HDFS: a name node (or two) and its data nodes.

    Attributes:
        root: Its address, ``hdfs://127.0.0.1:port``; with two name nodes ``hdfs://minihdfs``.
        conf: The directory of a client's ``core-site.xml`` and ``hdfs-site.xml``.

    Args:
        work: An empty directory.
        data_nodes: How many data nodes there are.
        has_standby: Whether there is a second name node, which can take over.
    """

    def __init__(self, work: Path, *, data_nodes: int = 2, has_standby: bool = False) -> None:
        self.work, self.conf = work, work / "conf"
        classes = [build() / "classes", SOURCES, build() / "jars" / "*"]
        with (work / "errors").open("ab") as errors:
            self._jvm = subprocess.Popen(
                [
                    javac().with_name("java"), "-Xmx400m", "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1", f"-Dhdfs.work={work}",
                    "-cp", ":".join(map(str, classes)), "mini.MiniHdfs", str(work),
                    str(data_nodes), "ha" if has_standby else "single",
                ],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8",
            )  # fmt: skip
        self.root = self._read_reply()

    def run(self, command: str) -> str:
        """Run a command of ``MiniHdfs.java``, and return its result."""
        self._jvm.stdin.write(f"{command}\n")
        self._jvm.stdin.flush()
        return self._read_reply()

    def _read_reply(self) -> str:
        line = self._jvm.stdout.readline().strip()
        status, _, result = line.partition(" ")
        if status == "OK":
            return result
        raise AssertionError(result or (self.work / "errors").read_text()[-3000:])

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

    def close(self) -> None:
        """End it."""
        self._jvm.stdin.close()
        self._jvm.wait(30)
        self._jvm.stdout.close()


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
