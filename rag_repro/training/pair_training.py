"""Training pairs of DR-RAG's classifier, by its equation 2.

    C(q, d*, d*) = positive    C(q, d*, dΔ) = negative    C(q, dΔ, dΔ) = negative

d* are a question's gold passages, dΔ others. As many negatives as positives
(appendix A.1); half of them are hard (a gold passage and one that came close to
it), half random (two passages that are not gold, of which one may have come close).

Where a part names a `retriever`, most negatives are pairs that C is asked about when DR-RAG
searches with it: a first-stage hit and a passage that its second query finds, so that both
are near the question and the one is near the other. A quarter has any passage beside such a hit:
without these a cross-encoder takes what it has never seen for gold.

CRAG's evaluator is taught the same way, of single passages (`relevance`).

C over similarities is a logistic regression on vectors that stay as they are.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, cycle
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from rag_repro import data, engine
from rag_repro.data import candidates
from rag_repro.digest import replacing, write_whole
from rag_repro.engine import Flow
from rag_repro.evaluation.pair_metrics import auc
from rag_repro.lm.hub import ADAPTER, CURVE
from rag_repro.lm.pair_scorers import Cutter, Item, outputs_of, similarities, squares
from rag_repro.lm.prompts import Plain
from rag_repro.methods.drrag.concatenation import two_rankings
from rag_repro.methods.drrag.selection import CFSSettings
from rag_repro.schema import Answer, Passage, Question
from rag_repro.schema.dataset import Dataset
from rag_repro.study.services import Workshop
from rag_repro.training.examples import EncodedText, batches

NEAR = 10
"""How many of the passages that lexical search finds count as close, where none came along."""

HARD, RELEVANCE_HARD = 0.5, 0.8
"""Share of the negatives that are hard: of pairs, and of single passages, where those of CRAG
were retrieved for the question."""

STAGES = CFSSettings(k=4)
"""The two stages whose pairs C meets: the k of the paper's tables that this book reads first."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and two passages, or one (b None); label: 1 where the question needs all.

    ordered: to be judged in this order alone; else in both.
    """

    question: str
    a: str
    b: str | None
    label: int
    source: str
    ordered: bool = False


def pairs(
    dataset: str,
    split: str,
    seed: int,
    questions: int | None = None,
    data_dir: Path | None = None,
    noise: float = 0.0,
    retriever: str | None = None,
    exposures: int = 1,
    held_out: int | None = None,
) -> Iterator[Pair]:
    """Positives and as many negatives of a split's questions, question by question.

    noise: share of the train split's labels that are turned round, by chance (drrag.s05); the
    pairs stay the same, and so do those of other splits. retriever: negatives are what the two
    stages bring with it, and each pair is judged in one order, drawn. exposures: how often each
    positive of split train comes, each time with another negative, where a retriever is named;
    held_out: questions of the other splits then (None: as many as of split train). Questions
    with one gold passage have no positive and are left out.
    """
    if retriever is not None:
        workshop = Workshop(data_dir)
        n, times = (questions, exposures) if split == "train" else (held_out or questions, 1)
        asked = replace(workshop.dataset(dataset, split).first(n), name=dataset)
        made = stage_pairs(asked, workshop.retriever(retriever, asked.corpus), seed, times)
    else:
        made = clean_pairs(dataset, split, seed, questions, data_dir)
    if not noise or split != "train":
        yield from made
        return
    # A generator of its own, so that noise changes labels and nothing else.
    random = Random(f"noise/{dataset}/{seed}")
    for pair in made:
        yield replace(pair, label=1 - pair.label) if random.random() < noise else pair


def clean_pairs(
    dataset: str, split: str, seed: int, questions: int | None, data_dir: Path | None
) -> Iterator[Pair]:
    """For every two gold passages of a question a positive, and a negative beside it."""
    asked = data.load(dataset, data_dir=data_dir, split=split)
    random = Random(f"pairs/{dataset}/{seed}")
    asked = asked.first(questions)
    passage = asked.corpus.by_id
    everything = asked.corpus.passages
    for question, near in zip(asked.questions, _near(asked), strict=True):
        gold = [passage[i] for i in question.gold_ids]
        close = [passage[i] for i in near if i not in question.gold_ids]
        for one, other in combinations(gold, 2):
            yield Pair(question.text, one.text, other.text, 1, f"positive:{dataset}")
            yield negative(question, gold, close, everything, random, dataset)


def stage_pairs(asked: Dataset, retriever: Any, seed: int, exposures: int) -> Iterator[Pair]:
    """Every two gold passages `exposures` times, each time with a pair that the stages bring.

    With chance HARD that pair holds a gold passage ("hard"), else none ("near"); every second
    time one that was found stands beside any passage instead ("random"), neither of them gold. No
    pair that was brought is taken twice before all were taken once.
    """
    brought = second_stage_pairs(asked, retriever)
    random = Random(f"stage pairs/{asked.name}/{seed}")
    passage, everything = asked.corpus.by_id, asked.corpus.passages
    for question in asked.questions:
        gold = set(question.gold_ids)
        found = dict.fromkeys(i for two in brought[question.id] for i in two if i not in gold)
        close = [passage[i] for i in found]
        wrong: dict[str, list] = {"hard": [], "near": []}
        for two in brought[question.id]:
            if not gold.issuperset(two):
                wrong["near" if gold.isdisjoint(two) else "hard"].append([passage[i] for i in two])
        # So many as are there, in an order drawn, and from the start again.
        turns = {k: cycle(random.sample(pairs, len(pairs))) for k, pairs in wrong.items() if pairs}
        for two in [*combinations(question.gold_ids, 2)] * exposures if turns else ():
            kind = "hard" if random.random() < HARD else random.choice(("near", "random"))
            if kind == "random":
                other = unrelated(gold, close, everything, random)
            else:
                kind = kind if kind in turns else next(iter(turns))
                other = next(turns[kind])
            for name, label, both in (
                ("positive", 1, [passage[i] for i in two]),
                (kind, 0, other),
            ):
                a, b = (p.text for p in random.sample(both, 2))
                yield Pair(question.text, a, b, label, f"{name}:{asked.name}", ordered=True)


def second_stage_pairs(asked: Dataset, retriever: Any) -> dict[str, list[tuple[str, str]]]:
    """By question's id: each first-stage passage with each that its second query finds, as ids.

    ValueError: a question that could not be searched for.
    """
    brought: dict[str, list[tuple[str, str]]] = {}

    def listen(question: Question, settings: CFSSettings) -> Flow:
        first, rankings = yield from two_rankings(question, settings, settings.depth, [])
        beside = zip(first, rankings, strict=True)
        brought[question.id] = [(d.passage.id, e.passage.id) for d, found in beside for e in found]
        return Answer()

    tasks = (engine.Task(question, listen, STAGES) for question in asked.questions)
    for task, answer in engine.run(tasks, {"retriever": retriever}):
        if answer.error:
            raise ValueError(f"{asked.name}: question {task.question.id}: {answer.error}")
    return brought


def negative(
    question: Question,
    gold: Sequence[Passage],
    close: Sequence[Passage],
    everything: Sequence[Passage],
    random: Random,
    dataset: str,
) -> Pair:
    """Hard: a gold passage and a close one; random: a close one and any, neither of them gold."""
    if close and random.random() < HARD:
        one, other, kind = random.choice(gold), random.choice(close), "hard"
    else:
        one, other = unrelated(question.gold_ids, close, everything, random)
        kind = "random"
    return Pair(question.text, one.text, other.text, 0, f"{kind}:{dataset}")


def unrelated(
    gold: Collection[str], close: Sequence[Passage], everything: Sequence[Passage], random: Random
) -> tuple[Passage, Passage]:
    """A close passage, or any where none is, and any other, neither of them gold (ids)."""
    one = other = random.choice(close or everything)
    while other.id == one.id or other.id in gold or one.id in gold:
        one = random.choice(close or everything)
        other = random.choice(everything)
    return one, other


def relevance(
    dataset: str,
    split: str,
    seed: int,
    questions: int | None = None,
    data_dir: Path | None = None,
    mined: bool = False,
) -> Iterator[Pair]:
    """Each gold passage of a split's questions alone, and as many others beside.

    Of the others RELEVANCE_HARD come from the question's own candidates; the rest is any
    passage that is not gold. mined: the data set hands out no distractors, and each question
    gets the nearest passages that hold none of its answers.
    """
    asked = data.load(dataset, data_dir=data_dir, split=split).first(questions)
    if mined:
        asked = candidates.given(asked, str(NEAR))
    if not any(i not in q.gold_ids for q in asked.questions for i in q.candidates):
        raise ValueError(f"{dataset} hands out no passages beside the gold ones; say mined: true")
    random = Random(f"relevance/{dataset}/{seed}")
    passage, everything = asked.corpus.by_id, asked.corpus.passages
    for question in asked.questions:
        close = [i for i in question.candidates if i not in question.gold_ids]
        for name in question.gold_ids:
            yield Pair(question.text, passage[name].text, None, 1, f"positive:{dataset}")
            kind = "hard" if close and random.random() < RELEVANCE_HARD else "random"
            other = passage[random.choice(close)] if kind == "hard" else random.choice(everything)
            while other.id in question.gold_ids:
                other = random.choice(everything)
            yield Pair(question.text, other.text, None, 0, f"{kind}:{dataset}")


def _near(asked: Dataset) -> list[list[str]]:
    """For each question passages that are close to it, by id; gold may be among them."""
    if all(q.candidates for q in asked.questions):
        return [[*q.candidates] for q in asked.questions]
    from rag_repro.retrieval.bm25 import BM25

    found = BM25(asked.corpus).search([q.text for q in asked.questions], NEAR)
    return [[hit.passage.id for hit in hits] for hits in found]


def encode(pairs: Sequence[Pair], cutter: Cutter) -> list[EncodedText]:
    """Each pair in both orders, since C is asked of a set of two; a single passage once."""
    return [
        EncodedText(cutter(p.question, *order), p.label, p.source)
        for p in pairs
        for order in ([(p.a,)] if p.b is None else [(p.a, p.b), (p.b, p.a)])[: 2 - p.ordered]
    ]


def check(pad: int, budget: int) -> Callable[[Any, Sequence[EncodedText]], dict[str, float]]:
    """How often a negative has the higher logit than a positive (1 - AUC), over all held-out pairs.

    budget: padded tokens at once. -> {"swapped": of all negatives, "swapped_hard": of hard ones,
    of all where none is}; 0.5, as good as chance, where there is nothing to compare
    """

    def watch(model: Any, examples: Sequence[EncodedText]) -> dict[str, float]:
        scores: dict[str, list[float]] = {"positive": [], "hard": [], "other": []}
        for numbers in batches([len(e.tokens) for e in examples], 0, 0, budget):
            batch = [examples[i] for i in numbers]
            logits = outputs_of(model, [e.tokens for e in batch], pad)[:, 0].tolist()
            for e, logit in zip(batch, logits, strict=True):
                kind = e.source.partition(":")[0]
                scores[kind if kind in scores else "other"].append(logit)
        every = scores["hard"] + scores["other"]
        known = auc(scores["positive"], every), auc(scores["positive"], scores["hard"] or every)
        swapped = [round(1 - (0.5 if k is None else k), 4) for k in known]
        return dict(zip(("swapped", "swapped_hard"), swapped, strict=True))

    return watch


def objective(pad: int):
    """A classifier's cross-entropy, of one logit the binary one, summed, for `training.fit`."""

    def loss(model: Any, batch: Sequence[EncodedText]) -> tuple[Any, int]:
        import torch
        from torch.nn import functional

        logits = outputs_of(model, [e.tokens for e in batch], pad)
        labels = torch.tensor([e.label for e in batch], device=logits.device)
        if logits.shape[1] > 1:
            return functional.cross_entropy(logits, labels, reduction="sum"), len(batch)
        entropy = functional.binary_cross_entropy_with_logits
        return entropy(logits[:, 0], labels.float(), reduction="sum"), len(batch)

    return loss


STRENGTH = 1.0
"""scikit-learn's C. From 0.1 to 10 the tune pairs' AUC moves by 0.004."""


@dataclass(frozen=True, slots=True)
class Asked(EncodedText):
    """A pair whose texts an encoder reads one by one, together `tokens`."""

    item: Item


def in_both_orders(pairs: Sequence[Pair], plain: Plain) -> list[Asked]:
    """Each pair in both orders, since either passage may be found first."""
    made = []
    for pair in pairs:
        for a, b in ((pair.a, pair.b), (pair.b, pair.a)):
            q, x, y = (plain.tokens(text)[0] for text in (pair.question, a, b))
            item = (pair.question, a, b)
            made.append(Asked((*q, *x, *y, *q, *x), pair.label, pair.source, item))
    return made


def fit(encoder: Any, learned: Sequence[Asked], held_out: Sequence[Asked], folder: Path) -> Path:
    """The weights of C, with a curve of one row; -> the folder.

    encoder: as `similarities` wants it; its time is in the row's seconds.
    """
    from safetensors.numpy import save_file
    from sklearn.linear_model import LogisticRegression

    began = time.monotonic()
    found = similarities(encoder, [e.item for e in learned]).astype(np.float64)
    mean, scale = found.mean(axis=0), found.std(axis=0)
    model = LogisticRegression(C=STRENGTH, max_iter=5_000)
    model.fit(squares((found - mean) / scale), [e.label for e in learned])
    parts = {"mean": mean, "scale": scale, "weights": model.coef_[0], "bias": model.intercept_}
    folder.mkdir(parents=True, exist_ok=True)
    made = {name: np.ascontiguousarray(part, dtype=np.float32) for name, part in parts.items()}
    with replacing(folder / ADAPTER) as part:
        save_file(made, part)

    def losses(examples: Sequence[Asked]) -> dict[str, float]:
        sums, counts = Counter(), Counter()
        found = similarities(encoder, [e.item for e in examples])
        right = model.predict_log_proba(squares((found - mean) / scale))
        for row, example in zip(right, examples, strict=True):
            sums[example.source] -= float(row[example.label])
            counts[example.source] += 1
        return {source: round(sums[source] / counts[source], 4) for source in sorted(sums)}

    own = losses(learned)
    counts = Counter(e.source for e in learned)
    row = {
        "step": 1,
        "tokens": sum(len(e.tokens) for e in learned),
        "loss": round(sum(own[s] * counts[s] for s in own) / len(learned), 4),
        "seconds": round(time.monotonic() - began, 2),
        "computed_in": "float32",
    }
    if held_out:
        row["held_out"] = losses(held_out)
    write_whole(folder / CURVE, json.dumps(row) + "\n")
    return folder
