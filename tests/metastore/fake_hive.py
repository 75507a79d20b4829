"""A server that speaks the metastore's protocol and misbehaves as it is told."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import (
    TBufferedTransport,
    TFramedTransport,
    TMemoryBuffer,
    TTransportBase,
    TTransportException,
)

from acidsql.metastore.hive.wire.idl import methods

# What a script may say about one call.
CLOSE, HALF, FAIL, RUBBISH = "closes", "half an answer", "fails", "rubbish"
UNKNOWN = "knows no such method"


class FakeHive:
    """Answers ``set_ugi``, and else what a function returns.

    Args:
        answer: Gets the method's name and arguments; returns the value or exception of the answer,
            or one of the words above.
        context: The server's certificate, if it speaks TLS.
        frames: Whether each message has its length before it.
        sasl: Whether it asks for a password, and believes any. Then it has frames, too.
    """

    def __init__(
        self,
        answer: Callable[[str, Any], Any],
        context: ssl.SSLContext | None = None,
        *,
        frames: bool = False,
        sasl: bool = False,
    ) -> None:
        self._context, self._frames, self._sasl = context, frames or sasl, sasl
        self._answer, self.calls, self.connections = answer, list[str](), 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    def hang_up(self) -> None:
        """Close all connections, as a server that is restarted does."""
        for one in self._open:
            one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):  # it is closed already
            self._listener.shutdown(socket.SHUT_RDWR)  # ends ``accept`` in the other thread
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        if self._context is not None:
            self._open.remove(peer)
            with suppress(OSError):  # the client does not trust us
                peer = self._context.wrap_socket(peer, server_side=True)
            self._open.append(peer)
        with peer, peer.makefile("rwb", 0) as stream:
            try:
                if self._sasl:
                    self._sign_in(peer, _Stream(stream))
                wrapped = TFramedTransport if self._frames else TBufferedTransport
                while self._one(peer, TBinaryProtocol(wrapped(_Stream(stream)))):
                    pass
            except (TTransportException, OSError, EOFError):
                return

    def _sign_in(self, peer: socket.socket, stream: Any) -> None:
        for _ in ("the mechanism", "user and password"):
            _, length = struct.unpack(">BI", stream.readAll(5))
            stream.readAll(length)
        complete = 5
        peer.sendall(struct.pack(">BI", complete, 0))

    def _one(self, peer: socket.socket, protocol: TBinaryProtocol) -> bool:
        name, _, number = protocol.readMessageBegin()
        method = methods[name]
        arguments = method.arguments()
        arguments.read(protocol)
        said: Any = ["ann"]
        if name != "set_ugi":
            self.calls.append(name)
            said = self._answer(name, arguments)
        if said == CLOSE:
            return False
        if said == RUBBISH:
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return False
        data = self._encoded(name, number, method, said)
        if self._frames:
            data = struct.pack(">i", len(data)) + data
        peer.sendall(data[: len(data) // 2] if said == HALF else data)
        return said != HALF

    def _encoded(self, name: str, number: int, method: Any, said: Any) -> bytes:
        memory = TMemoryBuffer()
        protocol = TBinaryProtocol(memory)
        if said in (FAIL, UNKNOWN):
            protocol.writeMessageBegin(name, TMessageType.EXCEPTION, number)
            kind, what = {
                FAIL: (TApplicationException.INTERNAL_ERROR, "Internal error processing"),
                UNKNOWN: (TApplicationException.UNKNOWN_METHOD, "Invalid method name:"),
            }[said]
            TApplicationException(kind, f"{what} {name}").write(protocol)
            return memory.getvalue()
        answer = method.result()
        thrown = isinstance(said, Exception)
        fields = [one for one in method.result.thrift_spec if one]
        for _, _, field, pair, _ in fields:
            if thrown and field != "success" and pair[0] is type(said):
                setattr(answer, field, said)
        if not thrown and method.returns and said != HALF:
            answer.success = said
        protocol.writeMessageBegin(name, TMessageType.REPLY, number)
        answer.write(protocol)
        return memory.getvalue()


class _Stream(TTransportBase):  # type: ignore[misc]
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, sz: int) -> bytes:
        found: bytes = self._stream.read(sz)
        if not found:
            raise EOFError
        return found

    def isOpen(self) -> bool:  # noqa: N802
        return True
