"""Every claim of every paper can be refuted: records made to refute it turn its verdict.

A line scores what it is asked for by the metric's name; that metrics read lines as runs write
them is tested with the metrics, and for ERM4 and R²AG with their claims besides.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from rag_repro.evaluation import metrics
from rag_repro.evaluation.verdicts import NOT_JUDGED, UNSAID
from rag_repro.study import gate, papers
from rag_repro.study.judge import _subtracted, judge, pair_cells
from rag_repro.study.scores import Results
from tests.study.claims import TIERS, Known, exhibit_of, waits

BASE = 40.0  # so high that gold passages still help the reader that the gate tries
CHANGED = {"lower": 0.2, "same": 0.5, "higher": 0.8, "found": 0.5}  # beside one half
HOLDS, REFUTES = 0, 1
WORDS = {
    "testbed": ("mechanism holds", "mechanism fails"),
    "public": ("reproduced", "not reproduced"),
    "paper": ("reproduced", "not reproduced"),
}
CLAIMS = [(paper, claim.id) for paper in papers.names() for claim in papers.load(paper).claims]


def levels(contrast, which):
    """What the two sides score, in points or in what is counted: as claimed, or against it."""
    least = 40.0 if contrast.printed else contrast.delta or contrast.margin
    points = metrics.get(contrast.metric).unit == "percent" or contrast.ratio
    # Of shares that are all alike an interval is some points wide: nobody saw the other kind.
    far = min(least + 10.0, 100 - BASE) if points else 4 * least
    if contrast.target is None:
        if contrast.margin is not None:
            return (BASE, BASE) if which == HOLDS else (BASE, BASE + far)
        return (BASE + far, BASE) if which == HOLDS else (BASE, BASE + far)
    if contrast.delta is None:
        beyond = 0.0 if which == HOLDS else far * (1 if contrast.target < 50 else -1)
    else:
        beyond = 1.5 * least if contrast.above == (which == HOLDS) else -1.5 * least
    if contrast.ratio:
        return max(contrast.target + beyond, 1.0), 100.0
    under = 0.0 if contrast.less is None else 5.0
    return max(under + contrast.target + beyond, 0.0), under


def size(contrast):
    """Questions enough: of scores that are all alike, few could not tell a point from none."""
    if contrast.target is None and contrast.margin is None:
        return 150
    return min(max(round(900 / (contrast.delta or contrast.margin)), 150), 800)


@cache
def lines(kind, scores, n):
    """A record's lines; every question scores the same."""
    names = (f"q{i:03}" for i in range(n))
    return [{"id": q, "cluster": q, "kind": kind, "scores": dict(scores)} for q in names]


class Made(Results):
    """Records that lie on no disk: for one contrast, each cell's lines alike."""

    training_spreads = Known()

    def __init__(self, paper, claim, contrast, tier, which):
        self.gate = paper.gate
        self.told, self.n = {}, size(contrast)
        self.kind = next(iter(contrast.kinds), "compositional")
        exhibit = exhibit_of(paper, claim, contrast)
        more, less = levels(contrast, which)
        for first, second in pair_cells(exhibit, contrast, tier):
            sides = [(first, contrast.more, more), (second, contrast.less, less)]
            sides += [(cell, side, 10.0) for cell, side in _subtracted(exhibit, contrast, first)]
            for cell, side, level in sides:
                if cell is not None:
                    name = side.get("metric", contrast.metric)
                    self._put(cell, {name: level / metrics.get(name).scale})
            for metric, change in contrast.among.items():
                self._put(first, {metric: CHANGED[change]})
                self._put(second, {metric: 0.5})

    def _put(self, cell, scores):
        self.told.setdefault((cell.exhibit, cell.condition.hash), {}).update(scores)

    def platforms(self, cell):
        return [frozenset()]

    def lines(self, cell):
        scores = self.told.get((cell.exhibit, cell.condition.hash), {})
        kind = self.kind
        if self.gate and cell.exhibit.endswith(f".{self.gate.exhibit}"):
            kind = "compositional"  # which cannot be guessed
            for share, keys in ((0.9, self.gate.given), (0.1, self.gate.bare)):
                if cell.matches(keys):
                    scores = {self.gate.metric: share, **scores}
        if not scores:
            return None
        return lines(kind, tuple(scores.items()), self.n)


@pytest.fixture(autouse=True)
def _lines_score_by_name(monkeypatch):
    monkeypatch.setattr(metrics, "of_line", lambda name, line: line["scores"].get(name))


@pytest.fixture(autouse=True)
def _what_is_trained_is_proven(monkeypatch):
    """Proofs, and what has none, are tested with the gate."""
    monkeypatch.setattr(gate, "of_training", lambda *_: None)


def verdict(paper, claim, contrast, tier, which):
    # What a premise does to the rest is tested with the judge.
    alone = replace(claim, contrasts=(replace(contrast, premise=False),))
    one = replace(paper, claims=(alone,))
    [judged] = judge(one, tier, Made(paper, claim, contrast, tier, which))
    return judged.verdict


@pytest.mark.parametrize(("paper", "name"), CLAIMS)
def test_a_claim_turns_with_its_records(paper, name):
    paper = papers.load(paper)
    claim = paper.claim(name)
    turned = waiting = 0
    for contrast in claim.contrasts:
        exhibit = exhibit_of(paper, claim, contrast)
        if waits(exhibit, contrast):
            waiting += 1
            continue
        for tier in TIERS:
            if not any(pair_cells(exhibit, contrast, tier)):
                continue
            told = [verdict(paper, claim, contrast, tier, which) for which in (HOLDS, REFUTES)]
            said = tuple(v.word for v in told)
            assert said == WORDS[tier], (contrast.label, [v.reason for v in told], told)
            turned += 1
    # What no record can refute has to say why, and claims it of nothing else.
    assert bool(turned) != bool(claim.no_contrast or waiting == len(claim.contrasts)), name


@pytest.mark.parametrize("paper", papers.names())
def test_a_claim_that_no_record_can_decide_says_so_at_each_tier(paper, tmp_path):
    paper = papers.load(paper)
    for tier in ("testbed", "public", "paper"):
        for judged in judge(paper, tier, Results(tmp_path)):
            assert judged.verdict.word in UNSAID
            if judged.claim.no_contrast:
                assert judged.verdict.word == NOT_JUDGED
                assert judged.verdict.reason == judged.claim.no_contrast
