"""DR-RAG's printed values against its sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache, partial
from itertools import product

from .arithmetic import sizes
from .audit import (
    AGREES,
    COINCIDES,
    DIFFERS,
    IN_PART,
    OPEN,
    Printed,
    Worked,
    Working,
    data_set,
    many,
    mean,
    near,
    outcome,
    say,
)

SETS = ("musique", "hotpotqa", "2wikimultihopqa")
KS = ("3", "4", "6")
SCORES = ("em", "f1", "acc")
READERS = ("gpt-3.5-turbo", "llama3-8b")
LLAMA = "llama3-8b"
WIKI = "2wikimultihopqa"


def _two(printed: Printed, method: str, metric: str, dataset: str) -> Decimal:
    return printed.one("table2", method=method, metric=metric, dataset=dataset)


def _three(printed: Printed, method: str, metric: str, dataset: str, **keys: str) -> Decimal:
    return printed.one("table3", method=method, metric=metric, dataset=dataset, **keys)


def _over_k(printed: Printed, metric: str, dataset: str) -> Decimal:
    return printed.mean("table3", method="cfs", reader=LLAMA, metric=metric, dataset=dataset)


def _row_of_table2(printed: Printed) -> Worked:
    cells = list(product(SETS, SCORES))
    odd = [
        (d, m) for d, m in cells if not near(_two(printed, "dr_rag", m, d), _over_k(printed, m, d))
    ]
    told = "; ".join(
        f"{data_set(d)} {m.upper()}: {say(_over_k(printed, m, d))}, printed "
        f"{say(_two(printed, 'dr_rag', m, d))}"
        for d, m in odd
    )
    working = (
        f"Means over k of table 3's CFS with Llama3-8B equal it in {len(cells) - len(odd)} of "
        f"{len(cells)} cells. Not in: {told or 'none'}."
    )
    return working, COINCIDES if len(odd) < len(cells) / 2 else OPEN


def _adaptive(printed: Printed) -> Worked:
    cells = list(product(SETS, SCORES))
    odd = [
        f"{data_set(d)} {m.upper()} {say(_two(printed, 'adaptive_rag', m, d))} and "
        f"{say(_three(printed, 'adaptive_rag', m, d))}"
        for d, m in cells
        if _two(printed, "adaptive_rag", m, d) != _three(printed, "adaptive_rag", m, d)
    ]
    working = (
        f"The same numbers in {len(cells) - len(odd)} of {len(cells)} cells; differing: "
        f"{'; '.join(odd) or 'none'}. Table 2's rows of baselines were found to coincide with the "
        "table of the Adaptive-RAG paper (Jeong et al., 2024) for FLAN-T5-XL; that table is not "
        "at hand, so this is not verified here."
    )
    return working, COINCIDES if len(odd) < len(cells) / 2 else OPEN


def _contributions(printed: Printed) -> Worked:
    stated = {"acc": "6.17", "em": "7.34", "f1": "9.36"}
    gains = {
        m: mean(_two(printed, "dr_rag", m, d) - _two(printed, "adaptive_rag", m, d) for d in SETS)
        for m in SCORES
    }
    at3 = _three(printed, "adaptive_rag", "acc", WIKI) - _two(printed, "adaptive_rag", "acc", WIKI)
    mended = _over_k(printed, "f1", WIKI) - _two(printed, "dr_rag", "f1", WIKI)
    others = {"Acc": gains["acc"] - at3 / len(SETS), "F1": gains["f1"] + mended / len(SETS)}
    right = sum(near(gains[m], stated[m]) for m in SCORES)
    found = [
        value
        for value in stated.values()
        if not any(near(g, value) for g in (*gains.values(), *others.values()))
    ]
    working = (
        "Mean gains over Adaptive-RAG in table 2: "
        + ", ".join(f"{m.upper()} {say(g)}" for m, g in gains.items())
        + f"; Acc {say(others['Acc'])} with table 3's value of 2WikiMultihopQA, F1 "
        f"{say(others['F1'])} with the mean over k in place of the printed one. "
        f"None of these is {', '.join(found) or 'missing'}."
    )
    return working, outcome(right, len(SCORES))


def _recall_of(printed: Printed, method: str, k=KS, dataset=SETS) -> Decimal:
    return printed.mean("table5", method=method, metric="recall", k=k, dataset=dataset)


def _recall(printed: Printed) -> Worked:
    level = _recall_of(printed, "cfs")
    gains = [level - _recall_of(printed, m) for m in ("sm", "bm25")]
    working = (
        f"Mean recall of CFS over table 5's nine cells: {say(level, 3)}, a level. Its gain is "
        f"{say(gains[0])} over SM and {say(gains[1])} over BM25."
    )
    return working, AGREES if any(near(g, "86.75") for g in gains) else DIFFERS


def _recall_gains(printed: Printed) -> Worked:
    level = _recall_of(printed, "cfs")
    gains = {m: level - _recall_of(printed, m) for m in ("bm25", "sm")}
    stated = {"bm25": "26.4", "sm": "8.6"}
    working = f"Mean over nine cells: {many(gains.values())}."
    return working, outcome(sum(near(gains[m], stated[m], 1) for m in gains), len(gains))


def _time(printed: Printed) -> Worked:
    saved = [
        100 - 100 * _two(printed, "dr_rag", "time", d) / _two(printed, "adaptive_rag", "time", d)
        for d in SETS
    ]
    working = (
        f"By data set {many(saved, 1, sign=False)}; mean {say(mean(saved))}. Of whole answers, "
        "not of retrieval; each time is relative to a single-step of its own source."
    )
    return working, AGREES if abs(mean(saved) - Decimal("74.2")) < Decimal("0.1") else DIFFERS


def _selection(printed: Printed) -> Worked:
    stated = {"cis": "2.3", "cfs": "4.7"}
    gains = {
        (m, r): printed.mean("table3", method=m, metric="acc", reader=r)
        - printed.mean("table3", method="qdc", metric="acc", reader=r)
        for m, r in product(stated, READERS)
    }
    fits = {r: all(near(gains[m, r], stated[m], 1) for m in stated) for r in READERS}
    working = (
        "; ".join(f"{r}: {say(gains['cis', r])} and {say(gains['cfs', r])}" for r in READERS)
        + "; both readers: "
        + " and ".join(say(mean(gains[m, r] for r in READERS)) for m in stated)
        + "."
    )
    return working, outcome(sum(fits.values()), len(fits))


def _without_qdc(printed: Printed) -> Worked:
    stated = {"cis": "1.1", "cfs": "0.7"}
    falls = {
        m: mean(
            printed.one("table4", method=m, qdc="with", k=k, metric="acc")
            - printed.one("table4", method=m, qdc="without", k=k, metric="acc")
            for k in KS
        )
        for m in stated
    }
    swapped = near(falls["cis"], "0.7", 1) and near(falls["cfs"], "1.1", 1)
    in_order = all(near(falls[m], stated[m], 1) for m in stated)
    working = f"Mean falls: CIS {say(falls['cis'])}, CFS {say(falls['cfs'])}."
    return working, AGREES if in_order else IN_PART if swapped else DIFFERS


def _concatenation(printed: Printed) -> Worked:
    def gain(k):
        return _recall_of(printed, "qdc", k) - _recall_of(printed, "sm", k)

    working = (
        f"At k = 4 and 6 the mean gain is {say(gain(('4', '6')))}, over all k {say(gain(KS))}."
    )
    return working, AGREES if near(gain(("4", "6")), "3.84") else DIFFERS


def _f1_below_em(printed: Printed) -> Worked:
    held = {}
    for row in printed.rows("table3", metric=("em", "f1")):
        place = tuple(row[k] for k in ("method", "reader", "k", "dataset"))
        held.setdefault(place, {})[row["metric"]] = Decimal(row["value"])
    odd = [
        f"{data_set(place[3])}, {place[1]}, k = {place[2]}, {place[0].upper()}: EM {say(v['em'])}, "
        f"F1 {say(v['f1'])}"
        for place, v in held.items()
        if v["f1"] < v["em"]
    ]
    working = f"{len(odd)} of {len(held)} cells: {'; '.join(odd) or 'none'}."
    return working, DIFFERS if odd else AGREES


def _better(printed: Printed, than: Sequence[str] = ()) -> Worked:
    """than: none for every other method of table 2."""
    rows = printed.rows("table2", metric=SCORES)
    methods = than or sorted({row["method"] for row in rows} - {"dr_rag"})
    ties, lost = [], []
    for method, d, m in product(methods, SETS, SCORES):
        ours, theirs = _two(printed, "dr_rag", m, d), _two(printed, method, m, d)
        said = f"{method.replace('_', '-')}, {data_set(d)} {m.upper()} {say(theirs)}, {say(ours)}"
        if ours <= theirs:
            (ties if ours == theirs else lost).append(said)
    of = len(methods) * len(SETS) * len(SCORES)
    told = "; ".join(filter(None, ["; ".join(lost), ties and f"alike {'; '.join(ties)}"]))
    working = f"Higher in {of - len(lost) - len(ties)} of {of} comparisons. {told or 'No other'}."
    return working, outcome(of - len(lost) - len(ties), of)


@lru_cache(maxsize=32)  # tables and the ledger of one page ask for the same
def _common(values: tuple[str, ...]) -> list[int]:
    """The numbers of questions of which all these percentages can be shares."""
    return sizes(values, range(1, 6401))


def _sizes(printed: Printed) -> Worked:
    told, common = [], 0
    for reader, dataset in product(READERS, SETS):
        values = [
            row["value"]
            for row in printed.rows("table3", reader=reader, dataset=dataset)
            if row["metric"] != "f1"
        ]
        found = _common(tuple(values))
        common += any(2185 <= n <= 2415 for n in found)
        least = f"{found[0]:,}" if found else "none"
        told.append(f"{reader}, {data_set(dataset)} {least}")
    working = (
        "Smallest number of questions up to 6,400 of which all of table 3's EM and Acc can be "
        f"shares: {'; '.join(told)}. A number within 5 % of 2,300 fits {common} of {len(told)}."
    )
    return working, outcome(common, len(told))


def _inverse(printed: Printed) -> Worked:
    below = [
        (d, k, _recall_of(printed, "cis", k, d), _recall_of(printed, "sm", k, d))
        for d, k in product(SETS, KS)
    ]
    lost = [f"{data_set(d)}, k = {k}: {say(a)} below {say(b)}" for d, k, a, b in below if a < b]
    alike = [f"{data_set(d)}, k = {k}: {say(a)}" for d, k, a, b in below if a == b]
    working = (
        f"Recall below SM's: {'; '.join(lost) or 'none'}. The same: {'; '.join(alike) or 'none'}."
    )
    return working, IN_PART if lost else AGREES


def _readers(printed: Printed) -> Worked:
    stated = dict(zip(SCORES, ("9.07", "10.63", "12.73"), strict=True))
    gains = {
        m: printed.mean("table7", reader="gpt-4-turbo", metric=m)
        - printed.mean("table7", reader="gpt-3.5-turbo", metric=m)
        for m in SCORES
    }
    working = f"Mean over k: {many(gains.values())}."
    return working, outcome(sum(near(gains[m], stated[m]) for m in SCORES), len(SCORES))


def _classifiers(printed: Printed) -> Worked:
    spreads = []
    for k, m in product(KS, SCORES):
        held = [Decimal(row["value"]) for row in printed.rows("table6", k=k, metric=m)]
        spreads.append(max(held) - min(held))
    working = f"Spreads of EM, F1, Acc for k = {', '.join(KS)}: {many(spreads, sign=False)}."
    return working, outcome(sum(s < 2 for s in spreads), len(spreads))


def _more_passages(printed: Printed) -> Worked:
    low, high = (_recall_of(printed, "sm", k, "musique") for k in ("3", "6"))
    working = f"{say(low)} and {say(high)}."
    return working, outcome(sum((int(low) == 58, int(high) == 76)), 2)


WORKINGS: Mapping[str, Working] = {
    "row_of_table2": _row_of_table2,
    "adaptive": _adaptive,
    "contributions": _contributions,
    "recall": _recall,
    "recall_gains": _recall_gains,
    "time": _time,
    "selection": _selection,
    "without_qdc": _without_qdc,
    "concatenation": _concatenation,
    "f1_below_em": _f1_below_em,
    "better_than_two": partial(_better, than=("self_rag", "adaptive_rag")),
    "better_than_all": _better,
    "sizes": _sizes,
    "inverse": _inverse,
    "readers": _readers,
    "classifiers": _classifiers,
    "more_passages": _more_passages,
}
