"""What each command does: thin wrappers over the package, which import what they need inside.

Their docstrings end the help of the command.
"""

# ruff: noqa: F401

from rag_repro.commands.preparing import corpus, data, growth, serve_search, train, tune
from rag_repro.commands.recording import (
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
from rag_repro.commands.using import book, chapter, compare_methods, methods
