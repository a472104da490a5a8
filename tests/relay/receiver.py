"""A consumer on this machine whose behaviour a test decides, request by request."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LIMIT = 10.0


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def message(self) -> Any:
        return json.loads(self.body)


type Behaviour = Callable[["Receiver", BaseHTTPRequestHandler, Request], None]


def answer(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    def behave(_receiver: "Receiver", handler: BaseHTTPRequestHandler, _request: Request) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return behave


@dataclass
class Receiver:
    """`plan` answers the next requests in turn; when it is over, `then` does."""

    port: int = 0
    requests: list[Request] = field(default_factory=list)
    plan: list[Behaviour] = field(default_factory=list)
    then: Behaviour = field(default_factory=lambda: answer(200))
    let_go: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def ids(self) -> list[str]:
        return [request.id for request in self.requests]

    def next(self, request: Request) -> Behaviour:
        with self._lock:
            self.requests.append(request)
            return self.plan.pop(0) if self.plan else self.then


def hang(receiver: Receiver, _handler: BaseHTTPRequestHandler, _request: Request) -> None:
    """Takes the message, and answers when nobody listens any more."""
    receiver.let_go.wait(LIMIT)


def drip(receiver: Receiver, handler: BaseHTTPRequestHandler, _request: Request) -> None:
    """A header that never ends, a byte at a time: each read is answered in time, the whole never."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not receiver.let_go.wait(0.05):
        handler.wfile.write(b"a")
        handler.wfile.flush()


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            with suppress(BrokenPipeError, ConnectionResetError):
                receiver.next(request)(receiver, self, request)
            self.close_connection = True

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join(LIMIT)
