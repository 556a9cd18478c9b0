"""R²AG's figure 6 over many questions: where a prompt's last token looks, by layer and place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..data.titles import word
from ..evaluation.attention_metrics import UNIT
from ..study.papers import Cell, Exhibit
from ..study.scores import Results
from . import missing
from .figures import MARKERS, WIDTH, legend_of_labels, plots
from .picture import Note, Picture

Line = Mapping[str, Any]
KINDS = {"embeddings": "an embedding", "words": "a token of a passage", "marks": "a mark"}
"""What attention goes to -> one of it, in words."""


def a_token(lines: Iterable[Line], kind: str) -> np.ndarray | None:
    """(layers,) percent of each layer's attention on one token of a kind; None: nothing is told.

    The mean over questions of a question's share by its number of such tokens.
    """
    made = []
    for line in lines:
        told = line.get("attention", {})
        if not told.get("tokens") or kind not in told:
            continue
        marks, words = (sum(column) for column in zip(*told["tokens"], strict=True))
        count = {"embeddings": len(told["tokens"]), "words": words, "marks": marks}[kind]
        shares = np.array(told[kind], dtype=float)
        if count:
            made.append(100 * shares.reshape(len(shares), -1).sum(1) / UNIT / count)
    return np.mean(made, axis=0) if made else None


def by_layer(
    exhibit: Exhibit, cells: Sequence[Cell], results: Results, caption: str = "", name: str = ""
) -> Picture | Note:
    """A row of panels a data set, a column a row of the exhibit: a line a kind of token, by layer.

    Layers from 1, the first. Logarithmic, since marks and first layers get many times what others
    do; all panels share the scale.
    """
    held = [(cell, lines) for cell in cells if (lines := results.lines(cell))]
    if not held:
        return missing.note(cells, results, caption)
    plt, colours = plots()
    datasets = list(dict.fromkeys(cell.keys["dataset"] for cell, _ in held))
    methods = list(dict.fromkeys(cell.keys["method"] for cell, _ in held))
    figure, axes = plt.subplots(
        len(datasets),
        len(methods),
        figsize=(WIDTH, 1 + 2.4 * len(datasets)),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    spoken = []
    for cell, lines in held:
        dataset, method = cell.keys["dataset"], cell.keys["method"]
        row, column = datasets.index(dataset), methods.index(method)
        axis, label = axes[row, column], exhibit.methods[method].label
        for (kind, one), colour, marker in zip(KINDS.items(), colours, MARKERS, strict=False):
            percent = a_token(lines, kind)
            if percent is None:
                continue
            layers = range(1, len(percent) + 1)
            look = {"color": colour, "marker": marker, "ms": 3, "lw": 1}
            axis.plot(layers, percent, label=one, **look)
            spoken.append(
                f"{word(dataset)}, {label}: {one}: {percent.mean():.3f} % over layers, "
                f"{percent[len(percent) // 2 :].mean():.3f} % in the deeper half"
            )
        axis.set_title(f"{word(dataset)}: {label}")
    for axis in axes.flat:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.set_xlabel("layer" if axis in axes[-1] else "")
    figure.supylabel("attention on one, %", fontsize="medium")
    legend_of_labels(figure)
    alt = "Attention of the last token by layer. " + "; ".join(spoken) + "."
    return Picture(figure, alt, _told(caption, held), name)


def places(lines: Iterable[Line], shown: int) -> tuple[np.ndarray, list[str]] | None:
    """(layers, columns) percent on each of the first passages, and what each column is.

    An embedding has a column of its own before its passage's text. The mean over questions
    with at least so many passages; None where there is none.
    """
    made = []
    for line in lines:
        told = line.get("attention", {})
        if len(told.get("tokens", ())) < shown:
            continue
        words = np.array(told["words"], dtype=float)[:, :shown]
        if "embeddings" in told:
            embeddings = np.array(told["embeddings"], dtype=float)[:, :shown]
            words = np.stack([embeddings, words], axis=2).reshape(len(words), -1)
        made.append(100 * words / UNIT)
    if not made:
        return None
    table = np.mean(made, axis=0)
    with_own = table.shape[1] > shown
    names = [
        text for i in range(1, shown + 1) for text in ([f"e{i}"] if with_own else []) + [f"d{i}"]
    ]
    return table, names


def heat(
    exhibit: Exhibit,
    cells: Sequence[Cell],
    results: Results,
    shown: int = 4,
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """The paper's figure 6, a panel a cell: layers from above, the first passages from the left.

    All panels share one scale, of which the highest value is the darkest.
    """
    held = [(cell, places(results.lines(cell) or (), shown)) for cell in cells]
    held = [(cell, table) for cell, table in held if table is not None]
    if not held:
        return missing.note(cells, results, caption)
    plt, _ = plots()
    import seaborn as sns

    figure, [axes] = plt.subplots(
        1, len(held), figsize=(WIDTH, 5), squeeze=False, layout="constrained"
    )
    most = max(table.max() for _, (table, _) in held)
    spoken = []
    for axis, (cell, (table, names)) in zip(axes, held, strict=True):
        label = exhibit.methods[cell.keys["method"]].label
        sns.heatmap(
            table,
            ax=axis,
            vmin=0,
            vmax=most,
            cmap="YlOrBr",
            xticklabels=names,
            yticklabels=[str(i) if i % 5 == 0 or i == 1 else "" for i in range(1, len(table) + 1)],
            cbar=axis is axes[-1],
            cbar_kws={"label": "of the layer's attention, %"},
        )
        axis.set_title(label)
        axis.set_ylabel("layer" if axis is axes[0] else "")
        axis.tick_params(rotation=0)
        means = ", ".join(f"{n} {v:.2f}" for n, v in zip(names, table.mean(0), strict=True))
        spoken.append(f"{label}, % over all layers: {means}")
    told = _told(caption, [(cell, results.lines(cell)) for cell, _ in held])
    return Picture(figure, "Heat maps by layer. " + "; ".join(spoken) + ".", told, name)


def _told(caption: str, held: Sequence[tuple[Cell, Sequence[Line]]]) -> str:
    """The caption, and of how many questions the means are."""
    counts = sorted({len(lines) for _, lines in held})
    many = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
    return f"{caption}; means of {many} questions" if caption else ""
