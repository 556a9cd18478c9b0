"""What ERM4's modules were taught: lessons kept and refused by the check, labels, and examples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from ..lm.adapters import card_of
from ..lm.scripted import prompt_text
from ..training.examples import Example
from . import missing, trained
from .table import Table
from .traces import short

TASK = ("reader",)
SOURCE = re.compile(
    r"rewriting:(?P<of>[^,]+)(?:, (?P<kept>\d+) of (?P<made>\d+) that (?P<by>\S+))?"
)
LABEL = re.compile(r"filter:(?P<of>\S+) (?P<by>\w+), (?P<label>\w+)")


def rewriters(names: Sequence[str], caption: str = "", name: str = "") -> Table:
    """One line a rewriter and source: rewrites that the check kept and refused, by the card.

    Each that is kept is taught in every form that a rewriter is asked for, so that lessons
    are more; those of questions kept out to watch the loss are not among them.
    """
    head = ["rewriter", "questions of", "checked by", "kept", "refused", "lessons", "steps"]
    head += ["minutes", "held-out loss"]
    return _table(names, head, _rewrites, caption, name)


def filters(names: Sequence[str], caption: str = "", name: str = "") -> Table:
    """One line a label that a filter was taught, by questions and hypothesis.

    Each with its own loss: one over all labels hid a filter that took nothing.
    """
    head = ["filter", "questions of", "hypothesis", "label", "lessons"]
    head += ["steps", "minutes", "held-out loss"]
    return _table(names, head, _labels, caption, name)


def _table(names, head, told, caption, name) -> Table:
    at_hand, body = trained.folders(names), []
    for one in names:
        if one not in at_hand:
            body.append([one, missing.of_trained([one], TASK), *[""] * (len(head) - 2)])
            continue
        card = card_of(at_hand[one])
        rest = [card["steps"], round(card["seconds"] / 60)]
        for place, (cells, sources) in enumerate(told(card["lessons"])):
            first = place == 0
            held = {s: loss for s, loss in card["held_out_loss"].items() if s in sources}
            loss = trained.mean_loss(held, card["lessons"])
            body.append([one if first else "", *cells, *(rest if first else ["", ""]), loss])
    return Table(head, body, caption, name)


def _rewrites(lessons):
    for source, count in lessons.items():
        if found := SOURCE.match(source):
            if found["kept"]:
                kept, made = int(found["kept"]), int(found["made"])
                told = [found["by"], kept, made - kept]
            else:
                told = ["nobody", "all", 0]
            yield [found["of"], *told, count], [source]


def _labels(lessons):
    for source, count in lessons.items():
        if found := LABEL.match(source):
            yield [found["of"], found["by"], found["label"], count], [source]


def lessons(examples: Iterable[Example], most: int, caption: str = "", name: str = "") -> Table:
    """The first of these lessons: the end of the prompt, and what is to be written behind it.

    For worlds alone: texts of other data are not ours to print.
    """
    body = []
    for example in islice(examples, most):
        asked = prompt_text(example.prompt).strip().split("\n\n")[-1]
        body.append([short(asked, 400), example.target.strip()])
    return Table(["prompt, its end", "to be written"], body, caption, name)
