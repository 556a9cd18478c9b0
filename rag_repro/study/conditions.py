"""A condition: one cell of an exhibit as we run it.

Its identity is everything that its author decides; what the world adds (hashes of data and weights,
library versions that matter) is the record's fingerprint. n and role are no part of the identity: a
longer run continues a shorter one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from rag_repro import data
from rag_repro.lm import endpoint
from rag_repro.methods import base
from rag_repro.plain import fits, hints, shortened

TIERS = ("testbed", "public", "paper")
ROLES = ("primary", "secondary")


@dataclass(frozen=True)
class Condition:
    """method + settings + data set + reader + retriever + seed.

    dataset: a name that `data.load` knows, which the identity holds without a
    path (`label`); `split` limits it to that split of the frozen split file.
    retriever, reader: names that `study.services` knows; of a reader at an endpoint the
    identity holds the model, of a retriever at an address what it does, and no address.
    """

    dataset: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    retriever: str | None = None
    reader: str | None = None
    split: str = "test"
    seed: int = 0

    def __post_init__(self):
        # Fail where a condition is written down, not hours into a run.
        for name, wanted in hints(Condition).items():
            if not fits(value := getattr(self, name), wanted):
                raise ValueError(f"a condition's {name} cannot be {shortened(repr(value), 60)}")
        self.configured  # noqa: B018
        if self.reader and self.reader.startswith(endpoint.PREFIX):
            endpoint.parse(self.reader)
        _label(self.retriever)

    @cached_property
    def spec(self) -> base.MethodSpec:
        return base.get(self.method)

    @cached_property
    def configured(self) -> base.Settings:
        return self.spec.configure(self.settings)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Plain data, complete settings spelled out, in a fixed order."""
        made = {
            "dataset": self.label,
            "split": self.split,
            "method": self.method,
            "version": self.spec.version_of(self.configured),
            "settings": {
                name: endpoint.label(value) if _is_reader(value, self.configured) else value
                for name, value in asdict(self.configured).items()
            },
            "retriever": _label(self.retriever),
            "reader": endpoint.label(self.reader),
            "seed": self.seed,
        }
        return made | {"code": self.spec.code} if self.spec.code else made

    @cached_property
    def label(self) -> str:
        """The data set's name without a path."""
        return data.label(self.dataset)

    @cached_property
    def hash(self) -> str:
        """Twelve hex digits that name this condition's record."""
        text = json.dumps(self.identity, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def path(self) -> str:
        """Where its record lies below the records' folder, without an ending."""
        reader = endpoint.label(self.reader)
        parts = [
            self.method,
            _label(self.retriever),
            reader,
            f"k{self.configured.k}",
            self.hash,
        ]
        return f"{self.label}/" + re.sub(r"[^\w.@-]+", "_", "-".join(p for p in parts if p))


def _label(retriever: str | None) -> str | None:
    """`names.label`, whose libraries take time to import, for what may be an address."""
    if retriever is None or ":" not in retriever:
        return retriever
    from rag_repro.study import names

    return names.label(retriever)


def _is_reader(value: Any, configured: base.Settings) -> bool:
    """Whether a setting names a reader beside the condition's own."""
    return isinstance(value, str) and configured.needs.get(value) == "reader"
