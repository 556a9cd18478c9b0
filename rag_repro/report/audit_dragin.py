"""DRAGIN's printed values against its sentences; scores in percent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import product

from .audit import (
    AGREES,
    COINCIDES,
    DIFFERS,
    OPEN,
    Printed,
    Worked,
    Working,
    counted,
    data_set,
    many,
    near,
    outcome,
    say,
)

L13, L7, V13 = "llama2-13b-chat", "llama2-7b-chat", "vicuna-13b-v1.5"
SHORT = {L13: "L13B", L7: "L7B", V13: "V13B"}
SETS = ("2wikimultihopqa", "hotpotqa", "strategyqa", "iirc")
WIKI, HOTPOT, _, IIRC = SETS
OTHERS = ("none", "sr", "fl", "fs", "flare")
NAMES = {"none": "wo-RAG", "sr": "SR-RAG", "fl": "FL-RAG", "fs": "FS-RAG", "flare": "FLARE"}
PAIRS = tuple(product(SHORT, SETS))
METRICS = ("em", "f1", "precision")


def _em(printed: Printed, method: str, reader: str, dataset: str) -> Decimal:
    return printed.one("table2", method=method, reader=reader, dataset=dataset, metric="em")


def _place(pair: Sequence[str]) -> str:
    return f"{SHORT[pair[0]]} {data_set(pair[1])}"


def _table5(printed: Printed) -> Worked:
    at = {m: printed.one("table5", threshold="0.6", metric=m) for m in ("em", "f1")}
    two = {
        d: {m: printed.one("table2", method="dragin", reader=L13, dataset=d, metric=m) for m in at}
        for d in (WIKI, HOTPOT)
    }
    theta = printed.one("table9", reader=L13, dataset=WIKI, metric="threshold")
    alike = [data_set(d) for d, values in two.items() if values == at]
    working = (
        f"EM and F1 at θ = 0.6, {many(at.values(), sign=False)}, equal table 2's for "
        f"{' and '.join(alike) or 'neither'}; for HotpotQA that has "
        f"{many(two[HOTPOT].values(), sign=False)}. Table 9 gives θ = {theta} for "
        f"{data_set(WIKI)}."
    )
    return working, AGREES if data_set(HOTPOT) in alike else COINCIDES if alike else OPEN


def _threshold(printed: Printed) -> Worked:
    ems = [Decimal(row["value"]) for row in printed.rows("table5", metric="em")]
    apart = max(ems) - min(ems)
    working = (
        f"EM from {say(min(ems), 1)} to {say(max(ems), 1)}, {say(apart, 1)} points over "
        f"{len(ems)} thresholds, {say(apart * 10, 0)} of 1,000 questions."
    )
    return working, AGREES if apart < 2 else DIFFERS


def _table4(printed: Printed) -> Worked:
    told, alike = [], 0
    for reader, method in product((L13, V13), ("fl", "fs", "flare")):
        pairs = [
            (
                printed.one("table4", method=method, reader=reader, metric=m),
                printed.one("table2", method=method, reader=reader, dataset=IIRC, metric=m),
            )
            for m in ("em", "f1")
        ]
        same = all(near(a, b, 1) for a, b in pairs)
        alike += same and method == "fl"
        told.append(f"{SHORT[reader]} {NAMES[method]} {'the same' if same else 'other'} values")
    working = f"Against table 2 on IIRC: {'; '.join(told)}."
    return working, COINCIDES if alike == 2 else OPEN


def _last_sentence(printed: Printed) -> Worked:
    gains = {
        r: _em(printed, "dragin", r, IIRC)
        - printed.one("table4", method="dragin", reader=r, metric="em")
        for r in (L13, V13)
    }
    working = (
        "EM on IIRC with QFS less with the last sentence: "
        + ", ".join(f"{SHORT[r]} {say(g, 2, True)}" for r, g in gains.items())
        + "."
    )
    return working, outcome(sum(g > 0 for g in gains.values()), len(gains))


def _two_flares(printed: Printed) -> Worked:
    pairs = [
        (
            printed.one("table2", method="flare", reader=L13, dataset=IIRC, metric=m),
            printed.one("table4", method="flare", reader=L13, metric=m),
        )
        for m in ("em", "f1")
    ]
    working = (
        f"L13B on IIRC, own query and last sentence: EM {many(pairs[0], sign=False)}, F1 "
        f"{many(pairs[1], sign=False)}."
    )
    return working, AGREES if all(a != b for a, b in pairs) else COINCIDES


def _duplicate(printed: Printed) -> Worked:
    held: dict[tuple, list[str]] = {}
    for method, (reader, dataset) in product((*OTHERS, "dragin"), PAIRS):
        rows = printed.rows("table2", method=method, reader=reader, dataset=dataset)
        values = tuple(row["value"] for row in rows)
        if len(values) > 1:
            place = f"{SHORT[reader]} {NAMES.get(method, 'DRAGIN')}"
            held.setdefault((method, dataset, values), []).append(place)
    odd = [
        f"{data_set(dataset)}: {' and '.join(who)}, EM and F1 "
        f"{many(map(Decimal, values), sign=False)}"
        for (_, dataset, values), who in held.items()
        if len(who) > 1
    ]
    working = f"The same EM and F1 for two readers: {'; '.join(odd) or 'none'}."
    return working, COINCIDES if odd else AGREES


def _precision(printed: Printed) -> Worked:
    six = printed.one("table6", method="qfs", reader=L13, metric="precision")
    seven = printed.one("table7", method="bm25", dataset=HOTPOT, metric="precision")
    working = f"Precision {say(six)} and {say(seven)}."
    return working, AGREES if near(six, seven, 1) else DIFFERS


def _all_tasks(printed: Printed) -> Worked:
    lost = []
    for pair in PAIRS:
        best = max(OTHERS, key=lambda m, pair=pair: _em(printed, m, *pair))
        ours, theirs = _em(printed, "dragin", *pair), _em(printed, best, *pair)
        if ours <= theirs:
            lost.append(f"{_place(pair)} ({NAMES[best]} {say(theirs, 1)}, {say(ours, 1)})")
    told, fares = counted(lost, len(PAIRS), "pairs of reader and data set")
    return f"By EM best in {told}", fares


def _single(printed: Printed) -> Worked:
    lost = [
        f"{_place(pair)} {say(_em(printed, 'none', *pair), 1)} to "
        f"{say(_em(printed, 'sr', *pair), 1)}"
        for pair in PAIRS
        if _em(printed, "sr", *pair) <= _em(printed, "none", *pair)
    ]
    told, fares = counted(lost, len(PAIRS), "pairs")
    return f"In {told}", fares


def _searches(printed: Printed, method: str, pair: Sequence[str]) -> Decimal:
    return printed.one("table3", method=method, reader=pair[0], dataset=pair[1])


def _fewest(printed: Printed) -> Worked:
    dynamic = ("fl", "fs", "flare", "dragin")
    lost = []
    for pair in PAIRS:
        counts = {m: _searches(printed, m, pair) for m in dynamic}
        if counts["flare"] > min(counts.values()):
            most = " (the most)" if counts["flare"] == max(counts.values()) else ""
            lost.append(f"{_place(pair)} {counts['flare']}{most}, least {min(counts.values())}")
    told, fares = counted(lost, len(PAIRS), "pairs")
    return f"In {told}", fares


def _fewer(printed: Printed) -> Worked:
    lost = {
        m: [p for p in PAIRS if _searches(printed, "dragin", p) >= _searches(printed, m, p)]
        for m in ("fs", "fl")
    }
    told = [
        f"than {NAMES[m]} in {len(PAIRS) - len(pairs)} of {len(PAIRS)} (not "
        f"{', '.join(map(_place, pairs)) or 'none'})"
        for m, pairs in lost.items()
    ]
    held = sum(len(PAIRS) - len(pairs) for pairs in lost.values())
    working = f"Fewer {'; '.join(told)}."
    return working, outcome(held, 2 * len(PAIRS))


def _second_query(printed: Printed) -> Worked:
    rivals = {"full_context": "full context", "last_sentence": "FS-RAG", "last_tokens": "FL-RAG"}
    places, lost = list(product((L13, V13), METRICS, rivals)), []
    for reader, metric, rival in places:
        ours, theirs = (
            printed.one("table6", method=m, reader=reader, metric=metric)
            for m in ("masked_sentence", rival)
        )
        if ours <= theirs:
            said = f"{rivals[rival]} {say(theirs)}, FLARE {say(ours)}"
            lost.append(f"{SHORT[reader]} {metric}: {said}")
    told, fares = counted(lost, len(places), "comparisons")
    return f"Above the others in {told}", fares


def _configurations(printed: Printed) -> Worked:
    states = sorted({row["state"] for row in printed.rows("configurations")})
    odd = []
    for reader, dataset in PAIRS:
        keys = {"reader": reader, "dataset": dataset, "metric": "threshold"}
        ours = printed.one("table9", **keys)
        shipped = [printed.one("configurations", state=state, **keys) for state in states]
        if ours not in shipped:
            odd.append(f"{_place((reader, dataset))} {ours}, shipped {many(shipped, 2, False)}")
    working = (
        f"θ is in the released code's first or last state in {len(PAIRS) - len(odd)} of "
        f"{len(PAIRS)} settings. In neither: {'; '.join(odd) or 'none'}."
    )
    return working, outcome(len(PAIRS) - len(odd), len(PAIRS))


WORKINGS: Mapping[str, Working] = {
    "table5": _table5,
    "threshold": _threshold,
    "table4": _table4,
    "last_sentence": _last_sentence,
    "two_flares": _two_flares,
    "duplicate": _duplicate,
    "precision": _precision,
    "all_tasks": _all_tasks,
    "single": _single,
    "fewest": _fewest,
    "fewer": _fewer,
    "second_query": _second_query,
    "configurations": _configurations,
}
