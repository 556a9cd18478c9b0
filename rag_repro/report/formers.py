"""What was trained for R²AG: cards, how held-out lists went, and how large a former is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..lm import hub
from ..lm.adapters import card_of
from ..plain import from_json, text_of
from ..study.papers import Cell
from . import missing, trained
from .figures import MARKERS, STYLES, across, legend_of_labels, plots
from .lists import SYMBOLS
from .picture import Note, Picture
from .table import Table, Under

TASK = ("r2ag",)
TOLD = {
    "features": "its features",
    "shuffled": "features of other passages",
    "constant": "every feature 1",
    "gold": "gold labels",
    "free": "nothing (learnable tokens)",
    "scores": "the retriever's scores",
}


def names(cells: Iterable[Cell], seed: int | None = None) -> list[str]:
    """What was trained for these cells, by name; seed: of those of several seeds this one alone."""
    return list(
        dict.fromkeys(
            cell.condition.reader
            for cell in cells
            if cell.condition.reader != cell.keys.get("reader")
            and (seed is None or cell.keys.get("seed", seed) == seed)
        )
    )


def cards(wanted: Sequence[str], caption: str = "", name: str = "") -> Table:
    """One line a training: what learned, from what, what stayed as it was, and how it ended.

    Numbers trained are the former's and the low-rank matrices'. Steps are of the joint loss; how
    often the lists were matched before, without the reader, stands below. Held out: the loss of
    the answers in nats a token, and how well the head tells gold passages apart (of those that
    have one). Minutes say so where a processor that is slow in bfloat16 computed in float32.
    Cards that were not kept and are rebuilt from a page of this book say so.
    """
    head = ["trained", "told of a passage", "reader", "numbers trained", "lists", "steps"]
    head += ["minutes", "held-out loss", "head's AUC"]
    at_hand = trained.folders(wanted)
    body: list[list[Any]] = []
    for one in wanted:
        if one not in at_hand:
            body.append([one, missing.of_trained([one], TASK), *[""] * (len(head) - 2)])
            continue
        card, folder = card_of(at_hand[one]), at_hand[one]
        recipe, held = card["recipe"], card["held_out_loss"]
        reader = card["base"]["name"]
        reader += ", low-rank matrices" if recipe.get("lora") else ", frozen"
        body.append(
            [
                Under(one, "card rebuilt from an earlier page") if "taken_from" in card else one,
                told(recipe.get("former")),
                reader,
                f"{_numbers(card, folder):,}",
                sum(card["lessons"].values()),
                _steps(card["steps"], recipe.get("former") or {}),
                _minutes(card),
                f"{held['answer']:.3f}" if "answer" in held else "",
                f"{100 * held['auc']:.1f}" if "auc" in held else "",
            ]
        )
    return Table(head, body, caption, name, stacked=True)


def _numbers(card: Mapping[str, Any], folder: Path) -> int:
    """How many were trained; an early card whose weights are gone tells of its former's alone."""
    return card.get("numbers") or hub.numbers_in(folder) or card["former"]["parameters"]


def _steps(steps: int, former: Mapping[str, Any]) -> int | Under:
    passes = former.get("head_start", 0)
    return Under(str(steps), f"matched {passes} times before") if passes else steps


def _minutes(card: Mapping[str, Any]) -> int | Under:
    minutes = round(card["seconds"] / 60)
    computed = card.get("computed_in", "")
    widened = card["recipe"]["optimiser"]["autocast"] and "float32" in computed
    return Under(str(minutes), f"in {computed}") if widened else minutes


def told(former: Mapping[str, Any] | None) -> str:
    """What stands before a passage, out of a recipe's `former`."""
    if former is None:
        return "no embedding"
    said = TOLD[former["inputs"]]
    own = former["inputs"] in ("features", "shuffled")
    left = [s for column, s in SYMBOLS.items() if own and column not in former["columns"]]
    parts = [f"without {', '.join(left)}"] if left else []
    if not former["qdm"] and former["inputs"] != "free":
        parts.append("no matching loss")
    parts += ["matching loss summed"] * (former["reduction"] == "sum")
    parts += ["matching first, then answers"] * (former["stages"] == "separate")
    parts += ["no start of matching"] * (former["qdm"] and former.get("head_start") == 0)
    return ", ".join([said, *parts])


def curves(
    wanted: Sequence[str], watched: str = "answer", caption: str = "", name: str = ""
) -> Picture | Note:
    """What is watched of held-out lists ("answer", "matching", "auc") as the training goes on."""
    at_hand = trained.folders(wanted)
    held: dict[str, list[tuple[int, float]]] = {}
    for one, folder in at_hand.items():
        checks = ((row["step"], row.get("held_out") or {}) for row in trained.curve(folder))
        points = [(step, found[watched]) for step, found in checks if watched in found]
        if points:
            held[one] = points
    if not held:
        return missing.of_trained(wanted, TASK).note
    plt, colours = plots()
    figure, axis = plt.subplots(figsize=(across(), 3.4), layout="constrained")
    for one, points in held.items():
        i = list(wanted).index(one)
        look = {"color": colours[i % len(colours)], "ls": STYLES[i // len(colours) % len(STYLES)]}
        axis.plot(*zip(*points, strict=True), **look, marker=MARKERS[i % len(MARKERS)], label=one)
    axis.set_xlabel("steps")
    axis.set_ylabel({"auc": "area under the curve"}.get(watched, "loss, nats"))
    legend_of_labels(figure)
    said = "; ".join(
        f"{one}: {p[0][1]:.2f} at first, {p[-1][1]:.2f} at the end" for one, p in held.items()
    )
    return Picture(figure, f"Held-out lists, {watched}. {said}.", caption, name)


def sizes(readers: Mapping[str, int], n_features: int = 3, name: str = "") -> Table:
    """How many numbers a former has, part by part, before readers of these widths.

    readers: words -> width of its embeddings. The head is for training alone.
    """
    import torch

    from ..lm.former import R2Former, count

    parts = {
        "features to 256": ("lift",),
        "places": ("positions",),
        "encoder layer": ("encoder",),
        "projection to the reader": ("projection",),
        "matching head": ("head",),
    }
    body = []
    for said, width in readers.items():
        with torch.device("meta"):
            module = R2Former(n_features, width)
        numbers = {key: p.numel() for key, p in module.named_parameters()}
        of_part = [
            sum(n for key, n in numbers.items() if key.split(".")[0] in keys)
            for keys in parts.values()
        ]
        body.append([said, width, *(f"{n:,}" for n in of_part), f"{count(module):,}"])
    head = ["reader", "width", *parts, "all"]
    return Table(head, body, "Numbers that an R²-Former has, by the width of its reader", name)


def width_of(reader: str) -> int:
    """Of a reader's embeddings, as its configuration says; nothing is loaded for it."""
    return from_json(text_of(hub.resolve(reader).path / "config.json"))["hidden_size"]
