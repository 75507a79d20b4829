"""The URL of a Hive Metastore, as values.

::

    thrift://h1:9083,h2:9083/?catalog=hive&auth=plain&user=ann&tls=1&cafile=/etc/ca.pem
    thrift+http://h1:9001/metastore        thrift+https://…

The servers of one URL serve one database. A URL has no password: it is read from the environment
variable ``ACIDSQL_METASTORE_PASSWORD`` (``auth=plain``) or ``HMS_JWT`` (``auth=jwt``), and no
message shows it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from acidsql.errors import SettingError

DEFAULT_PORT, DEFAULT_CATALOG = 9083, "hive"
PASSWORD, TOKEN = "ACIDSQL_METASTORE_PASSWORD", "HMS_JWT"
SCHEMES = ("thrift", "thrift+http", "thrift+https")
AUTHS = ("none", "plain", "kerberos", "jwt")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:@#]+)(?::(\d{1,5}))?", re.ASCII)
_SERVICE = re.compile(r"[\w.-]+(?:/[\w.-]+)?", re.ASCII)
_TOKEN = re.compile(r"[\w.~+/=-]+", re.ASCII)
_OPTIONS = ("auth", "cafile", "catalog", "compact", "framed", "service", "timeout", "tls", "user")
_MOST_SECONDS = 86_400
_FLAGS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a metastore is, and how to speak to it.

    Attributes:
        hosts: Host and port of each server.
        path: The path, if the server speaks HTTP; otherwise None.
        auth: ``none``, ``plain`` (SASL PLAIN: a user and a password), ``kerberos`` (SASL GSSAPI
            with the ticket that the process has) or ``jwt`` (HTTP with a token).
        user: The user's name. None: the name of the process's user. With ``kerberos`` the principal
            whose ticket is used; None: the default one of the tickets.
        catalog: The metastore's catalog.
        tls: Whether the connection is encrypted. The server's certificate is checked.
        cafile: The certificates that are trusted. None: those of the machine.
        framed: Whether the server has ``metastore.thrift.framed.transport.enabled``.
        compact: Whether the server has ``metastore.thrift.compact.protocol.enabled``.
        service: The first part of the server's Kerberos principal. Its second part is the host, or
            what follows a ``/`` here.
        timeout_s: How long to wait for the answer to a call; Hive's
            ``hive.metastore.client.socket.timeout``, with Hive's default.
    """

    hosts: tuple[tuple[str, int], ...]
    path: str | None = None
    auth: str = "none"
    user: str | None = None
    catalog: str = DEFAULT_CATALOG
    tls: bool = False
    cafile: str | None = None
    framed: bool = False
    compact: bool = False
    service: str = "hive"
    timeout_s: int = 600

    def __str__(self) -> str:
        scheme = "thrift" if self.path is None else f"thrift+http{'s' if self.tls else ''}"
        return f"{scheme}://{','.join(host_and_port(*host) for host in self.hosts)}"

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parse a URL; what it leaves out gets the defaults of ``Address``. Raises SettingError,
        which does not show the URL, for an unknown option, a bad value, an ``@`` before the value
        of an option, or a kind of security that does not fit the scheme. The password is not looked
        for."""
        scheme, _, rest = url.partition("://")
        scheme = scheme.lower()
        authority, path, query = _split_url(rest)
        options = dict(parse_qsl(query, keep_blank_values=True))
        unknown = [name for name in options if name not in _OPTIONS]
        if unknown:
            raise _bad_address_error(
                f"it has the unknown option '{unknown[0]}' (known: {', '.join(_OPTIONS)})"
            )
        auth = options.get("auth", "none").lower()
        if auth not in AUTHS:
            raise _bad_address_error(f"auth='{auth}' is not one of {', '.join(AUTHS)}")
        is_http = scheme != "thrift"
        if (auth == "jwt") is not is_http and auth != "none":
            raise _bad_address_error(f"auth={auth} is not possible over {scheme}")
        return cls(
            tuple(_parse_host(host) for host in authority.split(",")),
            (path.strip("/") or "metastore") if is_http else None,
            auth,
            _printable_user(options.get("user") or None),
            options.get("catalog") or DEFAULT_CATALOG,
            scheme == "thrift+https" or _parse_flag(options, "tls"),
            options.get("cafile") or None,
            _parse_flag(options, "framed"),
            _parse_flag(options, "compact"),
            _parse_service(options.get("service") or "hive"),
            _parse_seconds(options.get("timeout", "600")),
        )

    def secret(self) -> str:
        """Return the token of the environment, without white space around it, if ``auth`` is jwt;
        otherwise the password as it is. Raises SettingError if there is none, or it is no token.
        """
        if self.auth != "jwt":
            return _from_environment(PASSWORD, "auth=plain asks for a password")
        # Files with a token end with a new line. Python's HTTP refuses one, and shows the token.
        token = _from_environment(TOKEN, "auth=jwt asks for a token").strip()
        if not _TOKEN.fullmatch(token):
            raise SettingError(f"What is in {TOKEN} is no token.", name="metastore")
        return token


def _from_environment(name: str, why: str) -> str:
    """Return a variable of the environment. Raise SettingError, which begins with ``why``, if it is
    empty or not set."""
    value = os.environ.get(name)
    if not value:
        raise SettingError(f"{why}: set the environment variable {name}.", name="metastore")
    return value


def host_and_port(host: str, port: int) -> str:
    """A server as a URL names it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_address(url: str) -> bool:
    """Whether a metastore's URL is that of a Hive Metastore."""
    return url.partition("://")[0].lower() in SCHEMES


def _split_url(rest: str) -> tuple[str, str, str]:
    """Split what follows ``://`` into hosts, path (without the ``/`` before it) and query. Raise
    SettingError if there is an @, before which a password may stand, in hosts or path or the name
    of an option. The value of an option may have one."""
    # ``urlsplit`` shows what it refuses, which may be a password.
    before, _, query = rest.partition("?")
    if "@" in before or any("@" in part.partition("=")[0] for part in query.split("&")):
        raise _bad_address_error(
            f"it contains '@': write ?user=…, and set the password in {PASSWORD}"
        )
    authority, _, path = before.partition("/")
    return authority, path, query


def _parse_host(text: str) -> tuple[str, int]:
    """Parse ``host`` or ``host:port``, the host perhaps in square brackets. Raise SettingError for
    anything else."""
    host_and_port = _HOST.fullmatch(text.strip())
    if host_and_port is None or int(host_and_port[2] or DEFAULT_PORT) > 65535:
        raise _bad_address_error(f"'{text}' is not host:port")
    return host_and_port[1].strip("[]"), int(host_and_port[2] or DEFAULT_PORT)


def _printable_user(text: str | None) -> str | None:
    if text is not None and not text.isprintable():
        raise _bad_address_error("the user's name has characters that cannot be printed")
    return text


def _parse_service(text: str) -> str:
    """Return the name of the Kerberos service, without ``/_HOST``. Raise SettingError for anything
    but a name or name/host."""
    if "@" in text:
        raise _bad_address_error(
            "service= has a realm, which [domain_realm] in krb5.conf says for each host"
        )
    if not _SERVICE.fullmatch(text):
        raise _bad_address_error(f"service='{text}' is neither a name nor name/host")
    return text.removesuffix("/_HOST")


def _parse_flag(options: Mapping[str, str], name: str) -> bool:
    """Return whether an option is on; by default it is off. Raise SettingError for anything but 0,
    1, true and false."""
    text = options.get(name, "0").lower()
    if text not in _FLAGS:
        raise _bad_address_error(f"{name}='{text}' is not 0 or 1")
    return _FLAGS[text]


def _parse_seconds(text: str) -> int:
    """Parse a number of seconds from 1 to 86400, perhaps with an s. Raise SettingError for anything
    else."""
    number = text.removesuffix("s")
    if not number.isdecimal() or len(number) > 9 or not 0 < int(number) <= _MOST_SECONDS:
        raise _bad_address_error(
            f"timeout='{text}' is not a number of seconds from 1 to {_MOST_SECONDS}"
        )
    return int(number)


def _bad_address_error(why: str) -> SettingError:
    # The URL itself is not shown: a user may have written a password into it.
    return SettingError(f"The metastore's URL cannot be used: {why}.", name="metastore")
