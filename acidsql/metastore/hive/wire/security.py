"""How a connection is secured: TLS, SASL with a password or with Kerberos, HTTP with a token. And
what to do if one side does not trust the other.
"""

from __future__ import annotations

import getpass
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from thrift.transport import TTransport
from thrift.transport.THttpClient import THttpClient
from thrift.transport.TTransport import TSaslClientTransport, TTransportException

from acidsql.errors import SettingError
from acidsql.metastore.hive.wire.address import PASSWORD, TOKEN, Address, host_and_port

# The numbers by which GSSAPI and, more exactly, MIT's Kerberos (krb5.h) give reasons.
_CREDENTIALS_EXPIRED, _CONTEXT_EXPIRED = 11 << 16, 12 << 16
_TICKET_EXPIRED, _NO_TICKET, _NO_SERVICE = -1765328352, -1765328243, -1765328377
_NO_REALM, _REALM_UNKNOWN, _KDC_SILENT, _CLOCKS = -1765328160, -1765328230, -1765328228, -1765328347
_KRB5_CONF = "The file krb5.conf (KRB5_CONFIG names another one) must have the realm and its KDC."
_RENEW = (
    "The Kerberos ticket has expired: run kinit again. A session that runs for longer than a "
    "ticket needs a program that renews it, such as k5start or kinit -R by cron; the session "
    "itself goes on."
)
_KERBEROS = {
    _NO_TICKET: "This process has no Kerberos ticket: run kinit (or kinit -kt KEYTAB PRINCIPAL) as "
    "its user. klist shows the tickets; KRB5CCNAME says where they are. Hadoop's delegation "
    "tokens are not used.",
    _TICKET_EXPIRED: _RENEW,
    _CREDENTIALS_EXPIRED: _RENEW,
    _CONTEXT_EXPIRED: _RENEW,
    _NO_SERVICE: "Write the host as in the server's metastore.kerberos.principal, where _HOST "
    "means the server's full name. service= is the first part of that principal; "
    "service=hive/HOST says another host than that of the connection.",
    _NO_REALM: _KRB5_CONF,
    _REALM_UNKNOWN: _KRB5_CONF,
    _KDC_SILENT: f"Is the KDC running? {_KRB5_CONF}",
    _CLOCKS: "The clocks of this machine and of the KDC or the server differ: set them.",
}
_KERBEROS_OTHERWISE = "klist shows the tickets of this process, and whether they are valid."
_PROTECTIONS = {"auth": "", "auth-int": "signed", "auth-conf": "encrypted"}
_HOST_MISMATCH, _IP_MISMATCH, _EXPIRED = 62, 64, 10  # of OpenSSL's X509_V_ERR
# A server of Java sends each answer as one frame, however long it is: the names of all partitions
# need more than the 16 MB that newer versions of Thrift allow (older ones have no limit).
MOST_IN_A_FRAME: dict[str, int] = (
    {"max_frame_size": TTransport.HARD_MAX_FRAME_SIZE}
    if hasattr(TTransport, "HARD_MAX_FRAME_SIZE")
    else {}
)


class KerberosError(TTransportException):  # type: ignore[misc]  # Thrift has no types
    """Kerberos on this machine, or the KDC, refuses; ``code`` is its number."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(TTransportException.NOT_OPEN, f"Kerberos says: {text}")
        self.code = code


class HttpStatusError(TTransportException):  # type: ignore[misc]
    """The answer is no answer of a metastore; ``status`` is that of HTTP."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(TTransportException.UNKNOWN, f"HTTP status {status} {reason}")
        self.status = status


def user_of(address: Address) -> str:
    """The user whose name the server gets, unless a ticket or token names one."""
    return address.user or getpass.getuser()


def tls_context(address: Address) -> ssl.SSLContext:
    """Make the context that checks the server's certificate and name, by the certificates in the
    address's ``cafile``; None: by those of this machine. Raises SettingError if they cannot be
    read."""
    try:
        return ssl.create_default_context(cafile=address.cafile)
    except (OSError, ssl.SSLError) as error:
        raise SettingError(
            f"The certificates in '{address.cafile}' cannot be read: {error}.", name="metastore"
        ) from error


# ── SASL ─────────────────────────────────────────────────────────────────────────────────────


def sasl_transport(address: Address, opened: Any, host: str) -> Any:
    """Make a transport around a socket, not opened yet, that signs the user in with a password
    (auth=plain) or by Kerberos. Raises SettingError if a package or the password is missing."""
    try:
        if address.auth == "plain":
            return TSaslClientTransport(
                opened, host, address.service, "PLAIN",
                username=user_of(address), password=address.secret(), **MOST_IN_A_FRAME,
            )  # fmt: skip
        import kerberos  # noqa: F401 - pure-sasl alone would fail later, and with another message

        return _Kerberos(address, opened, host)
    except ImportError as error:
        extra = "hive" if address.auth == "plain" else "hive-kerberos"
        raise SettingError(
            f"auth={address.auth} needs the package {error.name}: pip install 'acidsql[{extra}]'.",
            name="metastore",
        ) from error


class _Kerberos(TSaslClientTransport):  # type: ignore[misc]
    """SASL GSSAPI whose errors are Thrift's, so that the client takes a new connection."""

    def __init__(self, address: Address, opened: Any, host: str) -> None:
        service, _, fixed = address.service.partition("/")
        with _kerberos_errors():
            super().__init__(
                opened, fixed or host, service, "GSSAPI", principal=address.user, **MOST_IN_A_FRAME
            )

    def open(self) -> None:
        with _kerberos_errors():
            super().open()

    def flush(self) -> None:
        with _kerberos_errors():
            super().flush()

    def read(self, sz: int) -> bytes:
        with _kerberos_errors():
            return bytes(super().read(sz))

    def cstringio_refill(self, prefix: bytes, reqlen: int) -> Any:
        with _kerberos_errors():
            return super().cstringio_refill(prefix, reqlen)


@contextmanager
def _kerberos_errors() -> Iterator[None]:
    """Run a block; errors of Kerberos and pure-sasl, and any other Exception, become KerberosError,
    which is Thrift's. TTransportException, OSError and EOFError pass as they are."""
    import kerberos

    try:
        yield
    except (TTransportException, OSError, EOFError):
        raise
    except kerberos.KrbError as error:
        raise KerberosError(*_reason_and_code(error)) from error
    except Exception as error:  # pure-sasl raises some that have no type of their own
        raise KerberosError(str(error), 0) from error


def _reason_and_code(error: Exception) -> tuple[str, int]:
    """Return the text and number of the reason: that of Kerberos, if there is one; else GSSAPI's;
    else the error's text and 0."""
    reasons = [
        argument for argument in error.args if isinstance(argument, tuple) and len(argument) == 2
    ]
    if not reasons:
        return str(error), 0
    text, code = next((reason for reason in reasons if reason[1] < 0), reasons[0])
    return str(text), int(code)


def principal_of(transport: Any) -> str:
    """The user that the server knows by Kerberos; empty without Kerberos."""
    return str(getattr(_mechanism(transport), "user", None) or "")


def protection_of(transport: Any) -> str:
    """``signed`` or ``encrypted``, if Kerberos does so to all that is sent; otherwise empty."""
    return _PROTECTIONS.get(bytes(getattr(_mechanism(transport), "qop", b"")).decode(), "")


def _mechanism(transport: Any) -> Any:
    # pure-sasl has no public name for it.
    if not isinstance(transport, _Kerberos):
        return None
    return getattr(transport.sasl, "_chosen_mech", None)


# ── HTTP ─────────────────────────────────────────────────────────────────────────────────────


class Http(THttpClient):  # type: ignore[misc]
    """HTTP with a user's name or token; each request has a connection of its own."""

    def __init__(self, address: Address, host: str, port: int) -> None:
        scheme = "https" if address.tls else "http"
        super().__init__(
            f"{scheme}://{host_and_port(host, port)}/{address.path}",
            ssl_context=tls_context(address) if address.tls else None,
        )
        self._address = address

    def flush(self) -> None:
        """Send the request, with the user's name or the token as it is now. Raise HttpStatusError
        if the status is not 200."""
        self.setCustomHeaders(self._headers())
        super().flush()
        if self.code != 200:
            raise HttpStatusError(self.code, self.message)

    def _headers(self) -> dict[str, str]:
        # The environment is read each time, because a token may have been renewed there.
        if self._address.auth == "jwt":
            return {"Authorization": f"Bearer {self._address.secret()}"}
        return {"x-actor-username": user_of(self._address)}


# ── what to do ───────────────────────────────────────────────────────────────────────────────


def advice(address: Address, host: str, error: BaseException) -> str:
    """Return what a user can do about a failure of a connection; "" if the failure is not about
    trust."""
    reason = getattr(error, "inner", None) or error  # Thrift's own errors do not say why
    for kind, advise in _ADVICE.items():
        if isinstance(reason, kind):
            return advise(address, host, reason)
    if "SASL negotiation status: 3" in str(error):  # BAD; Thrift has no type for it
        return _sasl_advice(address, str(error))
    return ""


def _kerberos_advice(address: Address, _host: str, error: Any) -> str:
    return _KERBEROS.get(error.code, _KERBEROS_OTHERWISE)


def _certificate_advice(address: Address, host: str, error: Any) -> str:
    """Return what to do about a server's certificate: another host's, an expired one, or else one
    that no trusted authority has signed."""
    if error.verify_code in (_HOST_MISMATCH, _IP_MISMATCH):
        return f"The server's certificate is not for '{host}': use a name that it has."
    if error.verify_code == _EXPIRED:
        return "The server needs a new certificate."
    authorities = (
        f"in '{address.cafile}'" if address.cafile else "of this machine (cafile= names others)"
    )
    return f"The server's certificate is signed by none of the authorities {authorities}."


def _tls_advice(_address: Address, _host: str, error: Any) -> str:
    """Return what to do if TLS fails for another reason than the certificate: the server refuses
    this machine, hangs up, or does not speak TLS. The other arguments are there because ``_ADVICE``
    calls all of its functions alike."""
    if "_ALERT_" in (error.reason or ""):  # said in TLS
        return "The server refuses this machine, for the reason that TLS gives here."
    if isinstance(error, ssl.SSLEOFError):  # perhaps the alert came too late
        return (
            "The server hung up. If it does not use TLS, leave out tls=1. It must not ask clients "
            "for certificates: acidsql has none."
        )
    return "The server does not answer in TLS: leave out tls=1, if it does not use TLS."


def _http_advice(address: Address, _host: str, error: Any) -> str:
    """Return what to do about a status of HTTP: 401 and 403 are about the token; any other one,
    about the path. ``_host`` is there because ``_ADVICE`` calls all of its functions alike."""
    if error.status not in (401, 403):
        return f"Does the server have metastore.server.thrift.http.path={address.path}?"
    if address.auth == "jwt":
        return f"The server refuses the token in {TOKEN}: it may have expired."
    return f"The server asks for a token: say auth=jwt, and set {TOKEN}."


def _sasl_advice(address: Address, message: str) -> str:
    """Return what to do about a server that refuses the mechanism (as its message says), or else
    the user and password, or the Kerberos ticket."""
    if "Unsupported mechanism" in message:
        return f"The server does not know auth={address.auth}."
    if address.auth == "plain":
        return f"The server refuses the user '{user_of(address)}' or the password in {PASSWORD}."
    return "The server cannot check the ticket: has its keytab the newest key, are clocks right?"


_ADVICE: dict[type, Callable[[Address, str, Any], str]] = {
    KerberosError: _kerberos_advice,
    HttpStatusError: _http_advice,
    ssl.SSLCertVerificationError: _certificate_advice,
    ssl.SSLError: _tls_advice,
}
