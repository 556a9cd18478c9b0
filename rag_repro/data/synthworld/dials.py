"""What can be turned about a world, and the preset that everybody uses."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields


class DialError(ValueError):
    """A dial outside its range."""


@dataclass(frozen=True)
class Dials:
    """Settings of a world; each lies between 0 and 1. The defaults are calibrated.

    shared_names: share of people and works that bear the full name of another.
    wording_overlap: chance that a question uses words that passages use too,
        where it could avoid them.
    distractors: how densely name parts repeat. At 0 nearly every surname and
        title word is used once; at 1 about thirteen people or works share it,
        and companies, clubs, universities and awards are built from it too.
    hooks: chance that a passage alludes to something that refers to its subject, by
        words of that thing's name (never the whole of it). It gives lexical search
        a hold on passages that the question does not name, as public corpora do.
    ties: chance that a passage, and those that refer to its subject, allude to the
        same third name. It likens linked passages to each other, not to questions.
    fillers: chance that a passage with enough facts gets a sentence without any.
    taught: share of an entity's facts that are marked as taught, by lot.
    """

    shared_names: float = 0.08
    wording_overlap: float = 0.5
    distractors: float = 0.15
    hooks: float = 0.6
    ties: float = 0.9
    fillers: float = 0.4
    taught: float = 0.5

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0.0 <= value <= 1.0:
                raise DialError(f"dial {field.name} is {value}; give a number from 0 to 1")

    @property
    def mark(self) -> str:
        """Empty for the default preset, else "~" and eight digits that name the dials."""
        if self == DEFAULT:
            return ""
        text = json.dumps(asdict(self), sort_keys=True)
        return "~" + hashlib.sha256(text.encode()).hexdigest()[:8]


DEFAULT = Dials()
