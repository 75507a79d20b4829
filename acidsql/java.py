"""Finds or installs a Java for PySpark, with the standard library only.

``python -m acidsql.java`` prints the JAVA_HOME to use. If there is no usable Java, it installs one
first; ``make`` calls it. The functions ``_install_…`` raise an error if they fail; the message to
the user begins with the docstring of the function. PySpark 4 needs Java 17 or newer *with the
module jdk.incubator.vector*: PySpark's launcher names the module, and a trimmed runtime without the
module does not start.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LEAST_VERSION = 17
MODULE = "jdk.incubator.vector"
DEFAULT_DIRECTORY = Path(".java")
_PACKAGE = "openjdk-17-jre-headless"
_PROBE_SECONDS = 60
_PLACES = ("/usr/lib/jvm/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home", "/opt/java*")

HELP = f"""\
acidsql: there is no Java {LEAST_VERSION} or newer here that PySpark can run on, and none could be
installed. Do one of these, then run the command again:

  Debian, Ubuntu    sudo apt-get install {_PACKAGE}
  Fedora, RHEL      sudo dnf install java-17-openjdk-headless
  macOS             brew install openjdk@17
  anywhere          unpack a full JDK {LEAST_VERSION}+ (for example Temurin) and set JAVA_HOME to it

It must have the module {MODULE}: `java --list-modules` shows it.
"""


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java.

    Attributes:
        home: The value for JAVA_HOME.
        version: The major version.
        has_vector: True if it has the module that PySpark's launcher names.
    """

    home: Path
    version: int
    has_vector: bool

    @property
    def is_usable(self) -> bool:
        """True if PySpark runs on it."""
        return self.version >= LEAST_VERSION and self.has_vector


def find_java(directory: Path = DEFAULT_DIRECTORY) -> Java | None:
    """Run the Javas that are there in turn, and return the first on which PySpark runs: of
    JAVA_HOME, of the PATH, of ``directory``, of ``~/.jdk``, of the system.

    Args:
        directory: The directory in which ``install_java`` installs a Java.

    Returns:
        The Java, or None if there is no usable one.
    """
    tried: set[Path] = set()
    for home in _candidate_homes(directory):
        if home in tried:
            continue
        tried.add(home)
        java = probe(home)
        if java is not None and java.is_usable:
            return java
    return None


def probe(home: Path) -> Java | None:
    """Run a Java to learn its version and modules; None if it does not run, fails, needs more than
    a minute, or is older than 9. A Java that PySpark cannot use is returned, too."""
    try:
        answer = subprocess.run(
            [str(home / "bin" / "java"), "--list-modules"],
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Java 8 does not know the option and fails; it is too old anyway.
    version = re.search(r"^java\.base@(\d+)", answer.stdout, re.MULTILINE)
    if answer.returncode != 0 or version is None:
        return None
    return Java(home, int(version[1]), f"{MODULE}@" in answer.stdout)


def use_java() -> Java:
    """Find a usable Java, set JAVA_HOME to it for a Spark that this process starts, and return it.
    None is installed.

    Raises:
        SystemExit: There is no usable Java; the text says what to do.
    """
    java = find_java()
    if java is None:
        raise SystemExit(HELP)
    os.environ["JAVA_HOME"] = str(java.home)
    return java


def install_java(directory: Path = DEFAULT_DIRECTORY) -> Java | None:
    """Install a full Temurin into ``directory``. If this fails, or no Java is usable then, install
    a package of the system, which only root can do.

    Returns:
        The first usable Java that ``find_java`` finds then, or None. Failures are printed to
        stderr.
    """
    for install in (_install_temurin, _install_package):
        try:
            install(directory)
        except Exception as error:  # a network or an archive may raise anything
            _say(f"{install.__doc__} That failed: {error}")
            continue
        java = find_java(directory)
        if java is not None:
            return java
    return None


def _candidate_homes(directory: Path) -> Iterator[Path]:
    """Yield the directories that may be a JAVA_HOME, the preferred first: the variable's, that of
    the ``java`` on the PATH (links are followed), those unpacked into ``directory`` and ``~/.jdk``,
    the system's, the last by name first. Some may not exist or be repeated. None is run."""
    named = os.environ.get("JAVA_HOME")
    if named:
        yield Path(named)
    on_path = shutil.which("java")
    if on_path:
        yield Path(os.path.realpath(on_path)).parent.parent
    yield from _homes_below(directory)
    yield from _homes_below(Path.home() / ".jdk")  # where install-jdk puts them by itself
    for pattern in _PLACES:
        yield from sorted(Path("/").glob(pattern.removeprefix("/")), reverse=True)


def _homes_below(directory: Path) -> list[Path]:
    """Return the homes of JDKs that were unpacked into the directory, or of macOS bundles in it:
    absolute and sorted by name. None is run."""
    candidates = [*directory.glob("*"), *directory.glob("*/Contents/Home")]
    return [home.resolve() for home in sorted(candidates) if (home / "bin" / "java").exists()]


def _install_temurin(directory: Path) -> None:
    """Fetching a full Temurin into the directory with the package install-jdk."""
    _say(f"No usable Java found: fetching Temurin {LEAST_VERSION} into {directory} …")
    jdk = importlib.import_module("jdk")
    directory.mkdir(parents=True, exist_ok=True)
    jdk.install(str(LEAST_VERSION), path=str(directory))


def _install_package(directory: Path) -> None:
    """Asking apt-get, as root, for a package with Java."""
    del directory
    apt = shutil.which("apt-get")
    if apt is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        raise OSError("there is no apt-get, or this is not root")
    _say(f"Installing {_PACKAGE} …")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "--no-install-recommends", _PACKAGE]):
        subprocess.run([apt, "-q", *words], check=True, env=environment, stdout=sys.stderr)


def _say(text: str) -> None:
    """Print a line to stderr."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Print the home of a usable Java to stdout, installing one first if there is none, and return
    the exit code 0. If there is still none, print advice to stderr, and return 1."""
    java = find_java() or install_java()
    if java is None:
        _say(HELP)
        return 1
    print(java.home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
