"""DRAGIN's printed values against its sentences; scores in percent."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import product

from .audit import (
    AGREES,
    COINCIDES,
    DIFFERS,
    IN_PART,
    OPEN,
    Finding,
    Printed,
    Reading,
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

READINGS = (
    Reading(
        "appendix A, table 8",
        "eight exemplars for StrategyQA",
        "appendix F, prompts 5 and 6",
        "show six of them before the question that is asked",
    ),
    Reading(
        "appendix A",
        "cites Wei et al. (2023) for StrategyQA's exemplars",
        "section 4.2",
        "cites Wei et al. (2022)",
    ),
    Reading(
        "appendix C",
        "a query of six words",
        "table 9",
        "words of a query are 25 or more in every setting",
        ("dragin.c40",),
    ),
    Reading(
        "appendix C",
        "the context from which words are chosen has a mark for the end of a text before Answer",
        "appendix F",
        "the prompts have no such mark",
        ("dragin.c40",),
    ),
    Reading(
        "table 8",
        "lists recall among the metrics of three data sets",
        "tables 2 to 7",
        "none prints a recall",
    ),
    Reading(
        "abstract",
        "superior on all tasks",
        "section 5.1",
        "superior across most readers and data sets",
        ("dragin.c01", "dragin.c02"),
    ),
)


def findings(printed: Printed) -> list[Finding]:
    return [
        _table5(printed),
        _threshold(printed),
        _table4(printed),
        _last_sentence(printed),
        _two_flares(printed),
        _duplicate(printed),
        _precision(printed),
        _all_tasks(printed),
        _single(printed),
        _fewest(printed),
        _fewer(printed),
        _second_query(printed),
        _configurations(printed),
    ]


def _em(printed: Printed, method: str, reader: str, dataset: str) -> Decimal:
    return printed.one("table2", method=method, reader=reader, dataset=dataset, metric="em")


def _place(pair: Sequence[str]) -> str:
    return f"{SHORT[pair[0]]} {data_set(pair[1])}"


def _table5(printed: Printed) -> Finding:
    at = {m: printed.one("table5", threshold="0.6", metric=m) for m in ("em", "f1")}
    two = {
        d: {m: printed.one("table2", method="dragin", reader=L13, dataset=d, metric=m) for m in at}
        for d in (WIKI, HOTPOT)
    }
    theta = printed.one("table9", reader=L13, dataset=WIKI, metric="threshold")
    alike = [data_set(d) for d, values in two.items() if values == at]
    return Finding(
        "table 5",
        "thresholds compared on HotpotQA",
        f"EM and F1 at θ = 0.6, {many(at.values(), sign=False)}, equal table 2's for "
        f"{' and '.join(alike) or 'neither'}; for HotpotQA that has "
        f"{many(two[HOTPOT].values(), sign=False)}. Table 9 gives θ = {theta} for "
        f"{data_set(WIKI)}.",
        AGREES if data_set(HOTPOT) in alike else COINCIDES if alike else OPEN,
        ("dragin.c18",),
        "the name of the data set in that run",
    )


def _threshold(printed: Printed) -> Finding:
    ems = [Decimal(row["value"]) for row in printed.rows("table5", metric="em")]
    apart = max(ems) - min(ems)
    return Finding(
        "section 5.3",
        "results stay stable across thresholds",
        f"EM from {say(min(ems), 1)} to {say(max(ems), 1)}, {say(apart, 1)} points over "
        f"{len(ems)} thresholds, {say(apart * 10, 0)} of 1,000 questions.",
        AGREES if apart < 2 else DIFFERS,
        ("dragin.c18",),
    )


def _table4(printed: Printed) -> Finding:
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
    return Finding(
        "table 4",
        "the last sentence is the query of all methods; in table 2 FL-RAG's is the last tokens",
        f"Against table 2 on IIRC: {'; '.join(told)}.",
        COINCIDES if alike == 2 else OPEN,
        ("dragin.c16",),
        "the queries that were sent. FS-RAG's query is the same in both by definition",
    )


def _last_sentence(printed: Printed) -> Finding:
    gains = {
        r: _em(printed, "dragin", r, IIRC)
        - printed.one("table4", method="dragin", reader=r, metric="em")
        for r in (L13, V13)
    }
    return Finding(
        "tables 2 and 4",
        "QFS makes better queries than the last sentence",
        "EM on IIRC with QFS less with the last sentence: "
        + ", ".join(f"{SHORT[r]} {say(g, 2, True)}" for r, g in gains.items())
        + ".",
        outcome(sum(g > 0 for g in gains.values()), len(gains)),
        ("dragin.c21", "dragin.c22"),
    )


def _two_flares(printed: Printed) -> Finding:
    pairs = [
        (
            printed.one("table2", method="flare", reader=L13, dataset=IIRC, metric=m),
            printed.one("table4", method="flare", reader=L13, metric=m),
        )
        for m in ("em", "f1")
    ]
    return Finding(
        "tables 2 and 4",
        "FLARE differs between them by its query alone",
        f"L13B on IIRC, own query and last sentence: EM {many(pairs[0], sign=False)}, F1 "
        f"{many(pairs[1], sign=False)}.",
        AGREES if all(a != b for a, b in pairs) else COINCIDES,
        ("dragin.c09",),
    )


def _duplicate(printed: Printed) -> Finding:
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
    return Finding(
        "table 2",
        "different readers",
        f"The same EM and F1 for two readers: {'; '.join(odd) or 'none'}.",
        COINCIDES if odd else AGREES,
        ("dragin.c04",),
        "the answers of either run",
    )


def _precision(printed: Printed) -> Finding:
    six = printed.one("table6", method="qfs", reader=L13, metric="precision")
    seven = printed.one("table7", method="bm25", dataset=HOTPOT, metric="precision")
    return Finding(
        "tables 6 and 7",
        "both hold DRAGIN with BM25 on HotpotQA, L13B",
        f"Precision {say(six)} and {say(seven)}.",
        AGREES if near(six, seven, 1) else DIFFERS,
    )


def _all_tasks(printed: Printed) -> Finding:
    lost = []
    for pair in PAIRS:
        best = max(OTHERS, key=lambda m, pair=pair: _em(printed, m, *pair))
        ours, theirs = _em(printed, "dragin", *pair), _em(printed, best, *pair)
        if ours <= theirs:
            lost.append(f"{_place(pair)} ({NAMES[best]} {say(theirs, 1)}, {say(ours, 1)})")
    return Finding(
        "abstract; section 1",
        "superior on all tasks",
        f"By EM best in {len(PAIRS) - len(lost)} of {len(PAIRS)} pairs of reader and data set. "
        f"Not: {'; '.join(lost) or 'none'}.",
        outcome(len(PAIRS) - len(lost), len(PAIRS)),
        ("dragin.c01", "dragin.c02"),
    )


def _single(printed: Printed) -> Finding:
    lost = [
        f"{_place(pair)} {say(_em(printed, 'none', *pair), 1)} to "
        f"{say(_em(printed, 'sr', *pair), 1)}"
        for pair in PAIRS
        if _em(printed, "sr", *pair) <= _em(printed, "none", *pair)
    ]
    return Finding(
        "section 5.1",
        "one retrieval consistently improves on direct answers across all data sets",
        f"In {len(PAIRS) - len(lost)} of {len(PAIRS)} pairs. Not: {'; '.join(lost) or 'none'}.",
        outcome(len(PAIRS) - len(lost), len(PAIRS)),
        ("dragin.c05",),
    )


def _searches(printed: Printed, method: str, pair: Sequence[str]) -> Decimal:
    return printed.one("table3", method=method, reader=pair[0], dataset=pair[1])


def _fewest(printed: Printed) -> Finding:
    dynamic = ("fl", "fs", "flare", "dragin")
    lost = []
    for pair in PAIRS:
        counts = {m: _searches(printed, m, pair) for m in dynamic}
        if counts["flare"] > min(counts.values()):
            most = " (the most)" if counts["flare"] == max(counts.values()) else ""
            lost.append(f"{_place(pair)} {counts['flare']}{most}, least {min(counts.values())}")
    return Finding(
        "section 5.2",
        "FLARE needs the fewest retrievals across all data sets",
        f"In {len(PAIRS) - len(lost)} of {len(PAIRS)} pairs. Not: {'; '.join(lost) or 'none'}.",
        outcome(len(PAIRS) - len(lost), len(PAIRS)),
        ("dragin.c12",),
    )


def _fewer(printed: Printed) -> Finding:
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
    return Finding(
        "section 5.2",
        "DRAGIN needs fewer retrievals than FS-RAG and FL-RAG",
        f"Fewer {'; '.join(told)}.",
        outcome(held, 2 * len(PAIRS)),
        ("dragin.c13",),
    )


def _second_query(printed: Printed) -> Finding:
    rivals = {"full_context": "full context", "last_sentence": "FS-RAG", "last_tokens": "FL-RAG"}
    held, lost = 0, []
    for reader, metric, rival in product((L13, V13), METRICS, rivals):
        ours, theirs = (
            printed.one("table6", method=m, reader=reader, metric=metric)
            for m in ("sure_sentence", rival)
        )
        held += ours > theirs
        if ours <= theirs:
            said = f"{rivals[rival]} {say(theirs)}, FLARE {say(ours)}"
            lost.append(f"{SHORT[reader]} {metric}: {said}")
    return Finding(
        "section 5.4",
        "FLARE's query is the second best",
        f"Above the others in {held} of {held + len(lost)} comparisons. Not: "
        f"{'; '.join(lost) or 'none'}.",
        outcome(held, held + len(lost)),
        ("dragin.c10", "dragin.c23"),
    )


def _configurations(printed: Printed) -> Finding:
    states = sorted({row["state"] for row in printed.rows("configurations")})
    odd = []
    for reader, dataset in PAIRS:
        keys = {"reader": reader, "dataset": dataset, "metric": "threshold"}
        ours = printed.one("table9", **keys)
        shipped = [printed.one("configurations", state=state, **keys) for state in states]
        if ours not in shipped:
            odd.append(f"{_place((reader, dataset))} {ours}, shipped {many(shipped, 2, False)}")
    return Finding(
        "table 9",
        "the settings of each reader and data set",
        f"θ is in the released code's first or last state in {len(PAIRS) - len(odd)} of "
        f"{len(PAIRS)} settings. In neither: {'; '.join(odd) or 'none'}.",
        AGREES if not odd else IN_PART if len(odd) < len(PAIRS) else DIFFERS,
        ("dragin.c18",),
        "the states of the code between these two, which are not transcribed here",
    )
