"""A small real HTTP server on the loopback interface that behaves as badly as it is told."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Exchange"], None]


class Exchange(BaseHTTPRequestHandler):
    """One request; behaviours answer it with these words."""

    protocol_version = "HTTP/1.1"
    server: LoopbackServer

    def do_POST(self) -> None:
        self._answered()

    def do_GET(self) -> None:
        self._answered()

    def _answered(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        self.server.bodies.append(json.loads(body) if body else None)
        self.server.seen.append({name.lower(): value for name, value in self.headers.items()})
        number = len(self.server.bodies) - 1
        script = self.server.script
        script[min(number, len(script) - 1)](self)

    def whole(
        self,
        status: int,
        body: str | dict[str, Any],
        content_type: str = "application/json",
        **headers: str,
    ) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def begin(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def piece(self, text: str) -> None:
        self.raw(f'data: {{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}\n\n')

    def raw(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def end(self) -> None:
        self.raw('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
        self.raw("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def drop(self) -> None:
        """Break the connection off."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def hello(self) -> None:
        self.begin()
        self.piece("Hello")
        self.end()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing."""


class LoopbackServer(ThreadingHTTPServer):
    """Answers the n-th request by the n-th behaviour, the last one ever after."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, script: list[Behaviour]) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.script = script
        self.bodies: list[Any] = []
        self.seen: list[dict[str, str]] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave are part of the tests."""


@contextmanager
def serving(*script: Behaviour) -> Iterator[LoopbackServer]:
    server = LoopbackServer(list(script) or [Exchange.hello])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
