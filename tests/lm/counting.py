"""An OpenAI-compatible server as a process of its own, which writes down what it is asked.

`python counting.py LOG MODEL PORT HOLD`: a line "begin PROMPT" in LOG when a request is there, "end
PROMPT" when its answer is ready; both are out of the process at once, so that they outlive its
death. After HOLD answers (-1: never) it holds what comes ("hold PROMPT"), until there is a file
LOG.go. Its first line on stdout is its port.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SLOW = 0.02  # seconds an answer takes, so that requests are in flight together


def answer(prompt: str) -> str:
    """What any of these servers says."""
    return " says " + re.findall(r"query (\d+)", prompt)[-1]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        """Silence."""

    def do_GET(self):
        self.reply({"data": [{"id": self.server.model}]})

    def do_POST(self):
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["prompt"]
        number = re.findall(r"query (\d+)", prompt)[-1] if "query" in prompt else "word"
        self.server.note(f"begin {number}")
        with self.server.turn:
            held = self.server.hold == 0
            self.server.hold -= not held
        if held:
            self.server.note(f"hold {number}")
            while not self.server.go.exists():
                time.sleep(0.01)
        time.sleep(SLOW)
        usage = {"prompt_tokens": 12, "completion_tokens": 3}
        self.server.note(f"end {number}")
        text = answer(prompt) if "query" in prompt else "Hello"
        self.reply({"choices": [{"text": text, "finish_reason": "stop"}], "usage": usage})

    def reply(self, told: dict):
        data = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, log: str, model: str, port: int, hold: int):
        super().__init__(("127.0.0.1", port), Handler)
        self.model, self.hold = model, hold
        self.turn = threading.Lock()
        self.go = Path(log + ".go")
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, line: str) -> None:
        os.write(self._log, (line + "\n").encode())

    def handle_error(self, request, client_address):
        """A client that went away is no news."""


# ------------------------------------------------------------------ from the test's side


class Running:
    """One such process, and what it wrote down."""

    def __init__(self, log: Path, model: str, port: int, hold: int):
        self.log = log
        command = [sys.executable, __file__, str(log), model, str(port), str(hold)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def lines(self) -> list[str]:
        """What it wrote down so far, without one-word questions."""
        told = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in told if not line.endswith("word")]

    def asked(self) -> Counter:
        """Question -> how often it came here."""
        return Counter(line.split()[1] for line in self.lines() if line.startswith("begin"))

    def answered(self) -> Counter:
        """Question -> how often it was answered here."""
        return Counter(line.split()[1] for line in self.lines() if line.startswith("end"))

    def holds(self) -> int:
        """How many requests it has that it will not answer."""
        return sum(line.startswith("hold") for line in self.lines())

    def most_at_once(self) -> int:
        """The most requests that were here together."""
        here = most = 0
        for line in self.lines():
            here += {"begin": 1, "end": -1, "hold": 0}[line.split()[0]]
            most = max(most, here)
        return most

    def release(self) -> None:
        """Let it answer what it holds, and hold nothing any more."""
        self.log.with_name(self.log.name + ".go").touch()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def running(log: Path, model: str = "tiny", port: int = 0, hold: int = -1) -> Iterator[Running]:
    """A server for the time of the block, which may kill it before."""
    made = Running(log, model, port, hold)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.kill()


if __name__ == "__main__":
    serving = Server(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    print(serving.server_port, flush=True)
    serving.serve_forever()
