"""Hadoop's settings of HDFS, for a client without a JVM. Workers import this module, too.

``core-site.xml`` and ``hdfs-site.xml`` have them, or Spark's conf (``spark.hadoop.dfs.…``). The
client also reads the two files itself where ``HADOOP_CONF_DIR`` leads to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from acidsql.acid.paths import scheme_and_root
from acidsql.errors import SettingError

SCHEMES = ("hdfs", "viewfs")
# Beginnings of the names of all settings that matter here. ``dfs.`` alone would be a hundred.
PREFIXES = (
    "fs.defaultFS", "fs.permissions.umask-mode", "fs.viewfs.mounttable.",
    "hadoop.security.authentication", "dfs.nameservices", "dfs.ha.namenodes.",
    "dfs.namenode.rpc-address", "dfs.client.failover.", "dfs.client.use.datanode.hostname",
    "dfs.client.socket-timeout", "dfs.client.block.write.replace-datanode-on-failure.",
    "dfs.data.transfer.protection", "dfs.user.home.dir.prefix",
)  # fmt: skip
CLIENT = "acidsql.hdfs.client"  # which client: ``native`` or ``arrow``
DEFAULT_FS = "fs.defaultFS"
SHIPPED_CLIENT = "acidsql-hdfs-native"  # the directory of an archive that workers get

_UMASK = "fs.permissions.umask-mode"
_DEFAULT_UMASK = 0o022
_CLAUSE = re.compile(r"([ugoa]*)=([rwx]*)")
_BITS = {"r": 4, "w": 2, "x": 1}
_SHIFTS = {"u": 6, "g": 3, "o": 0}
# The client waits between two attempts, at most 15 s: together 45 s until it gives a name node up.
# Its own default, 15 attempts, are some four minutes.
_ATTEMPTS = ("dfs.client.failover.max.attempts", "6")
_DEFAULT_PORT = 8020


class Modes(NamedTuple):
    """The permissions of new files and new directories."""

    file: int
    directory: int


def hdfs_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return those of Hadoop's settings that matter for HDFS, name → value."""
    return {name: value for name, value in settings.items() if name.startswith(PREFIXES)}


def client_conf(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that the client takes, name → value. A name node that does not answer is
    given up after 45 s, unless ``dfs.client.failover.max.attempts`` is set."""
    name, attempts = _ATTEMPTS
    return {name: attempts, **hdfs_settings(settings)}


def modes(settings: Mapping[str, str]) -> Modes:
    """Return the permissions that ``fs.permissions.umask-mode`` leaves to new files and
    directories; by default 644 and 755.

    Raises:
        SettingError: The setting is neither octal (``022``) nor symbolic (``u=rwx,g=rx,o=``).
    """
    text = settings.get(_UMASK, "").strip()
    umask = _DEFAULT_UMASK
    if re.fullmatch("[0-7]{1,4}", text):
        umask = int(text, 8) & 0o777
    elif text:
        umask = 0o777
        for clause in text.split(","):
            match = _CLAUSE.fullmatch(clause.strip())
            if match is None:
                raise SettingError(
                    f"{_UMASK}={text} is neither octal, as 022, nor symbolic, as u=rwx,g=rx,o=.",
                    name=_UMASK,
                )
            bits = sum(_BITS[letter] for letter in set(match[2]))
            who = match[1].replace("a", "ugo") or "ugo"
            for letter in set(who):  # the bits that are left to this class of users
                shift = _SHIFTS[letter]
                umask = umask & ~(7 << shift) | (7 - bits) << shift
    return Modes(0o666 & ~umask, 0o777 & ~umask)


def default_root(settings: Mapping[str, str]) -> str:
    """Return ``scheme://host`` of the file system on which a path without a scheme lies, if it is
    not this machine's; "" otherwise."""
    location = settings.get(DEFAULT_FS, "").strip()
    scheme, root = scheme_and_root(location)
    return "" if scheme in ("", "file") else root


def with_default_port(url: str) -> str:
    """Return the address of a name node with Hadoop's default port if it has a host and no port,
    like ``hdfs://name``; any other address unchanged."""
    match = re.fullmatch(r"(hdfs://[^/:]+)/*", url)
    return f"{match[1]}:{_DEFAULT_PORT}" if match else url


def name_nodes(authority: str, settings: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return host and port of each name node that an authority stands for: the nodes of a name
    service, or the host that it names. Empty if the settings do not tell."""
    nodes = settings.get(f"dfs.ha.namenodes.{authority}", "")
    if nodes:
        addresses = [
            settings.get(f"dfs.namenode.rpc-address.{authority}.{node.strip()}", "")
            for node in nodes.split(",")
        ]
    else:
        addresses = [authority] if ":" in authority else []
    pairs = (address.strip().rpartition(":") for address in addresses if address)
    return [(host, int(port or _DEFAULT_PORT)) for host, _, port in pairs if port.isdigit()]
