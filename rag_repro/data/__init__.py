"""Data: the front door. `load("hotpotqa")`, `load("world-B@20000")`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..words import nearest

if TYPE_CHECKING:
    from .dataset import Dataset
    from .synthworld import Dials

ENVIRONMENT = "RAG_REPRO_DATA"

_WORLD = re.compile(r"world-([A-Z])(?:@(\d+))?(?:~([\w.=,]+))?")


def load(
    name: str,
    *,
    data_dir: Path | str | None = None,
    split: str | None = None,
    path: Path | str | None = None,
    format: str | None = None,
) -> Dataset:
    """A data set by name: a world of the testbed, or a public one.

    `world-B` has the default size, `world-B@20000` so many passages, and
    `world-B~hooks=0,ties=0` those dials turned away from the preset. Public
    sets are read from `data_dir`, by default the folder that the environment
    variable RAG_REPRO_DATA names; `path` and `format` name one file instead.
    `split` ("train", "tune" or "test") keeps the questions that the frozen
    split file lists, in file order (world A trains and tunes, the others test);
    the corpus stays whole.

    Raises ValueError (UnknownName, DataError) with what to do next.
    """
    if name.startswith("world"):
        return _world(name, split)
    from . import public

    folder = data_dir if data_dir is not None else os.environ.get(ENVIRONMENT) or None
    made = public.load(name, folder, path=path, format=format)
    if split is None:
        return made
    from . import splits

    return splits.only(made, split)


def _world(name: str, split: str | None) -> Dataset:
    from . import synthworld

    found = _WORLD.fullmatch(name)
    if found is None:
        raise ValueError(
            f"no world {name!r}; write world-A to world-D, or as world-B@20000, world-B~ties=0.5"
        )
    size = {"n_passages": int(found[2])} if found[2] else {}
    made = synthworld.build(found[1], **size, dials=_dials(name, found[3]))
    if split is None:
        return made
    from . import splits

    return splits.only_of_world(made, found[1], split)


def _dials(name: str, text: str | None) -> Dials:
    """The preset, or the preset with some dials turned: "hooks=0,ties=0.5"."""
    from dataclasses import replace

    from .synthworld import DEFAULT

    turned = {}
    for part in (text or "").split(",") if text else ():
        dial, _, value = part.partition("=")
        try:
            turned[dial] = float(value)
        except ValueError:
            raise ValueError(f"{name}: {part!r} is no dial; write as hooks=0.5") from None
        if dial not in (known := DEFAULT.__dataclass_fields__):
            raise ValueError(f"{name}: there is no dial {dial!r}{nearest(dial, known)}")
    return replace(DEFAULT, **turned)
