"""The register of question kinds.

Every maker takes a `Desk` and an entity to begin with and returns what a
question is made of, or None where this entity does not lead to one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .desk import Desk, Draft
from .one_root import ambiguous, chain_of, inference, paraphrase
from .two_roots import (
    bridge_comparison,
    bridge_free,
    comparison,
    numeric_difference,
    yes_no,
)
from .world import Entity

KINDS: Mapping[str, Callable[[Desk, Entity], Draft | None]] = {
    "single_hop": chain_of(1),
    "compositional2": chain_of(2),
    "compositional3": chain_of(3),
    "compositional4": chain_of(4),
    "inference": inference,
    "comparison": comparison,
    "bridge_comparison": bridge_comparison,
    "yes_no": yes_no,
    "numeric_difference": numeric_difference,
    "ambiguous": ambiguous,
    "paraphrase": paraphrase,
    "bridge_free": bridge_free,
}
