"""A server that answers with bytes, whatever they are: for what no server of a library would send."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from reviewboard.model_server import wires

#: What is sent for one request: pieces, each by itself. The connection is closed after the last, unless `keeps` is set.
type Said = list[bytes]
type Say = Callable[[bytes], Said]


class RawServer:
    """Answers each request with what `say` makes of a good answer's body. One thread a connection."""

    def __init__(self, listener: socket.socket) -> None:
        self.say: Say = lambda good: [whole(good)]
        self.keeps = False
        self.requests: list[bytes] = []
        self._listener = listener
        host, port = listener.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def serve(self) -> None:
        while True:
            try:
                connection, _address = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            try:
                while (request := _request(lines)) is not None:
                    self.requests.append(request[0])
                    for piece in self.say(_good(*request)):
                        connection.sendall(piece)
                    if not self.keeps:
                        return
            except OSError:
                return


def _request(lines: Any) -> tuple[bytes, bytes] | None:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = lines.readline()
        if not line:
            return None
        head += line
    length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0)
    return head, lines.read(length)


def _good(head: bytes, body: bytes) -> bytes:
    path = head.split(b" ")[1].decode()
    return json.dumps(wires.answer(path, json.loads(body), fault="up")).encode() if body else b"{}"


def whole(body: bytes, *headers: bytes, status: bytes = b"200 OK", version: bytes = b"HTTP/1.1") -> bytes:
    """An answer with its length, and further header lines."""
    lines = [version + b" " + status, b"Content-Type: application/json", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join([*lines, b"", b""]) + body


def head_only(*lines: bytes, status: bytes = b"200 OK", version: bytes = b"HTTP/1.1") -> bytes:
    return b"\r\n".join([version + b" " + status, *lines, b"", b""])


def chunked(body: bytes, sizes: tuple[int, ...] = (1, 3, 7)) -> list[bytes]:
    """The body in chunks of odd sizes with extensions, and a trailer behind them."""
    pieces, place, turn = [head_only(b"Content-Type: application/json", b"Transfer-Encoding: chunked")], 0, 0
    while place < len(body):
        piece = body[place : place + sizes[turn % len(sizes)]]
        pieces.append(b"%x;odd=yes\r\n%s\r\n" % (len(piece), piece))
        place, turn = place + len(piece), turn + 1
    return [*pieces, b"0\r\nX-Trailer: yes\r\n\r\n"]


@contextmanager
def raw_server(host: str = "127.0.0.1") -> Iterator[RawServer]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((host, 0))
        listener.listen(64)
        server = RawServer(listener)
        threading.Thread(target=server.serve, daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def plain_server() -> Iterator[str]:
    """Its address. It speaks no TLS, and says so at once to whoever connects."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _address = listener.accept()
                    with connection:
                        connection.sendall(head_only(status=b"400 Bad Request"))
                        connection.shutdown(socket.SHUT_WR)
                        connection.recv(65536)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
