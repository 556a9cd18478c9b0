"""The methods by their papers' names: `drrag`, `erm4`, `dragin`, `r2ag` and the baselines.

`systems.yaml` has them. A system is a method of `base` with settings, so that its records are
those of the method; a method's own name, and one that `base.method` registered, is a system
without settings. `ask`, `compare`, the command line, the papers' YAML and the chapters all ask
`get`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rag_repro.methods import base
from rag_repro.words import choices

FILE = Path(__file__).with_suffix(".yaml")

NEEDS = {
    "attention": "looks at the reader's attention",
    "probabilities": "looks at the probability of each token",
    "embeddings": "puts embeddings between the tokens",
    "reflection tokens": "reads the probabilities of reflection tokens",
}
"""What of a reader only one on this machine gives, and what a method does with it."""


@dataclass(frozen=True)
class System:
    """A method under its common name; the fields are those of systems.yaml."""

    name: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    retriever: str | None = None
    rows: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    needs: str | None = None
    does: str = ""
    paper: str = ""
    costs: str = ""

    @property
    def spec(self) -> base.MethodSpec:
        """The method that it runs."""
        return base.get(self.method)


@cache
def known() -> Mapping[str, System]:
    """The systems of systems.yaml by name, in its order."""
    entries = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    made = {}
    for name, entry in entries.items():
        several = {key: tuple(entry.get(key, ())) for key in ("rows", "readers")}
        made[name] = System(name, **{**entry, **several})
    return made


def get(name: str) -> System:
    """The system of that name, or a method's own name as one without settings.

    A blank or "_" may stand for "-", capitals for small letters. ValueError, with the nearest
    name, for a name that is neither.
    """
    spelt = str(name).strip().lower().replace("_", "-").replace(" ", "-")
    if spelt in known() and not base.is_own(name):
        return known()[spelt]
    if name in base.method_names():
        like = next((s for s in known().values() if s.method == name), System(name, name))
        return System(name, name, readers=like.readers, needs=like.needs)
    every = (*known(), *base.method_names())
    raise ValueError(f"there is no method {name!r}{choices(name, every, 'rag-repro methods')}")


def rows(name: str) -> tuple[str, ...]:
    """What the papers' exhibits call the method of that name; () where no method has it."""
    try:
        system = get(name)
    except ValueError:
        return ()
    return (system.name.replace("-", "_"), *system.rows)
