"""What can be turned about a world, and the preset of each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields


class WorldError(ValueError):
    """A world, size, split or dial that cannot be."""


@dataclass(frozen=True)
class Dials:
    """Settings of a world; each lies between 0 and 1. `PRESETS` has those of each world.

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
    whole_names: chance that an allusion gives the whole name. Pages of real encyclopedias
        name what refers to them, so search can find a passage that the question does not
        name. Above 0 a question may rest on such a passage; at 0 none does.
    subjects: chance that a director, performer or author has a subject ("a lonely beekeeper
        and a lighthouse"), which the passages of that person and of the works name, allusions
        to these repeat, and questions that begin with one mention: real pages that are linked
        share a topic.
    """

    shared_names: float = 0.08
    wording_overlap: float = 0.5
    distractors: float = 0.15
    hooks: float = 0.6
    ties: float = 0.9
    fillers: float = 0.4
    taught: float = 0.5
    whole_names: float = 0.0
    subjects: float = 0.0

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0.0 <= value <= 1.0:
                raise WorldError(f"dial {field.name} is {value}; give a number from 0 to 1")

    def mark(self, preset: Dials | None = None) -> str:
        """Empty for the preset (None: the default), else "~" and eight digits of the dials."""
        if self == (preset or DEFAULT):
            return ""
        later = ("whole_names", "subjects")  # marks stay as they were before there were these
        given = {k: v for k, v in asdict(self).items() if v or k not in later}
        text = json.dumps(given, sort_keys=True)
        return "~" + hashlib.sha256(text.encode()).hexdigest()[:8]


DEFAULT = Dials()
# Set on world Z, so that search finds as much as on real data (`calibration`).
CALIBRATED = Dials(
    distractors=0.05, hooks=0.6, ties=0.0, fillers=0.0, whole_names=1.0, subjects=1.0
)


@dataclass(frozen=True)
class Preset:
    """What a world is made with.

    wording: its set in `wordings.yaml` and `phrases.yaml`; syllables: its set in `words.yaml`.
    learned: whether readers learn from it (splits train and tune, some pairs of relations
    never asked) or are tested on it (split test).
    """

    seed: int
    wording: str
    syllables: str
    dials: Dials = DEFAULT
    learned: bool = False


# Z is for calibration and training. Its wordings are those of B, C and D, which had been looked
# at: so the set "plain" of E and F is new to every reader and to whoever set a dial.
PRESETS: Mapping[str, Preset] = {
    "A": Preset(11, "A", "first", learned=True),
    "B": Preset(12, "held", "first"),
    "C": Preset(13, "held", "first"),
    "D": Preset(14, "held", "first"),
    "Z": Preset(15, "held", "second", CALIBRATED, learned=True),
    "E": Preset(16, "plain", "third", CALIBRATED),
    "F": Preset(17, "plain", "third", CALIBRATED),
}
