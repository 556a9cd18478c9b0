"""Trained classifiers as pages show them: their cards, and how their training went."""

from __future__ import annotations

from collections.abc import Sequence

from ..lm.adapters import card_of
from ..study.names import SCORERS
from . import missing, trained
from .figures import MARKERS, STYLES, across, legend_of_labels, plots
from .picture import Note, Picture
from .table import Table

STEPS = 40
"""Parts of a run over which the loss of its steps is averaged for a picture."""


def cards(names: Sequence[str], caption: str = "", name: str = "") -> Table:
    """One line a classifier: lessons, steps, minutes, held-out loss; or what would make it."""
    head = ["classifier", "pairs", "positive", "steps", "tokens", "minutes", "held-out loss"]
    at_hand = trained.folders(names)
    body = []
    for one in names:
        if one not in at_hand:
            body.append([one, missing.of_trained([one], SCORERS), *[""] * (len(head) - 2)])
            continue
        card = card_of(at_hand[one])
        lessons = card["lessons"]
        positive = sum(n for source, n in lessons.items() if source.startswith("positive:"))
        counts = [card["steps"], f"{card['tokens']:,}", round(card["seconds"] / 60)]
        # A pair is a lesson in each of its two orders.
        pairs = [sum(lessons.values()) // 2, positive // 2]
        body.append([one, *pairs, *counts, trained.mean_loss(card["held_out_loss"], lessons)])
    return Table(head, body, caption, name)


def cost(names: Sequence[str]) -> dict[str, float]:
    """Seconds of training by name, of those that are made."""
    return {
        name: float(card_of(folder)["seconds"]) for name, folder in trained.folders(names).items()
    }


def curves(names: Sequence[str], caption: str = "", name: str = "") -> Picture | Note:
    """Loss while learning (line) and on held-out questions (marks), in nats, one colour each."""
    at_hand = trained.folders(names)
    learned = {one: rows for one in at_hand if (rows := trained.curve(at_hand[one]))}
    if not learned:
        return missing.of_trained(names, SCORERS).note
    plt, colours = plots()
    figure, axis = plt.subplots(figsize=(across(), 3.4), layout="constrained")
    said = []
    for i, (one, rows) in enumerate(learned.items()):
        lessons = card_of(at_hand[one])["lessons"]
        whole = len(rows)
        part = max(1, whole // STEPS)
        means = [
            (
                rows[j]["step"] / whole,
                sum(r["loss"] for r in rows[j : j + part]) / len(rows[j : j + part]),
            )
            for j in range(0, whole, part)
        ]
        held = [
            (row["step"] / whole, trained.mean_loss(row["held_out"], lessons))
            for row in rows
            if row.get("held_out")
        ]
        look = {"color": colours[i % len(colours)], "label": one}
        axis.plot(*zip(*means, strict=True), ls=STYLES[i % len(STYLES)], lw=1, **look)
        if held:
            x, y = zip(*[(x, float(y)) for x, y in held], strict=True)
            axis.plot(x, y, ls="", marker=MARKERS[i % len(MARKERS)], color=look["color"])
            said.append(f"{one}: held-out loss {y[0]:.2f} at first, {y[-1]:.2f} at the end")
    axis.axhline(0.693, color="0.5", lw=1, ls="--")  # ln 2: one half whatever is asked
    axis.set_xlabel("part of the run")
    axis.set_ylabel("loss, nats")
    axis.set_ylim(bottom=0)
    legend_of_labels(figure)
    alt = "Learning curves. " + "; ".join(said or learned)
    return Picture(figure, f"{alt}.", caption, name)
