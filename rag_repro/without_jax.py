"""bm25s without JAX, which it would otherwise start where JAX is installed."""

from __future__ import annotations

import sys
from types import ModuleType


def bm25s() -> ModuleType:
    """The package bm25s, imported so that it finds no JAX.

    Where it finds one, it tries JAX's top-k at import, and with that first call JAX takes three
    quarters of a GPU's memory, beside a reader that wants it. Nothing here uses bm25s's top-k.
    """
    hidden = "bm25s" not in sys.modules and "jax" not in sys.modules
    if hidden:
        sys.modules["jax"] = None  # type: ignore[assignment]  # an import of it fails
    try:
        import bm25s
    finally:
        if hidden:
            del sys.modules["jax"]
    return bm25s
