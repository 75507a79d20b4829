"""One connection to one server: sockets, TLS, SASL, HTTP; a call and its answer.

A connection belongs to one thread. ``client`` opens a new one after any failure.
"""

from __future__ import annotations

import http.client
import logging
import select
import socket
from contextlib import suppress
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TSSLSocket import TSSLSocket
from thrift.transport.TTransport import (
    TBufferedTransport,
    TFramedTransport,
    TTransportException,
)

from acidsql.metastore.hive.wire.address import Address
from acidsql.metastore.hive.wire.idl import TExceptionBase, hive, methods
from acidsql.metastore.hive.wire.security import (
    MOST_IN_A_FRAME,
    Http,
    principal_of,
    protection_of,
    sasl_transport,
    tls_context,
    user_of,
)

# Thrift logs that it cannot connect, and without a handler Python prints that. The error says it.
logging.getLogger("thrift").addHandler(logging.NullHandler())

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


class Connection:
    """An open connection to one server.

    Attributes:
        host: The server.
        user: The user's name, as the server knows it.

    Args:
        address: How to speak to the server.
        host: The server.
        port: Its port.

    Raises:
        SettingError: A package or a password is missing.
        One of ``LOST``: The server does not answer, or refuses the user.
    """

    def __init__(self, address: Address, host: str, port: int) -> None:
        """Open the connection and greet the server. If that fails, close the connection."""
        self.host = host
        self._transport: Any = None
        self._socket, self._transport = _new_transport(address, host, port)
        protocol = TCompactProtocolAccelerated if address.compact else TBinaryProtocolAccelerated
        self._protocol: Any = protocol(self._transport)
        self._number = 0
        self._timeout_ms = OPEN_TIMEOUT_MS
        try:
            self._transport.open()
            _enable_keep_alive(getattr(self._socket, "handle", None))
            self._greet(address)
        except BaseException:
            self.close()
            raise

    def _greet(self, address: Address) -> None:
        """Make a first call, so that there surely is a server that lets the user in, and set
        ``user``. With SASL opening the connection was enough, and no call is made. A MetaException,
        by which the server answers the call, is ignored."""
        principal = principal_of(self._transport)
        self.user = principal.partition("@")[0].partition("/")[0] or user_of(address)
        with suppress(hive.MetaException):  # metastore.execute.setugi=false
            if address.path is not None:
                self.call("getVersion", OPEN_TIMEOUT_MS)  # HTTP connects only for a call
            elif address.auth == "none":
                self.call("set_ugi", OPEN_TIMEOUT_MS, self.user, [self.user])

    @property
    def protection(self) -> str:
        """The protection of all messages by Kerberos: see ``security.protection_of``."""
        return protection_of(self._transport)

    @property
    def is_open(self) -> bool:
        """False if the server is known to have closed the connection."""
        return bool(self._transport.isOpen()) and not _is_hung_up(self._socket)

    def close(self) -> None:
        """Close it."""
        with suppress(Exception):  # Thrift's transports differ in what they do if it never opened
            self._transport.close()

    def __del__(self) -> None:
        self.close()  # its thread has ended

    def call(self, name: str, timeout_ms: int, *values: Any) -> Any:
        """Call a method, and return its answer; None if it has none.

        Raises:
            One of ``LOST``: The reply was lost, or is none of a metastore.
            One of ``INTERNAL``: The server has failed, or does not know the method.
            One of ``REFUSED``: The server has said no.
        """
        if timeout_ms != self._timeout_ms:
            self._socket.setTimeout(timeout_ms)
            self._timeout_ms = timeout_ms
        method = methods[name]
        self._send(name, method.arguments, values)
        return self._receive(method)

    def _send(self, name: str, arguments: Any, values: tuple[Any, ...]) -> None:
        """Send a call with the values of its arguments, in order."""
        self._number += 1
        names = [spec[2] for spec in arguments.thrift_spec if spec is not None]
        self._protocol.writeMessageBegin(name, TMessageType.CALL, self._number)
        arguments(**dict(zip(names, values, strict=True))).write(self._protocol)
        self._protocol.writeMessageEnd()
        self._transport.flush()

    def _receive(self, method: Any) -> Any:
        """Read the answer to the last call: return its value, or raise its exception. An answer
        that is empty or another call's counts as lost."""
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


def _enable_keep_alive(handle: socket.socket | None) -> None:
    """Let TCP ask a silent machine whether it is there; without a socket (HTTP) do nothing."""
    if handle is None:
        return  # HTTP has a connection for each call
    handle.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):  # not on each system
            handle.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _is_hung_up(opened: Any) -> bool:
    """Whether the server has closed the socket; False if that cannot be known."""
    # Thrift cannot look into a socket with TLS, and takes it for open.
    handle = getattr(opened, "handle", None)
    if handle is None or not hasattr(select, "POLLRDHUP"):
        return False
    poll = select.poll()
    poll.register(handle, select.POLLRDHUP)
    return bool(poll.poll(0))


def _new_transport(address: Address, host: str, port: int) -> tuple[Any, Any]:
    """Make the socket, for time-outs, and the transport around it, as the address says; neither is
    open yet. With HTTP both are one."""
    if address.path is not None:
        http = Http(address, host, port)
        http.setTimeout(OPEN_TIMEOUT_MS)
        return http, http
    opened: Any
    if address.tls:
        opened = TSSLSocket(
            host, port, ssl_context=tls_context(address), server_hostname=host,
            validate_callback=lambda *_: None,  # the context checks names
        )  # fmt: skip
    else:
        opened = TSocket(host, port)
    opened.setTimeout(OPEN_TIMEOUT_MS)
    if address.auth in ("plain", "kerberos"):
        return opened, sasl_transport(address, opened, host)
    if address.framed:
        return opened, TFramedTransport(opened, **MOST_IN_A_FRAME)
    return opened, TBufferedTransport(opened)
