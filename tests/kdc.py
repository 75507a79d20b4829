"""Kerberos: a key distribution centre (MIT's) with a realm of its own.

It lives as long as its object, at most as long as the process that started it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

__all__ = ["Kdc", "missing"]

REALM = "ACIDSQL.TEST"
# Debian has the server's programs where only root's path leads.
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "klist")
_CLIENTS = """
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
"""
_SERVERS = """
[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {work}/principals
  key_stash_file = {work}/stash
 }}
"""


def missing() -> str | None:
    """Why there can be no KDC here; None if there can be one."""
    for name in _PROGRAMS:
        if shutil.which(name, path=_PATH) is None:
            return f"no Kerberos for tests: there is no {name} (Debian: krb5-kdc, krb5-user)"
    return None


class Kdc:
    """A running KDC; its files are in ``work``.

    Attributes:
        conf: The clients' krb5.conf.
    """

    def __init__(self, work: Path) -> None:
        self._work, self.conf = work, work / "krb5.conf"
        with socket.create_server(("127.0.0.1", 0)) as free:
            values = {"realm": REALM, "work": work, "port": free.getsockname()[1]}
        self.conf.write_text(_CLIENTS.format(**values))
        Path(work, "kdc.conf").write_text(_SERVERS.format(**values))
        self._environment = {
            **os.environ, "PATH": _PATH, "KRB5_CONFIG": str(self.conf),
            "KRB5_KDC_PROFILE": str(work / "kdc.conf"),
        }  # fmt: skip
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        until_we_end = 'krb5kdc -n -r "$0" & read -r _; kill $!; wait'
        self._server = subprocess.Popen(
            ["sh", "-c", until_we_end, REALM], env=self._environment, stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def keytab(self, principal: str, name: str = "") -> Path:
        """A new file with a new key of a principal, which is made if there is none."""
        file = self._work / f"{name or principal.replace('/', '_')}.keytab"
        if not self._is_known(principal):
            self._admin("addprinc", "-randkey", principal)
        self._admin("ktadd", "-k", file, principal)
        return file

    def ticket(self, principal: str, keytab: Path, cache: Path, life: str = "1h") -> None:
        """Put a ticket into a cache, as ``kinit`` does."""
        self._run("kinit", "-k", "-t", keytab, "-c", cache, "-l", life, principal)

    def is_valid(self, cache: Path) -> bool:
        """Whether a cache has a ticket that has not expired."""
        done = subprocess.run(["klist", "-s", "-c", cache], env=self._environment, check=False)
        return done.returncode == 0

    def stop(self) -> None:
        """End it. May be called twice."""
        self._server.stdin.close()
        self._server.wait(30)

    def _is_known(self, principal: str) -> bool:
        return f"{principal}@{REALM}" in self._admin("listprincs").split()

    def _admin(self, *words: object) -> str:
        return self._run("kadmin.local", "-r", REALM, *words)

    def _run(self, *words: object) -> str:
        return subprocess.run(
            [str(one) for one in words], env=self._environment, check=True, capture_output=True,
            text=True,
        ).stdout  # fmt: skip
