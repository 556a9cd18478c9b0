"""rag_repro: four retrieval-augmented-generation papers, re-tested in the open.

from rag_repro import ask, compare, method, results
"""

from typing import Any

__version__ = "0.1.0"

# name -> the module that has it, imported when it is first asked for
_LAZY = {
    "adapt": "retrieval",
    "ask": "quick",
    "compare": "comparison",
    "load": "data",
    "method": "methods.base",
    "results": "study.frame",
}
__all__ = ["__version__", "adapt", "ask", "compare", "load", "method", "results"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
