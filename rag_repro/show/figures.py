"""Figures drawn from the columns of a table: forest, curve, frontier, bars, heat.

Each takes entries and columns, and gives a figure with its alt text and its CSV; where no entry
has a value, a sentence on how to run them. A method has one colour and one marker in the whole
book (`method_styles`), and its name stands beside its mark wherever there is room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from rag_repro.data.titles import word
from rag_repro.evaluation import metrics
from rag_repro.evaluation.intervals import Interval
from rag_repro.show.columns import Column, Entry, how_to_run, key, label
from rag_repro.show.picture import (
    MARKERS,
    Download,
    Note,
    Picture,
    across,
    legend,
    legend_of_labels,
    plots,
    whiskers,
)
from rag_repro.show.values import number

TITLES = 90  # characters of all panels' titles side by side; longer ones take several lines

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "one search": ("sm", "sr", "rag", "single", "search", "single_step", "bm25", "outside"),
    "DR-RAG": ("cfs", "dr_rag", "drrag", "qdc"),
    "ERM4": ("full", "erm4", "plus", "memory"),
    "no retrieval": ("none", "direct", "closed"),
    "DRAGIN": ("dragin", "rind", "qfs"),
    "R²AG": ("r2ag",),
    "FLARE": ("flare",),
    "controls": ("random", "free", "chance"),
}
"""Rows that are one method under several names, in the order of the palette."""

MANY = 12  # values along an axis that are told one by one

Value = Interval | float


@dataclass(frozen=True)
class Mark:
    """An entry with what is drawn of it."""

    entry: Entry
    values: Mapping[str, Value]

    def at(self, name: str) -> float:
        value = self.values[name]
        return value.estimate if isinstance(value, Interval) else value


def method_styles(methods: Sequence[str]) -> dict[str, tuple[Any, str]]:
    """Method's key -> colour and marker: its family's, or, of others, one that none of them has."""
    _, colours = plots()
    family = {name: i for i, names in enumerate(FAMILIES.values()) for name in names}
    taken = {family[m] for m in methods if m in family}
    free = [i for i in range(len(colours)) if i not in taken]
    seen: set[int] = set()
    made = {}
    for method in dict.fromkeys(methods):
        place = family.get(method)
        if place is None or place in seen:
            place = free.pop(0) if free else len(made) % len(colours)
        seen.add(place)
        made[method] = colours[place], MARKERS[place % len(MARKERS)]
    return made


def forest(
    shown: Sequence[Entry],
    column: Column,
    *,
    printed: Column | None = None,
    rows: Sequence[str] = ("dataset",),
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """A line an entry: an interval around its dot, the paper's number as a diamond.

    rows: the keys that name a line, "method" in words.
    """
    marks = _marks(shown, {"ours": column})
    if not marks:
        return how_to_run(shown, caption)
    plt, colours = plots()
    figure, axis = plt.subplots(figsize=(across(), 0.34 * len(marks) + 1.2), layout="constrained")
    told = [_named(mark.entry, rows) for mark in marks]
    theirs = [printed and printed.read(mark.entry) for mark in marks]
    for place, (mark, value) in enumerate(zip(marks, theirs, strict=True)):
        look = {"color": colours[0], "marker": "o", "ms": 5, "capsize": 3}
        axis.errorbar(mark.at("ours"), place, xerr=_arms([mark], "ours"), **look)
        if value is not None:
            axis.plot(value, place, marker="D", ms=6, mfc="none", mec=colours[1], ls="")
    axis.axvline(0, color="0.2", lw=1)
    axis.set_yticks(range(len(told)), told)
    axis.invert_yaxis()
    axis.set_xlabel(_unit(column))
    said = [f"{row}: {_said(m.values['ours'])}" for row, m in zip(told, marks, strict=True)]
    data = _data(name, ["row", "paper"], [[r, v] for r, v in zip(told, theirs, strict=True)], marks)
    return Picture(figure, f"Differences. {'; '.join(said)}.", caption, name, data)


def curve(
    shown: Sequence[Entry],
    x: str | Column,
    y: Mapping[str, Column],
    *,
    panel: str | Column = "dataset",
    reference: float | None = None,
    log: bool = False,
    log_x: bool = False,
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """A panel a data set, a line a method and measure along a key or a column of the cells.

    x: the key that is varied, as "k" or "threshold", or a column, as mean("retrievals"). y: what
    is drawn, by name; of several each has a line style of its own. reference: a value that all
    panels show as a dashed line, as the paper's. log: a logarithmic y axis; log_x: x. panel: a key,
    or a column whose text is a panel's title.
    """
    along = Column(lambda e: e.keys.get(x), False, x) if isinstance(x, str) else x
    marks = _marks(shown, {"x": along, **y}, needed=("x",))
    marks = [mark for mark in marks if len(mark.values) > 1]
    if not marks:
        return how_to_run(shown, caption)
    if len({mark.at("x") for mark in marks}) == 1:
        return Note(f"{caption}: not drawn, since {along.unit} is the same in every record.")
    by = key(panel) if isinstance(panel, str) else panel
    panels = list(dict.fromkeys(by.text(mark.entry) for mark in marks))
    methods = list(dict.fromkeys(mark.entry.keys["method"] for mark in marks))
    look = method_styles(methods)
    figure, axes = _panels(len(panels), 3.4)
    styles = dict(zip(y, ("-", "--", ":", "-."), strict=False))
    for axis, title in zip(axes, panels, strict=True):
        for method in methods:
            held = [
                m for m in marks if (by.text(m.entry), m.entry.keys["method"]) == (title, method)
            ]
            colour, marker = look[method]
            for measure, style in styles.items():
                line = sorted((m for m in held if measure in m.values), key=lambda m: m.at("x"))
                if line:
                    axis.errorbar(
                        [m.at("x") for m in line], [m.at(measure) for m in line],
                        yerr=_arms(line, measure), color=colour, marker=marker, ls=style, ms=5,
                        capsize=2,
                    )  # fmt: skip
        if reference is not None:
            axis.axhline(reference, color="0.5", lw=1, ls=(0, (5, 3)))
        axis.set_title(fill(title, TITLES // len(panels)))
        if log_x:
            axis.set_xscale("log")
        axis.set_xlabel(_unit(along))
    axes[0].set_ylabel(_unit(next(iter(y.values()))))
    if log:
        axes[0].set_yscale("log")
        axes[0].yaxis.set_major_formatter("{x:g}")
    words = {m.entry.keys["method"]: m.entry.method for m in marks}
    legend(figure, [look[m] for m in methods], [words[m] for m in methods],
           [*y] if len(y) > 1 else (), ms=5)  # fmt: skip
    ends = _ends([mark.at("x") for mark in marks])
    said = [
        f"{by.text(m.entry)}, {m.entry.method} at {m.at('x'):g}: "
        + ", ".join(f"{of} {m.at(of):.{max(0, y[of].digits - 1)}f}" for of in y if of in m.values)
        for m in marks
        if m.at("x") in ends
    ]
    where = [[by.text(m.entry), m.entry.method] for m in marks]
    data = _data(name, [by.unit or "panel", "method"], where, marks)
    return Picture(figure, f"Line chart. {'; '.join(said)}.", caption, name, data)


def frontier(
    shown: Sequence[Entry],
    x: Column,
    y: Column,
    *,
    named: Column | None = None,
    printed: tuple[Column, Column] | None = None,
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """Quality (y) against cost (x): a panel a data set, a labelled point an entry.

    printed: the paper's own x and y of an entry, a hollow mark.
    """
    marks = _marks(shown, {"x": x, "y": y}, needed=("x", "y"))
    if not marks:
        return how_to_run(shown, caption)
    if len(marks) > 1 and len({mark.at("x") for mark in marks}) == 1:
        return Note(f"{caption}: not drawn, since {_unit(x)} is the same in every row.")
    said_by = named or label()
    panels = list(dict.fromkeys(mark.entry.keys["dataset"] for mark in marks))
    look = method_styles([mark.entry.keys["method"] for mark in marks])
    first = {mark.entry.keys["method"]: said_by.text(mark.entry) for mark in reversed(marks)}
    figure, axes = _panels(len(panels), 3.6)
    at = dict(zip(panels, axes, strict=True))
    for mark in marks:
        axis = at[mark.entry.keys["dataset"]]
        colour, marker = look[mark.entry.keys["method"]]
        words = said_by.text(mark.entry)
        axis.errorbar(mark.at("x"), mark.at("y"), xerr=_arms([mark], "x"), yerr=_arms([mark], "y"),
                      color=colour, marker=marker, ms=6, capsize=2, lw=0.8, label=words,
                      mfc=None if words in first.values() else "none")  # fmt: skip
        theirs = [column.read(mark.entry) for column in printed or ()]
        if theirs and None not in theirs:
            axis.plot(*theirs, color=colour, marker=marker, ms=8, mfc="none", ls="")
    for title, axis in at.items():
        axis.set_title(fill(word(str(title)), TITLES // len(panels)))
        if len(panels) < 4 or axis is axes[len(panels) // 2]:  # many would run into each other
            axis.set_xlabel(_unit(x))
    axes[0].set_ylabel(_unit(y))
    legend_of_labels(figure)
    where = [[word(str(m.entry.keys["dataset"])), said_by.text(m.entry)] for m in marks]
    said = [
        f"{place}, {method}: {m.at('y'):.0f} at {m.at('x'):.1f}"
        for (place, method), m in zip(where, marks, strict=True)
    ]
    data = _data(name, ["dataset", "method"], where, marks)
    alt = f"{_unit(y)} against {_unit(x)}. {'; '.join(said)}."
    return Picture(figure, alt, caption, name, data)


def bars(
    shown: Sequence[Entry],
    columns: Mapping[str, Column],
    *,
    stacked: bool = False,
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """Groups of horizontal bars: a group an entry, a bar a column.

    stacked: one bar an entry, whose parts are the columns, bare numbers.
    """
    marks = _marks(shown, columns)
    if not marks:
        return how_to_run(shown, caption)
    plt, colours = plots()
    told = [f"{key('dataset').text(m.entry)}, {m.entry.method}" for m in marks]
    thick = 0.8 / (1 if stacked else len(columns))
    size = (across(), 0.3 * len(marks) * max(1, 0.4 / thick) + 1.2)
    ends = [0.0] * len(marks)
    figure, axis = plt.subplots(figsize=size, layout="constrained")
    for i, head in enumerate(columns):
        held = [(place, m) for place, m in enumerate(marks) if head in m.values]
        step = 0 if stacked else (i - (len(columns) - 1) / 2) * thick
        axis.barh([p + step for p, _ in held], [m.at(head) for _, m in held], thick,
                  left=[ends[p] for p, _ in held], label=head, color=colours[i],
                  xerr=_arms([m for _, m in held], head), ecolor="0.3", capsize=2)  # fmt: skip
        if stacked:
            for p, m in held:
                ends[p] += m.at(head)
    axis.set_yticks(range(len(told)), told)
    axis.invert_yaxis()
    axis.set_xlabel(_unit(next(iter(columns.values()))))
    if len(columns) > 1:
        legend_of_labels(figure)
    said = [
        f"{row}: " + ", ".join(f"{head} {m.at(head):.1f}" for head in columns if head in m.values)
        for row, m in zip(told, marks, strict=True)
    ]
    data = _data(name, ["row"], [[row] for row in told], marks)
    return Picture(figure, f"Bars. {'; '.join(said)}.", caption, name, data)


def heat(
    shown: Sequence[Entry],
    x: str,
    y: str,
    column: Column,
    *,
    panel: str | Column = "dataset",
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """A grid a data set: a column's number by two keys that are varied, as "tau" and "theta".

    Of more than `MANY` rows the numbers stand in the CSV alone. panel: as of `curve`.
    """
    marks = _marks(shown, {"value": column})
    marks = [mark for mark in marks if {x, y} <= mark.entry.keys.keys()]
    if not marks:
        return how_to_run(shown, caption)
    by = key(panel) if isinstance(panel, str) else panel
    panels = list(dict.fromkeys(by.text(mark.entry) for mark in marks))
    xs, ys = (sorted({mark.entry.keys[k] for mark in marks}) for k in (x, y))
    spread = [mark.at("value") for mark in marks]
    figure, axes = _panels(len(panels), min(0.5 * len(ys), 5) + 1.6, sharey=False)
    for axis, title in zip(axes, panels, strict=True):
        at = {(m.entry.keys[x], m.entry.keys[y]): m.at("value") for m in marks
              if by.text(m.entry) == title}  # fmt: skip
        grid = [[at.get((i, j), float("nan")) for i in xs] for j in ys]
        axis.imshow(grid, vmin=min(spread), vmax=max(spread), cmap="cividis", aspect="auto")
        middle = (min(spread) + max(spread)) / 2
        for (i, j), value in at.items() if len(ys) <= MANY else ():
            shade = "white" if value < middle else "black"
            axis.text(xs.index(i), ys.index(j), number(value, column.digits), ha="center",
                      va="center", color=shade, fontsize=8)  # fmt: skip
        axis.set_xticks(range(len(xs)), xs)
        step = -(-len(ys) // MANY)
        axis.set_yticks(range(0, len(ys), step), ys[::step])
        axis.grid(False)
        axis.set_title(title)
        axis.set_xlabel(x)
    axes[0].set_ylabel(y)
    where = [[by.text(m.entry), m.entry.keys[x], m.entry.keys[y]] for m in marks]
    ends = _ends(ys)
    said = [f"{p}, {x} {i}, {y} {j}: {m.at('value'):.1f}"
            for (p, i, j), m in zip(where, marks, strict=True) if j in ends]  # fmt: skip
    data = _data(name, [by.unit or "panel", x, y], where, marks)
    return Picture(figure, f"Grid. {'; '.join(said)}.", caption, name, data)


# ------------------------------------------------------------------ what all share


def _marks(
    shown: Sequence[Entry], columns: Mapping[str, Column], needed: Sequence[str] = ()
) -> list[Mark]:
    """Entries that have a value of a measured column, and of all that are needed."""
    made = []
    for entry in shown:
        values = {head: column.read(entry) for head, column in columns.items()}
        values = {head: value for head, value in values.items() if value is not None}
        measured = any(columns[head].measured for head in values)
        if measured and all(head in values for head in needed):
            made.append(Mark(entry, values))
    return made


def _panels(number: int, height: float, sharey: bool = True) -> tuple[Any, Sequence[Any]]:
    """A figure, and its axes side by side; height in inches."""
    plt, _ = plots()
    size = across(number), height
    figure, [axes] = plt.subplots(
        1, number, figsize=size, sharey=sharey, squeeze=False, layout="constrained"
    )
    return figure, axes


def _ends(values: Sequence[Any]) -> set[Any]:
    """Those that an alt text tells: all, or the ends where they are many."""
    every = set(values)
    return every if len(every) <= MANY else {min(every), max(every)}


def _arms(marks: Sequence[Mark], name: str) -> list[list[float]] | None:
    """Error bars of a line; None where its values are bare numbers."""
    values = [mark.values[name] for mark in marks]
    return whiskers(values) if all(isinstance(value, Interval) for value in values) else None


def _named(entry: Entry, rows: Sequence[str]) -> str:
    told = [entry.method if row == "method" else key(row).text(entry) for row in rows]
    return ", ".join(
        f"{row} = {value}" if value.replace(".", "").isdigit() else value
        for row, value in zip(rows, told, strict=True)
        if value
    )


def _unit(column: Column) -> str:
    """A metric's symbol and unit for an axis, as "EM, points" of a difference."""
    if column.unit not in metrics.METRICS:
        return column.unit
    known = metrics.get(column.unit)
    unit = "%" if known.unit == "percent" else known.unit
    unit = "points" if column.sign and unit == "%" else unit
    return known.symbol if unit == known.symbol.lower() else f"{known.symbol}, {unit}"


def _said(value: Value) -> str:
    if isinstance(value, Interval):
        return f"{value.estimate:+.1f}, from {value.lo:+.1f} to {value.hi:+.1f}"
    return f"{value:+.1f}"


def _data(
    name: str, head: Sequence[str], where: Sequence[Sequence[Any]], marks: Sequence[Mark]
) -> Download | None:
    """What is drawn as CSV: estimate, bounds and n of each value."""
    drawn = list(dict.fromkeys(of for mark in marks for of in mark.values))
    told = [column for of in drawn for column in (of, f"{of}, low", f"{of}, high", f"{of}, n")]
    body = []
    for place, mark in zip(where, marks, strict=True):
        cells: list[Any] = []
        for of in drawn:
            value = mark.values.get(of)
            if isinstance(value, Interval):
                cells += [number(v) for v in (value.estimate, value.lo, value.hi)] + [value.n]
            else:
                cells += ["" if value is None else value, "", "", ""]
        body.append([*place, *cells])
    return Download.from_rows(name, [*head, *told], body)
