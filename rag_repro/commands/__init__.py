"""What each command does: thin wrappers over the package, which import what they need inside.

Their docstrings end the help of the command.
"""

from .preparing import corpus, data, growth, serve_search, train, tune
from .publishing import book, chapter
from .recording import (
    audit,
    claims,
    compare,
    exhibit,
    grid,
    registration,
    run,
    seal,
    show,
    status,
    time,
)
from .using import compare_methods, methods

__all__ = [
    "audit",
    "book",
    "chapter",
    "claims",
    "compare",
    "compare_methods",
    "corpus",
    "data",
    "exhibit",
    "grid",
    "growth",
    "methods",
    "registration",
    "run",
    "seal",
    "serve_search",
    "show",
    "status",
    "time",
    "train",
    "tune",
]
