"""What each command does: thin wrappers over the package, which import what they need inside.

Their docstrings end the help of the command.
"""

from .preparing import corpus, data, growth, serve_search, train, tune
from .publishing import book, chapter
from .recording import claims, compare, exhibit, grid, run, seal, show, status, time
from .using import compare_methods, methods

__all__ = [
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
    "run",
    "seal",
    "serve_search",
    "show",
    "status",
    "time",
    "train",
    "tune",
]
