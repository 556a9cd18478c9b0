"""R²AG's printed values against its sentences; scores in percent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import product

from .audit import (
    AGREES,
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

L7, L13, L8, LONG = "llama2-7b", "llama2-13b", "llama3-8b", "longchat1.5-7b"
CHAT, GPT4 = "gpt-3.5-turbo", "gpt-4-turbo"
NQ = ("nq10", "nq20", "nq30")
HOPS = ("hotpotqa", "musique", "2wikimultihopqa")
SETS = (*NQ, *HOPS)
ACC, F1 = "acc_line", "f1_line"
PARTS = {
    "no_relevance": "r",
    "no_precedent": "γ",
    "no_neighbour": "ζ",
    "no_qdm": "the matching loss",
}


def _reader(dataset: str) -> str:
    return LONG if dataset in ("nq20", "nq30") else L7


def _cell(printed: Printed, method: str, dataset: str, metric: str = ACC, reader: str = ""):
    who = reader or _reader(dataset)
    return printed.one("table1", method=method, reader=who, dataset=dataset, metric=metric)


def _cells() -> list[tuple[str, str]]:
    return [*product(SETS, (ACC,)), *product(HOPS, (F1,))]


def _name(dataset: str, metric: str = ACC) -> str:
    return f"{data_set(dataset)} {'F1' if metric == F1 else 'Acc'}"


def _asked(printed: Printed, dataset: str) -> int:
    return int(printed.one("table4", dataset=dataset, metric="test"))


def _of_table3(printed: Printed, method: str, dataset: str, metric: str = ACC) -> Decimal:
    return printed.one("table3", method=method, dataset=dataset, metric=metric)


def _drops(printed: Printed) -> Worked:
    held, told = 0, []
    for dataset, part in product(("nq10", "nq20"), PARTS):
        whole, left = (_of_table3(printed, m, dataset) for m in ("r2ag", part))
        stated = _of_table3(printed, part, dataset, "drop")
        n = _asked(printed, dataset)
        a, b = (round(v * n / 100) for v in (whole, left))
        relative = [100 * (whole - left) / whole, Decimal(100 * (a - b)) / a]
        fits = any(near(r, stated) for r in relative)
        held += fits
        told.append(f"{data_set(dataset)} without {PARTS[part]} {say(relative[1])} ({stated})")
    working = f"Relative to the whole, in counts of questions (printed): {'; '.join(told)}."
    return working, outcome(held, len(told))


def _questions(printed: Printed, more: Decimal, less: Decimal, dataset: str) -> Decimal:
    return (more - less) * _asked(printed, dataset) / 100


def _one_question(printed: Printed) -> Worked:
    whole, left = (_of_table3(printed, m, "nq20") for m in ("r2ag", "no_qdm"))
    qdm = _questions(printed, whole, left, "nq20")
    raft = _questions(
        printed, _cell(printed, "r2ag_raft", "nq20"), _cell(printed, "raft", "nq20"), "nq20"
    )
    working = (
        f"Differences in questions of {_asked(printed, 'nq20')}: {say(qdm, 1, True)} for the "
        f"loss, {say(raft, 1, True)} over RAFT."
    )
    return working, AGREES if min(qdm, raft) > 10 else OPEN


def _shares(printed: Printed, datasets: Sequence[str]) -> Worked:
    odd, told, total = 0, [], 0
    for dataset in datasets:
        n = _asked(printed, dataset)
        rows = printed.rows("table1", dataset=dataset, metric=ACC)
        off = [
            row
            for row in rows
            if not near(round(Decimal(row["value"]) * n / 100) * Decimal(100) / n, row["value"])
        ]
        total, odd = total + len(rows), odd + len(off)
        told.append(f"{data_set(dataset)} {len(off)} of {len(rows)} are none of {n:,}")
        if len(off) == 1:
            row = off[0]
            count = Decimal(row["value"]) * n / 100
            told[-1] += f" ({row['reader']} {row['value']} would be {say(count)} questions)"
    working = f"{'; '.join(told)}."
    return working, outcome(total - odd, total)


def _gold(printed: Printed) -> Worked:
    gold = {d: printed.one("table4", dataset=d, metric="gold") for d in HOPS}
    working = (
        ", ".join(f"{data_set(d)} {value}" for d, value in gold.items())
        + ". HotpotQA's release names two paragraphs a question."
    )
    return working, AGREES if gold["hotpotqa"] == 2 else OPEN


def _chat(printed: Printed) -> Worked:
    cells = [*product((*NQ, "hotpotqa"), (ACC,)), ("hotpotqa", F1)]
    gains = {c: _cell(printed, "r2ag", *c) - _cell(printed, "rag", *c, CHAT) for c in cells}
    told = ", ".join(f"{_name(*c)} {say(g, 2, True)}" for c, g in gains.items())
    nq10 = gains["nq10", ACC] * _asked(printed, "nq10") / 100
    working = f"{told} (NQ-10: {say(nq10, 1)} questions)."
    return working, outcome(sum(g > 0 for g in gains.values()), len(gains))


def _larger(printed: Printed) -> Worked:
    told, held, total = [], 0, 0
    for reader in (L13, L8):
        have = {
            (r["dataset"], r["metric"]) for r in printed.rows("table1", method="rag", reader=reader)
        }
        cells = [c for c in _cells() if c in have]
        lost = [c for c in cells if _cell(printed, "r2ag", *c) <= _cell(printed, "rag", *c, reader)]
        held, total = held + len(cells) - len(lost), total + len(cells)
        below = ", ".join(
            f"{_name(*c)} {say(_cell(printed, 'r2ag', *c))} against "
            f"{say(_cell(printed, 'rag', *c, reader))}"
            for c in lost
        )
        told.append(f"{reader}: above in {len(cells) - len(lost)} of {len(cells)}, not {below}")
    working = f"{'; '.join(told)}."
    return working, AGREES if 2 * held > total else DIFFERS


def _plain(printed: Printed) -> Worked:
    bare, larger, tuned = (
        _cell(printed, "rag", "nq10"),
        _cell(printed, "rag", "nq10", ACC, L13),
        _cell(printed, "raft", "nq10"),
    )
    working = (
        f"LLaMA2-7B under plain RAG has {say(bare)}; LLaMA2-13B {say(larger)}, and LLaMA2-7B "
        f"itself {say(tuned)} once tuned with the same prompts. So much of the gain may be "
        "learning the form of the task; "
        "a control that trains as much without features is in figure 3 alone."
    )
    return working, OPEN if min(larger, tuned) - bare > 20 else AGREES


def _long_answers(printed: Printed) -> Worked:
    told = {
        name: _cell(printed, method, "hotpotqa", F1, reader)
        / _cell(printed, method, "hotpotqa", ACC, reader)
        for name, method, reader in (
            ("ChatGPT", "rag", CHAT),
            ("GPT4", "rag", GPT4),
            ("R²AG", "r2ag", L7),
            ("LLaMA2-13B", "rag", L13),
        )
    }
    low = sum(told[name] < told["R²AG"] for name in ("ChatGPT", "GPT4"))
    working = (
        "F1 divided by Acc on HotpotQA, lower where answers are long: "
        + ", ".join(f"{name} {say(v)}" for name, v in told.items())
        + "."
    )
    return working, outcome(low, 2)


def _every_cell(printed: Printed) -> Worked:
    gains = [_cell(printed, "r2ag", *c) - _cell(printed, "rag", *c) for c in _cells()]
    up = sum(g > 0 for g in gains)
    working = f"Up in {up} of {len(gains)} cells of table 1: {many(gains)}."
    return working, outcome(up, len(gains))


def _enhancements(printed: Printed) -> Worked:
    lost, total = [], 0
    for method in ("cot", "recomp", "crag", "long_llmlingua"):
        have = {(r["dataset"], r["metric"]) for r in printed.rows("table1", method=method)}
        for cell in _cells():
            if cell in have:
                total += 1
                ours, theirs = _cell(printed, "r2ag", *cell), _cell(printed, method, *cell)
                if ours <= theirs:
                    lost.append(f"{method} {_name(*cell)} {say(theirs)}, {say(ours)}")
    working = f"In {total - len(lost)} of {total}. Not: {'; '.join(lost) or 'none'}."
    return working, AGREES if 2 * len(lost) < total else DIFFERS


def _best(printed: Printed) -> Worked:
    gains = {c: _cell(printed, "r2ag_raft", *c) - _cell(printed, "raft", *c) for c in _cells()}
    lost = [f"{_name(*c)} {say(g, 2, True)}" for c, g in gains.items() if g <= 0]
    told, fares = counted(lost, len(gains), "cells of table 1")
    return f"Above RAFT in {told}", fares


WORKINGS: Mapping[str, Working] = {
    "drops": _drops,
    "one_question": _one_question,
    "shares_of_nq": partial(_shares, datasets=NQ),
    "shares_of_hops": partial(_shares, datasets=HOPS),
    "gold": _gold,
    "chat": _chat,
    "larger": _larger,
    "plain": _plain,
    "long_answers": _long_answers,
    "every_cell": _every_cell,
    "enhancements": _enhancements,
    "best": _best,
}
