"""An S3 server for tests: moto's, in a process of its own, which counts requests and fails by rule.

The server holds objects in memory, and checks no signatures; here it refuses other access keys. It
lives as long as its object, at most as long as the process that started it.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote

ACCESS_KEY, SECRET_KEY, REGION = "acidsqltestkey", "acidsql/test+secret", "eu-central-1"


class Request(NamedTuple):
    """A request that the server has got.

    Attributes:
        kind: LIST, COPY (also of a part), DELETES (of many keys), else HTTP's method.
        bucket: The bucket's name.
        key: The object's key; of a LIST its prefix.
    """

    kind: str
    bucket: str
    key: str


@dataclass(frozen=True)
class Rule:
    """How requests fail.

    Attributes:
        how: ``status``: answered with ``status`` and ``code``, not done. ``reset``: the connection
            is reset, nothing is done. ``lost``: done, but the connection is reset instead of a
            reply. ``late``: as ``reset``, but done at ``ObjectStore.do_late``. ``slow``: done after
            ``seconds``.
        kind: A pattern of whole kinds (``Request.kind``).
        key: A pattern that is searched for in ``bucket/key``.
        first: The first request that fails, of those that match; 1 is the next one.
        times: How many fail.
        status: HTTP's status.
        code: S3's code, as ``SlowDown``.
        seconds: See ``slow``.
    """

    how: str
    kind: str = ".*"
    key: str = ""
    first: int = 1
    times: int = 1
    status: int = 503
    code: str = "SlowDown"
    seconds: float = 0.0


def hadoop_settings(endpoint: str, access_key: str, secret_key: str) -> dict[str, str]:
    """Hadoop's settings for a server."""
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": REGION,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": access_key,
        "fs.s3a.secret.key": secret_key,
    }


def environment(hadoop: Mapping[str, str]) -> dict[str, str]:
    """The variables that have the keys of Hadoop's settings: AWS's tools and Arrow know them."""
    return {
        "AWS_ACCESS_KEY_ID": hadoop["fs.s3a.access.key"],
        "AWS_SECRET_ACCESS_KEY": hadoop["fs.s3a.secret.key"],
    }


class ObjectStore:
    """A running server.

    Attributes:
        endpoint: Its URL.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._lock, self._buckets = threading.Lock(), 0
        self.endpoint = f"http://127.0.0.1:{self._answer()}"

    @property
    def hadoop(self) -> dict[str, str]:
        """Hadoop's settings for this server."""
        return hadoop_settings(self.endpoint, ACCESS_KEY, SECRET_KEY)

    def new_bucket(self) -> str:
        """Make a bucket, and return its name."""
        self._buckets += 1
        return str(self._ask("new_bucket", name=f"bucket-{self._buckets}"))

    def drop_bucket(self, name: str) -> None:
        """Throw a bucket away with all that is in it."""
        self._ask("drop_bucket", name=name)

    def keys(self, bucket: str) -> list[str]:
        """The keys of all objects in a bucket, in order. This is not counted as a request."""
        return list(self._ask("keys", name=bucket))

    def mark(self) -> None:
        """Forget the requests until now."""
        self._ask("mark")

    def requests(self) -> list[Request]:
        """The requests since ``mark``, also those that failed."""
        return [Request(*one) for one in self._ask("requests")]

    def counts(self, key: str = "") -> Counter[str]:
        """The number of requests since ``mark``, by kind. ``key``: as in ``Rule``."""
        found = (one for one in self.requests() if re.search(key, f"{one.bucket}/{one.key}"))
        return Counter(one.kind for one in found)

    @contextmanager
    def failing(self, *rules: Rule) -> Iterator[None]:
        """Inside the block, requests fail by these rules; the first one that matches decides."""
        self._ask("rules", rules=[asdict(rule) for rule in rules])
        try:
            yield
        finally:
            self._ask("rules", rules=[])

    def do_late(self) -> int:
        """Do what ``late`` rules have put off. Returns the number of these requests."""
        return int(self._ask("do_late"))

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _ask(self, command: str, **arguments: object) -> Any:
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps([command, arguments]) + "\n")
            self._process.stdin.flush()
            return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the object store has ended"
        return json.loads(line)


@functools.cache
def missing() -> str | None:
    """Why there can be no object store here; None if there can be one."""
    absent = [
        name for name in ("moto", "flask", "flask_cors") if not importlib.util.find_spec(name)
    ]
    return f"no object store for tests: there is no {absent[0]} here" if absent else None


# ── the server's process ─────────────────────────────────────────────────────────────────────

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class _Watched:
    """A WSGI application around moto's."""

    def __init__(self, inner: Application) -> None:
        self._inner, self._lock = inner, threading.Lock()
        self.seen: list[Request] = []
        self._rules: list[tuple[Rule, Counter[str]]] = []
        self._late: list[Environ] = []

    def __call__(self, environ: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        request = _request(environ)
        with self._lock:
            self.seen.append(request)
            rule = self._failing(request)
        if rule is None:
            if not _is_known(environ):
                return _refuse(start, 403, "InvalidAccessKeyId")
        elif rule.how == "status":
            return _refuse(start, rule.status, rule.code)
        elif rule.how == "slow":
            time.sleep(rule.seconds)
        else:
            return self._hang_up(environ, rule.how)
        return self._inner(environ, start)

    def _failing(self, request: Request) -> Rule | None:
        for rule, counter in self._rules:
            if re.fullmatch(rule.kind, request.kind) and re.search(
                rule.key, f"{request.bucket}/{request.key}"
            ):
                counter["n"] += 1
                if rule.first <= counter["n"] < rule.first + rule.times:
                    return rule
        return None

    def _hang_up(self, environ: Environ, how: str) -> Iterable[bytes]:
        from werkzeug.wsgi import get_input_stream

        connection = environ["werkzeug.socket"]
        # The whole body is read: the client shall not notice before it waits for the reply.
        environ["wsgi.input"] = BytesIO(get_input_stream(environ).read())
        if how == "lost":
            self._do(environ)
        elif how == "late":
            with self._lock:
                self._late.append(environ)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()  # with this, a reset
        raise ConnectionAbortedError  # so that werkzeug does not answer

    def _do(self, environ: Environ) -> None:
        deque(self._inner(environ, lambda *arguments: None), maxlen=0)

    def rules(self, rules: list[dict[str, Any]]) -> None:
        with self._lock:
            self._rules = [(Rule(**rule), Counter()) for rule in rules]

    def do_late(self) -> int:
        with self._lock:
            late, self._late = self._late, []
        for environ in late:
            self._do(environ)
        return len(late)


def _request(environ: Environ) -> Request:
    kind, query = environ["REQUEST_METHOD"], parse_qs(environ["QUERY_STRING"], True)
    # WSGI gives the bytes of the path as Latin-1.
    path = environ["PATH_INFO"].encode("latin-1").decode(errors="replace")
    bucket, _, key = path.lstrip("/").partition("/")
    if kind == "GET" and not key and not {"location", "versioning", "policy"} & set(query):
        kind, key = "LIST", query.get("prefix", [""])[0]
    elif kind == "PUT" and "HTTP_X_AMZ_COPY_SOURCE" in environ:
        kind = "COPY"
    elif kind == "POST" and "delete" in query:
        kind = "DELETES"
    return Request(kind, bucket, key)


def _is_known(environ: Environ) -> bool:
    said = unquote(environ.get("HTTP_AUTHORIZATION", "") + environ["QUERY_STRING"])
    return f"Credential={ACCESS_KEY}/" in said


def _refuse(start: Callable[..., Any], status: int, code: str) -> Iterable[bytes]:
    text = f"<Error><Code>{code}</Code><Message>{code} of the test</Message></Error>"
    start(f"{status} {code}", [("Content-Type", "application/xml")])
    return [f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()]


class _Commands:
    """What ``ObjectStore`` asks for, beside HTTP."""

    def __init__(self, watched: _Watched) -> None:
        from moto.core import DEFAULT_ACCOUNT_ID
        from moto.s3.models import s3_backends

        self._watched, self._backend = watched, s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        self.rules, self.do_late = watched.rules, watched.do_late

    def new_bucket(self, name: str) -> str:
        self._backend.create_bucket(name, REGION)
        return name

    def drop_bucket(self, name: str) -> None:
        del self._backend.buckets[name]

    def keys(self, name: str) -> list[str]:
        return sorted(self._backend.buckets[name].keys)

    def mark(self) -> None:
        self._watched.seen.clear()

    def requests(self) -> list[Request]:
        return list(self._watched.seen)


def _serve() -> None:
    import logging

    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    class Handler(MotoRequestHandler):
        def connection_dropped(self, *arguments: Any) -> None:
            self.close_connection = True

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    watched = _Watched(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, watched, threaded=True, request_handler=Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    commands = _Commands(watched)
    print(server.port, flush=True)
    for line in sys.stdin:
        command, arguments = json.loads(line)
        print(json.dumps(getattr(commands, command)(**arguments)), flush=True)


if __name__ == "__main__":
    _serve()
