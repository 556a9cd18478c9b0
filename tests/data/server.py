"""A file server on the loopback that can misbehave in every way a real one does."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Action = Callable[["Handler"], None]


class FileServer(ThreadingHTTPServer):
    """Serves `content` at any path, or `files[path]`. plan: what each request in turn gets;
    a well-behaved answer at the end of it. asked: path and headers of every request.
    silent: connections that are stalled just now."""

    daemon_threads = True

    def __init__(self, content: bytes = b""):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.etag, self.date = content, '"v1"', None
        self.files: dict[str, bytes] = {}
        self.plan: list[Action] = []
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.silent = 0
        self.end = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/data.json"

    @property
    def ranges(self) -> list[str | None]:
        return [headers.get("range") for _, headers in self.asked]

    def __enter__(self) -> FileServer:
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exc) -> None:
        self.end.set()
        self.shutdown()
        self.server_close()
        self.thread.join()


class Handler(BaseHTTPRequestHandler):
    server: FileServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        server = self.server
        server.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
        self.close_connection = True
        (server.plan.pop(0) if server.plan else whole)(self)

    def start(self, *, ranges: bool = True, **others: str) -> bytes:
        """Status and headers as asked for -> the body that belongs to them."""
        body = self.server.files.get(self.path, self.server.content)
        etag, date = self.server.etag, self.server.date
        wanted = self.headers.get("Range") if ranges else None
        if self.headers.get("If-Range") not in (None, etag, date):
            wanted = None
        if wanted is None:
            self.send_response(200)
        else:
            first = int(wanted.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
            body = body[first:]
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        for name, value in {"ETag": etag, "Last-Modified": date, **others}.items():
            if value:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        return body


def whole(handler: Handler) -> None:
    handler.wfile.write(handler.start())


def cut(n: int) -> Action:
    """An orderly end after n bytes of the body, though more was announced."""
    return lambda handler: handler.wfile.write(handler.start()[:n])


def drop(n: int) -> Action:
    """n bytes, then the connection is reset."""

    def action(handler: Handler) -> None:
        handler.wfile.write(handler.start()[:n])
        handler.wfile.flush()
        linger = struct.pack("ii", 1, 0)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    return action


def stall(n: int) -> Action:
    """n bytes, then silence."""

    def action(handler: Handler) -> None:
        handler.wfile.write(handler.start()[:n])
        handler.wfile.flush()
        handler.server.silent += 1
        handler.server.end.wait(60)
        handler.server.silent -= 1

    return action


def status(code: int, **headers: str) -> Action:
    def action(handler: Handler) -> None:
        handler.send_response(code)
        for name, value in {**headers, "Content_Length": "0", "Connection": "close"}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()

    return action


def without_ranges(handler: Handler) -> None:
    """The whole file, whatever was asked for."""
    handler.wfile.write(handler.start(ranges=False))


def labelled(**headers: str) -> Action:
    return lambda handler: handler.wfile.write(handler.start(**headers))


def chunked(handler: Handler) -> None:
    """No length, in chunks."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    body = handler.server.content
    for part in (body[:100], body[100:]):
        handler.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
    handler.wfile.write(b"0\r\n\r\n")


def without_length(handler: Handler) -> None:
    """No length and no chunks: the end of the connection is the end of the file."""
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(handler.server.content)


def headed(head: str) -> Action:
    """A head of one's own before the content."""
    return lambda handler: handler.wfile.write(head.encode() + b"\r\n\r\n" + handler.server.content)


def misplaced(start: int) -> Action:
    """A 206 that begins at `start`, whatever was asked for."""

    def action(handler: Handler) -> None:
        del handler.headers["Range"]
        handler.headers["Range"] = f"bytes={start}-"
        whole(handler)

    return action
