"""One connection to one server: sockets, TLS, SASL, HTTP; a call and its answer.

A connection belongs to one thread. ``client`` opens a new one after any failure.
"""

from __future__ import annotations

import getpass
import http.client
import socket
import ssl
from contextlib import suppress
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.THttpClient import THttpClient
from thrift.transport.TSocket import TSocket
from thrift.transport.TSSLSocket import TSSLSocket
from thrift.transport.TTransport import (
    TBufferedTransport,
    TFramedTransport,
    TSaslClientTransport,
    TTransportException,
)

from acidsql.errors import SettingError
from acidsql.metastore.hive.address import Address
from acidsql.metastore.hive.idl import TExceptionBase, hive, methods

# After one of these nobody knows whether the server has done what it was asked to do. The answer
# of a program that is no metastore may be any bytes, so that decoding it raises a ValueError.
LOST = (
    TTransportException, TProtocolException, OSError, EOFError, http.client.HTTPException,
    ValueError, OverflowError,
)  # fmt: skip
INTERNAL = TApplicationException  # the server itself has failed
REFUSED = TExceptionBase  # the server has said no; one of the interface's exceptions

OPEN_TIMEOUT_MS = 20_000
# If nothing comes for 30 seconds, TCP asks the other machine every 10 seconds, and gives up when it
# has not answered 6 times. So a call may take long, but not because nobody is there any more.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}


def user_of(address: Address) -> str:
    """The user whose name the server gets."""
    return address.user or getpass.getuser()


class Connection:
    """An open connection to one server.

    Args:
        address: How to speak to the server.
        host: The server.
        port: Its port.

    Raises:
        SettingError: A package or a password is missing.
        One of ``LOST``: The server does not answer, or refuses the user.
    """

    def __init__(self, address: Address, host: str, port: int) -> None:
        self._transport: Any = None
        self._socket, self._transport = _transport(address, host, port)
        protocol = TCompactProtocolAccelerated if address.compact else TBinaryProtocolAccelerated
        self._protocol: Any = protocol(self._transport)
        self._number = 0
        self._timeout_ms = OPEN_TIMEOUT_MS
        try:
            self._transport.open()
            _keep_alive(getattr(self._socket, "handle", None))
            if address.auth == "none" and address.path is None:
                user = user_of(address)
                with suppress(hive.MetaException):  # metastore.execute.setugi=false
                    self.call("set_ugi", OPEN_TIMEOUT_MS, user, [user])
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        """False if the server is known to have closed the connection."""
        return bool(self._transport.isOpen())

    def close(self) -> None:
        """Close it."""
        with suppress(Exception):  # Thrift's transports differ in what they do if it never opened
            self._transport.close()

    def __del__(self) -> None:
        self.close()  # its thread has ended

    def call(self, name: str, timeout_ms: int, *values: Any) -> Any:
        """Call a method.

        Raises:
            One of ``LOST``, ``INTERNAL``, ``REFUSED``.
        """
        if timeout_ms != self._timeout_ms:
            self._socket.setTimeout(timeout_ms)
            self._timeout_ms = timeout_ms
        method = methods[name]
        self._send(name, method.arguments, values)
        return self._receive(method)

    def _send(self, name: str, arguments: Any, values: tuple[Any, ...]) -> None:
        self._number += 1
        names = [one[2] for one in arguments.thrift_spec if one is not None]
        self._protocol.writeMessageBegin(name, TMessageType.CALL, self._number)
        arguments(**dict(zip(names, values, strict=True))).write(self._protocol)
        self._protocol.writeMessageEnd()
        self._transport.flush()

    def _receive(self, method: Any) -> Any:
        _, kind, number = self._protocol.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            failure = TApplicationException()
            failure.read(self._protocol)
            self._protocol.readMessageEnd()
            raise failure
        answer = method.result()
        answer.read(self._protocol)
        self._protocol.readMessageEnd()
        if number != self._number:
            raise TTransportException(message="the answer is that of another call")
        for thrown in method.throws:
            error = getattr(answer, thrown)
            if error is not None:
                raise error
        if not method.returns:
            return None
        if answer.success is None:
            raise TTransportException(message="the answer is empty")
        return answer.success


def _keep_alive(handle: socket.socket | None) -> None:
    if handle is None:
        return  # HTTP has a connection for each call
    handle.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):  # not on each system
            handle.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _transport(address: Address, host: str, port: int) -> tuple[Any, Any]:
    """The socket, for time-outs, and what is wrapped around it."""
    if address.path is not None:
        made = _http(address, host, port)
        return made, made
    opened: Any
    if address.tls:
        opened = TSSLSocket(
            host, port, ssl_context=_tls(address), server_hostname=host,
            validate_callback=lambda *_: None,  # the context checks names
        )  # fmt: skip
    else:
        opened = TSocket(host, port)
    opened.setTimeout(OPEN_TIMEOUT_MS)
    if address.auth in ("plain", "kerberos"):
        return opened, _sasl(address, opened, host)
    return opened, (TFramedTransport if address.framed else TBufferedTransport)(opened)


def _tls(address: Address) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=address.cafile)
    except (OSError, ssl.SSLError) as error:
        raise SettingError(
            f"The certificates in '{address.cafile}' cannot be read: {error}.", name="metastore"
        ) from error


def _http(address: Address, host: str, port: int) -> Any:
    scheme = "https" if address.tls else "http"
    context = _tls(address) if address.tls else None
    made = THttpClient(f"{scheme}://{host}:{port}/{address.path}", ssl_context=context)
    headers = {"x-actor-username": user_of(address)}
    if address.auth == "jwt":
        headers["Authorization"] = f"Bearer {address.secret()}"
    made.setCustomHeaders(headers)
    made.setTimeout(OPEN_TIMEOUT_MS)
    return made


def _sasl(address: Address, opened: Any, host: str) -> Any:
    try:
        if address.auth == "plain":
            return TSaslClientTransport(
                opened, host, address.service, "PLAIN",
                username=user_of(address), password=address.secret(),
            )  # fmt: skip
        import kerberos  # noqa: F401 - pure-sasl alone would fail later, and with another message

        return TSaslClientTransport(opened, host, address.service, "GSSAPI")
    except ImportError as error:
        extra = "hive" if address.auth == "plain" else "hive-kerberos"
        raise SettingError(
            f"auth={address.auth} needs the package {error.name}: pip install 'acidsql[{extra}]'.",
            name="metastore",
        ) from error
