"""A real YARN 3.5, in one process, over an HDFS of ``mini_hdfs``. It runs the programs that
``spark-submit`` gives it in containers: processes of their own.

The server lives as long as its object, at most as long as the process that started it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from hive_jars import javac
from java_program import JavaProgram
from mini_hdfs import SOURCES, MiniHdfs, build


class MiniYarn(JavaProgram):
    """A running YARN.

    Attributes:
        work: Its directory. The logs of containers are below it.
        conf: The directory of a client's configuration: ``core-site.xml``, ``hdfs-site.xml``,
            ``yarn-site.xml``.

    Args:
        work: An empty directory.
        hdfs: The HDFS that the applications' files are on.
    """

    def __init__(self, work: Path, hdfs: MiniHdfs) -> None:
        self.work, self.conf = work, work / "conf"
        classes = [build() / "classes", SOURCES, build() / "jars" / "*"]
        command = [
            javac().with_name("java"), "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            f"-Dhdfs.work={work}", "-cp", ":".join(map(str, classes)), "mini.MiniYarn",
            work, hdfs.conf,
        ]  # fmt: skip
        self._start(command, work / "errors")
        status, _, reason = self._read_line().partition(" ")
        assert status == "OK", reason or self._last_errors()
        for name in ("core-site.xml", "hdfs-site.xml"):
            shutil.copy(hdfs.conf / name, self.conf)

    def container_logs(self) -> str:
        """What the containers' programs have written, with the names of the files."""
        return "\n".join(
            f"── {file.relative_to(self.work)}\n{file.read_text(errors='replace')}"
            for file in sorted(self.work.rglob("std*"))
            if "container_" in str(file) and file.is_file()
        )
