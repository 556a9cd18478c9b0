"""bm25s without JAX, which it would otherwise start where JAX is installed."""

from __future__ import annotations

import logging
import sys
from threading import Lock
from types import ModuleType

_alone = Lock()


def bm25s() -> ModuleType:
    """The package bm25s, which has found no JAX where it is first imported by this.

    Where it finds one, it tries JAX's top-k at import, and with that first call JAX takes three
    quarters of a GPU's memory, beside a reader that wants it. So its top-k is NumPy's here.
    """
    with _alone:
        held = sys.modules.get("jax")
        sys.modules["jax"] = None  # type: ignore[assignment]  # an import of it fails
        try:
            import bm25s
        finally:
            del sys.modules["jax"]
            if held is not None:
                sys.modules["jax"] = held
    # It sets its own level to DEBUG, and tells of each index.
    logging.getLogger("bm25s").setLevel(logging.INFO)
    return bm25s
