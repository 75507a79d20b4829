"""What those who help with a question ask first: versions, kinds of stores, settings, the last
error. It has no secrets, and no names of hosts or directories but those in settings' values."""

from __future__ import annotations

import html
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from acidsql import __version__
from acidsql.acid.paths import is_local
from acidsql.api.core import SessionCore
from acidsql.api.opening import open_metastore_without_spark
from acidsql.arguments import checked_while_open
from acidsql.errors import AcidSqlError
from acidsql.java import find_java
from acidsql.settings import Settings
from acidsql.storage.spark.session.jvm import session_confs

_PACKAGES = {
    "PySpark": "pyspark", "pyarrow": "pyarrow", "pandas": "pandas", "numpy": "numpy",
    "sqlglot": "sqlglot", "SQLAlchemy": "sqlalchemy", "thrift": "thrift", "IPython": "ipython",
}  # fmt: skip
# Names of confs whose values are secrets, and secrets within values.
_SECRET_NAME = re.compile(r"passw|secret|token|credential|signature|\bsas\b|key(?!s?space)", re.I)
# SQLAlchemy takes a password with a slash, and keys of S3 have slashes.
_IN_URL = re.compile(r"(?<=://)([^/@\s:]*):[^\s'\"]*@")
_IN_TEXT = re.compile(
    r"([\w.-]*(?:passw(?:or)?d|pwd|secret|token|credential|signature|\bsig"
    r"|(?:access|account|api|private)[._-]?key)\w*['\"]?\s*[=:]\s*)"
    r"('[^']*'|\"[^\"]*\"|[^\s&;,]+)",
    re.I,
)
# Confs that differ in each process and explain nothing.
_NOISE = re.compile(
    r"spark\.(app\.|driver\.(host|port|extraJavaOptions)|executor\.(id|extraJavaOptions)"
    r"|acidsql\.metastore$|acidsql\.warehouse$|sql\.warehouse\.dir$|repl\.|rdd\.compress"
    r"|serializer\.objectStreamReset|submit\.|ui\.|log\.level|hadoop\.fs\.s3a\.vectored)"
)


@dataclass(frozen=True, slots=True)
class Info:
    """Facts about a session or an installation, to send with a question.

    Attributes:
        facts: Pairs of a name and a text, in the order in which they are shown. Secrets are
            ``***``.
    """

    facts: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        """Return one line for each fact; later lines of a text stand below its first."""
        width = max((len(name) for name, _ in self.facts), default=0) + 2
        lines = (
            f"{name.ljust(width)}{text}".replace("\n", f"\n{' ' * width}")
            for name, text in self.facts
        )
        return "\n".join(line.rstrip() for line in lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre class="acidsql-text" style="text-align: left">{html.escape(str(self))}</pre>'


class InfoMethods(SessionCore):
    """What a ``Session`` tells of itself."""

    @checked_while_open
    def info(self) -> Info:
        """What to send with a question about this session, as text: ``print(acid.info())``.

        It has the versions of acidsql, Spark, Java, Python and the packages, the kinds of metastore
        and file system, the settings and confs that differ from their defaults, and the last error
        of a statement. Passwords, keys and tokens are ``***``. Look at the values of confs, and at
        the error, before you publish them.
        """
        spark = self.spark
        facts = [
            *_version_facts(),
            ("Spark", spark.version),
            ("metastore", self.metastore.kind),
            ("warehouse", _file_system_kind(self.warehouse)),
            *_setting_facts(self._runner.settings),
            *_conf_facts(session_confs(spark)),
        ]
        if (error := self._runner.last_error) is not None:
            facts.append(("last error", _without_secrets(error)))
        return Info(tuple(facts))


def installation_info(
    metastore: str | None, warehouse: str | None, confs: Mapping[str, str]
) -> Info:
    """Return what can be told without Spark: versions, and the kinds of the metastore and the
    warehouse, if one of them is given. A metastore that cannot be opened is told by its error.

    Args:
        metastore: The metastore's URL, or None.
        warehouse: The warehouse, or None.
        confs: The confs that Spark would get.
    """
    metastore = metastore or confs.get("spark.acidsql.metastore")
    warehouse = warehouse or confs.get("spark.acidsql.warehouse")
    facts = list(_version_facts())
    if metastore is None and warehouse is None:
        facts.append(("metastore", "not named: give --metastore or --warehouse"))
    else:
        try:
            with closing(open_metastore_without_spark(metastore, warehouse)) as store:
                facts.append(("metastore", store.kind))
        except AcidSqlError as error:
            facts.append(("metastore", _without_secrets(str(error))))
    if warehouse is not None:
        facts.append(("warehouse", _file_system_kind(warehouse)))
    return Info((*facts, *_conf_facts(confs)))


def _version_facts() -> Iterator[tuple[str, str]]:
    """Yield the versions of acidsql, Python, the packages that are installed, Java and the
    system."""
    yield "acidsql", __version__
    yield "Python", platform.python_version()
    for name, package in _PACKAGES.items():
        with suppress(PackageNotFoundError):
            yield name, version(package)
    java = find_java()
    yield "Java", "none that PySpark can run on" if java is None else str(java.version)
    yield "system", platform.platform()


def _file_system_kind(location: str) -> str:
    """Return the kind of file system of a location: ``local files``, or the scheme of its URL."""
    return "local files" if is_local(location) else location.partition(":")[0]


def _setting_facts(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the settings that differ from their defaults."""
    defaults = dict(Settings().items())
    for name, value in settings.items():
        if value != defaults[name]:
            yield name, _shown_value(name, value)


def _conf_facts(confs: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Return Spark's confs, sorted by name, without those that tell nothing, with ``***`` for
    secrets."""
    return [
        (name, _shown_value(name, value))
        for name, value in sorted(confs.items())
        if not _NOISE.match(name)
    ]


def _shown_value(name: str, value: str) -> str:
    """Return the value of a conf or setting; ``***`` if its name says that it is a secret."""
    return "***" if _SECRET_NAME.search(name) else _without_secrets(value)


def _without_secrets(text: str) -> str:
    """Return a text with ``***`` for the passwords of URLs, and for what stands behind
    ``password=`` and the like."""
    return _IN_TEXT.sub(r"\1***", _IN_URL.sub(r"\1:***@", text))
