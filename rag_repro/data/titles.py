"""What data sets and readers are called where people read of them."""

from __future__ import annotations

DATASETS = {
    "musique": "MuSiQue",
    "hotpotqa": "HotpotQA",
    "2wikimultihopqa": "2WikiMultihopQA",
    "2wikimultihopqa_open": "2WikiMultihopQA, larger corpus",
    "hotpotqa_fullwiki": "HotpotQA, fullwiki",
    "strategyqa": "StrategyQA",
    "hotpotqa_train": "HotpotQA, training questions",
    "2wikimultihopqa_train": "2WikiMultihopQA, training questions",
    "iirc": "IIRC",
    "nq": "NQ",
    "nq10": "NQ-10",
    "nq20": "NQ-20",
    "popqa": "PopQA",
    "ambignq": "AmbigNQ",
    "ambignq_nq": "AmbigNQ over NQ",
    "cambignq": "CAmbigNQ",
    "ambignq_again": "AmbigNQ, asked again",
    "nq30": "NQ-30",
    "dureader": "DuReader",
}


def word(value: str) -> str:
    """A data set's title, a reader's name without its hub and commit, else the value itself."""
    return DATASETS.get(value) or bare(value)


def bare(name: str) -> str:
    return name.removeprefix("hub:").partition("@")[0] if name.startswith("hub:") else name
