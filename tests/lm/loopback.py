"""A small OpenAI-compatible server on the loopback that can misbehave in many ways."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATHS = ("/v1/completions", "/v1/chat/completions")
Trouble = str | tuple[int, dict, str]


def says(text: str, path: str = "/v1/completions", prompt_tokens: int = 12) -> dict:
    """A sound reply."""
    said = {"message": {"content": text}} if "chat" in path else {"text": text}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 3}
    usage["prompt_tokens_details"] = {"cached_tokens": 5}
    return {"choices": [said | {"finish_reason": "stop"}], "usage": usage}


class Server(ThreadingHTTPServer):
    """Answers from `plan`: what each request in turn gets; what `default` says at the end of it.

    A plan's item is (status, headers, text), a text to be sent as the reply's
    body, or the name of one of the Handler's troubles. text: what the model
    says, a function of the request's body where it is one. models: what it lists; a Trouble
    in place of a list is done instead.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int = 0):
        super().__init__(("127.0.0.1", port), Handler)
        self.plan: list[Trouble] = []
        self.default: Trouble = "ok"
        self.seen: list[tuple[str, dict, dict]] = []
        self.models: list[str] | Trouble = ["tiny", "tiny/7b"]
        self.text: str | Callable[[dict], str] = "It is Rome. It is Paris."
        self.over = threading.Event()
        self.turn = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request, client_address):
        """A client that went away is no news."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *arguments):
        """Silence."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.turn:
            self.server.seen.append((self.path, body, dict(self.headers)))
            what = self.server.plan.pop(0) if self.server.plan else self.server.default
        if self.path.endswith("ions") and self.path not in PATHS:
            what = (404, {}, "404 page not found")
        self.do(what, body)

    def do(self, what: Trouble, body: dict):
        if isinstance(what, tuple):
            self.reply(what[2].encode(), what[0], what[1])
        elif what.replace(" ", "_") in TROUBLES:
            getattr(self, what.replace(" ", "_"))(body)
        else:
            self.reply(what.encode())

    def do_GET(self):
        """The list of models; nothing else is asked for so, but by who follows a redirect."""
        models = self.server.models
        if self.path.endswith("/models") and self.path != "/v1/models":
            self.reply(b"404 page not found", 404)
        elif self.path != "/v1/models":
            self.server.seen.append((self.path, {}, dict(self.headers)))
            self.ok({})
        elif isinstance(models, list):
            self.reply(json.dumps({"data": [{"id": name} for name in models]}).encode())
        else:
            self.do(models, {})

    def reply(self, data: bytes, status: int = 200, headers: dict | None = None, more: int = 0):
        """A reply whose header promises `more` bytes than come."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) + more))
        self.end_headers()
        self.wfile.write(data)

    def sound(self, body: dict) -> bytes:
        text = self.server.text
        return json.dumps(says(text(body) if callable(text) else text, self.path)).encode()

    # ------------------------------------------------------------- troubles

    def ok(self, body):
        self.reply(self.sound(body))

    def stall(self, body):
        self.server.over.wait(10)

    def stall_in_the_body(self, body):
        self.reply(self.sound(body)[:20], more=100)
        self.wfile.flush()
        self.server.over.wait(10)

    def drip(self, body):
        """A byte now and then, for ever: no single wait is long."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not self.server.over.wait(0.02):
            self.wfile.write(b"x")
            self.wfile.flush()

    def drip_in_the_body(self, body):
        self.reply(b"{", more=1 << 20)
        while not self.server.over.wait(0.02):
            self.wfile.write(b" ")
            self.wfile.flush()

    def cut(self, body):
        data = self.sound(body)
        self.reply(data[: len(data) // 2], more=len(data) - len(data) // 2)

    def cut_without_a_length(self, body):
        self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + self.sound(body)[:30])

    def cut_in_the_chunks(self, body):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        self.wfile.write(b"40\r\n" + self.sound(body)[:30])

    def cut_in_an_error(self, body):
        self.reply(b"overl", 500, more=100)

    def close(self, body):
        """No answer at all."""

    def gibberish(self, body):
        """With what the client sent in it."""
        sent = self.headers.get("Authorization", "").encode()
        self.wfile.write(b"\x00\xffnot HTTP " + sent + b"\r\n\r\n")


TROUBLES = {
    name
    for name in vars(Handler)
    if not name.startswith(("do_", "log_", "_")) and name not in ("reply", "sound", "do")
}


@contextlib.contextmanager
def serving(port: int = 0) -> Iterator[Server]:
    """A server for the time of the block; afterwards nobody listens at its port."""
    made = Server(port)
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.over.set()
        made.shutdown()
        made.server_close()
        thread.join()
