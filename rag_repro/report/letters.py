"""What a score that counts letters does: ERM4's F1 beside its hit and the usual scores."""

from __future__ import annotations

from collections.abc import Sequence

from ..evaluation.answer_metrics import accuracy, answer_length, erm4_scores, hit, token_scores
from .table import Table
from .values import points

EXAMPLES = (
    (("Paris",), "Paris", "right"),
    (("London",), "Paris", "wrong"),
    (("Neon",), "Helium", "wrong, and whatever else is wrong scores the same"),
    (("Paris", "City of Light"), "Paris", "right, and punished for the other name"),
    (("1",), "It was in 1912.", "wrong, and a hit without word boundaries"),
    (("no",), "I do not know.", "no answer, and a hit without word boundaries"),
    (("The Beatles",), "Beatles", "right, but for an article"),
    (("Oslo",), "Rome, Bern, Oslo, Kiev, Riga, Bonn", "right once in six; length costs nothing"),
)
"""(accepted answers, output, what it is), invented for this book."""


def table(examples: Sequence[tuple[Sequence[str], str, str]] = EXAMPLES, name: str = "") -> Table:
    """One line an example: ERM4's hit and F1 as released, then in whole words and tokens."""
    body = []
    for answers, said, what in examples:
        body.append(
            [
                " | ".join(answers),
                said,
                what,
                points(hit([said], answers)),
                points(erm4_scores([said], answers).f1),
                points(accuracy(said, answers, whole_words=True)),
                points(token_scores(said, answers).f1),
                f"{answer_length(said):.0f}",
            ]
        )
    head = ["accepted", "output", "which is", "hit, letters", "F1, letters", "hit, words"]
    head += ["F1, tokens", "words"]
    return Table(head, body, "One output, scored four ways, %", name)
