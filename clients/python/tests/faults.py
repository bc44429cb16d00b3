"""A real HTTP server on this machine that answers as a test says, with faults that oddswire does not make on request."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

META = {"request_id": "req_1", "timestamp": 1_767_323_045}
VENUES: dict[str, object] = {"success": True, "data": [], "meta": META}
"""An answer of `venues.list`."""


@dataclass(frozen=True)
class Seen:
    """A request. The names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Act = Callable[[BaseHTTPRequestHandler], None]


def answer(status: int, body: object, **headers: str) -> Act:
    """Answers with JSON. The underscores of headers are hyphens."""
    return raw(status, json.dumps(body).encode(), content_type="application/json", **headers)


def raw(status: int, body: bytes, **headers: str) -> Act:
    """Answers with bytes."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return act


def failure(status: int, code: str, details: Sequence[dict[str, str]] = (), **headers: str) -> Act:
    """Answers with an error of the API."""
    error = {"code": code, "message": f"this is {code}", "details": list(details)}
    return answer(status, {"success": False, "error": error, "meta": META}, **{"X_Request_Id": "req_1", **headers})


def cut(sent: bytes = b"") -> Act:
    """Closes the connection, after a part of an answer when there is one."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        if sent:
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(sent) + 1))
            handler.end_headers()
            handler.wfile.write(sent)
            handler.wfile.flush()
        handler.connection.shutdown(socket.SHUT_RDWR)
        handler.close_connection = True

    return act


@dataclass
class FaultServer:
    """The address of the server, its answers in order, and what it saw. The last answer repeats."""

    url: str
    answers: list[Act] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    """Set when the first request is here."""
    released: threading.Event = field(default_factory=threading.Event)

    def silent(self, handler: BaseHTTPRequestHandler) -> None:
        """Answers nothing until the test ends."""
        self.released.wait()
        handler.close_connection = True

    def trickle(self, handler: BaseHTTPRequestHandler) -> None:
        """Sends a byte every 50 ms until the test ends or the client leaves."""
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        try:
            while not self.released.wait(0.05):
                handler.wfile.write(b" ")
                handler.wfile.flush()
        except OSError:
            pass
        handler.close_connection = True


@contextmanager
def fault_server() -> Iterator[FaultServer]:
    """Runs a server on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                self.close_connection = True

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.seen.append(Seen(self.command, self.path, headers, body))
            server.arrived.set()
            act = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
            act(self)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing: requests have keys."""

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    server = FaultServer(f"http://127.0.0.1:{listener.server_address[1]}")
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        listener.shutdown()
        listener.server_close()
        thread.join()
