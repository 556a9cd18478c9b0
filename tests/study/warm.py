"""`rag-repro` from a warm start: libraries are loaded once, and each command is a fork.

For tests that start a real run many times: loading the libraries takes longer
than what they want to see. A line of arguments (JSON) comes in, the command's
process id goes out, and its exit status when it has ended.
"""

from __future__ import annotations

import json
import os
import sys

from rag_repro import cli
from rag_repro.lm import hub, load, local


def serve() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            status = cli.main(json.loads(line))
            sys.stderr.flush()
            os._exit(status)
        tell(child)
        tell(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Transformers imports a model's classes when one is loaded; this one is dropped again.
    load.load(hub.resolve(sys.argv[1]), "cpu", "float32")
    tell(local.WAVE)  # ready
    serve()
