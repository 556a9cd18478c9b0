"""The generated testbed: encyclopedias of invented people, works, bodies and places.

from rag_repro.data import synthworld
dataset = synthworld.build("B")                      # 4,000 passages, 1,000 questions
world = synthworld.world("B")                        # entities, facts, passages
"""

from rag_repro.data.synthworld.building import KINDS, MULTI_HOP, build
from rag_repro.data.synthworld.dials import DEFAULT, Dials, WorldError
from rag_repro.data.synthworld.world import Entity, Fact, World, world

__all__ = [
    "DEFAULT",
    "KINDS",
    "MULTI_HOP",
    "Dials",
    "Entity",
    "Fact",
    "World",
    "WorldError",
    "build",
    "world",
]
