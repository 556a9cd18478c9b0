"""What each command does: thin wrappers over the package, which import what they need inside.

Their docstrings end the help of the command.
"""

from .preparing import corpus, data, growth, serve_search, train, tune
from .publishing import book, chapter
from .recording import claims, compare, exhibit, grid, run, show, status, time

__all__ = [
    "book",
    "chapter",
    "claims",
    "compare",
    "corpus",
    "data",
    "exhibit",
    "grid",
    "growth",
    "run",
    "serve_search",
    "show",
    "status",
    "time",
    "train",
    "tune",
]
