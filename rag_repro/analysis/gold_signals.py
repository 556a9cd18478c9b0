"""Who tells gold passages apart: the retriever's features, a former's head, the reader's look?

No answer has a part in it (r2ag.c43, r2ag.c01). Areas under the curve are over all lists of a data
set, since one threshold would have to serve them all; intervals draw questions. Of attention only
what reaches the answer's first word is seen here, and not all that hidden states may hold. Where
a prompt's last token looks is told layer by layer, in percent of a layer's attention by place, for
`show.part`: layers from 1, the first, means over recorded answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_repro import engine, retrieval
from rag_repro.evaluation import calibration
from rag_repro.evaluation.attention_metrics import UNIT, best_other, gold_places, passages
from rag_repro.evaluation.calibration import Judgements
from rag_repro.evaluation.intervals import Interval
from rag_repro.evaluation.resampling import new_generator
from rag_repro.lm import hub
from rag_repro.methods.r2ag.features import COLUMNS
from rag_repro.methods.r2ag.method import R2AGSettings, gold_of, r2ag
from rag_repro.schema import Answer, Hit, Question
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.study.papers import Cell
from rag_repro.study.services import Workshop

FOLDS = 5
STRENGTH = 1.0  # scikit-learn's C
SYMBOLS = dict(zip(COLUMNS, ("r", "γ", "ζ"), strict=True))

RANKED, FEATURES = "r and rank, fitted", "r, γ, ζ and rank, fitted"
BARE = "rank and length, fitted"
RETRIEVER = "r, γ, ζ, rank and length, fitted"
READER = "attention, rank and length, fitted"
BOTH = "r, γ, ζ, attention, rank and length, fitted"

Line = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class RankedList:
    """A question with its candidates as ranked, and their features (k, 3)."""

    question: Question
    hits: tuple[Hit, ...]
    rows: np.ndarray

    @property
    def labels(self) -> list[int]:
        """1 for each gold passage, 0 for another."""
        return gold_of(self.question, self.hits)


# ------------------------------------------------------------------- the lists


def rank(
    dataset: Dataset, questions: Sequence[Question], workshop: Workshop, most: int | None = None
) -> list[RankedList]:
    """The questions' own candidates through the method itself, up to where a reader is asked.

    MiniLM encodes the lists' own passages, and no others. most: only the best so many of each
    list. ValueError: a question without candidates, or another that the method cannot be asked.
    """
    ids = dict.fromkeys(name for q in questions for name in q.candidates)
    corpus = Corpus(f"{dataset.name}-lists", tuple(dataset.corpus.by_id[name] for name in ids))
    encoder = workshop.encoder("minilm")
    services = {
        "retriever": retrieval.build("dense", corpus, encoder=encoder),
        "minilm": encoder,
    }
    tasks = []
    for q in questions:
        k = min(len(q.candidates), most or len(q.candidates))
        settings = R2AGSettings(k=k, prompt=None, own_candidates=True, encoder="minilm")
        tasks.append(engine.Task(q, r2ag, settings))
    answers = {task.question.id: answer for task, answer in engine.run(tasks, services)}
    return [_ranked(dataset, question, answers[question.id]) for question in questions]


def rank_cells(cells: Iterable[Cell], workshop: Workshop, n: int) -> dict[str, list[RankedList]]:
    """Data set -> the lists of its first n questions, as long as the cells have them (k)."""
    made = {}
    for name, condition in {c.keys["dataset"]: c.condition for c in cells}.items():
        dataset = workshop.dataset(condition.dataset, condition.split)
        asked = dataset.first(n).questions
        made[name] = rank(dataset, asked, workshop, most=condition.configured.k)
    return made


def _ranked(dataset: Dataset, question: Question, answer: Answer) -> RankedList:
    if answer.error:
        raise ValueError(f"{dataset.name}, question {question.id!r}: {answer.error}")
    event = next(event for event in answer.trace if event["stage"] == "features")
    return RankedList(question, answer.hits, np.array(event["rows"], dtype=np.float32))


def head_relevance(former: str, lists: Sequence[RankedList]) -> list[np.ndarray]:
    """The head's probability (k,) of each passage of each list (equation 7); [] where the former's
    weights are not here.
    """
    import torch

    from rag_repro.lm import former as formers
    from rag_repro.lm.hub import CARD, card_of

    folder = hub.artifacts().get(former)
    if folder is None or not (folder / CARD).is_file():
        return []
    _, module = formers.load(folder, card_of(folder))
    with torch.no_grad():
        hidden = (module.attend(torch.tensor(one.rows)[None]) for one in lists)
        return [torch.sigmoid(module.relevance(h))[0].numpy() for h in hidden]


# ----------------------------------------------------------------- the signals


def feature_signals(lists: Sequence[RankedList], former: str) -> dict[str, np.ndarray]:
    """Signal -> a value for each passage of all lists, in their order; higher: rather gold.

    former: whose head is asked, where its weights are here. Of few lists nothing is fitted.
    """
    rows = np.concatenate([one.rows for one in lists])
    ranks = np.concatenate([np.arange(len(one.rows)) for one in lists])
    made = {symbol: rows[:, i] for i, symbol in enumerate(SYMBOLS.values())}
    made["rank"] = -ranks
    if len(set(labels_and_clusters(lists)[1])) >= FOLDS:
        made[RANKED] = fitted(np.column_stack([rows[:, :1], ranks]), lists)
        made[FEATURES] = fitted(np.column_stack([rows, ranks]), lists)
    if held := head_relevance(former, lists):
        made[f"the head of {former}"] = np.concatenate(held)
    return made


def attention_signals(
    lists: Sequence[RankedList], lines: Sequence[Line]
) -> tuple[list[RankedList], dict[str, np.ndarray]]:
    """The lists whose record tells of attention, and of these the signals; {} of too few.

    lines: plain RAG's. Rank and length stand on both sides, for attention goes by these whatever
    a passage says, and of some data sets the gold passages are longer. ValueError: a record's
    passages are others, or stand in another order.
    """
    by_id = {line["id"]: line for line in lines if line.get("attention")}
    both = [(one, by_id[one.question.id]) for one in lists if one.question.id in by_id]
    for one, line in both:
        if list(line["hits"]) != [hit.passage.id for hit in one.hits]:
            raise ValueError(
                f"question {one.question.id!r}: its record has other passages than are ranked "
                "now, so that its attention is not theirs; ask it again"
            )
    lists = [one for one, _ in both]
    if len(set(labels_and_clusters(lists)[1])) < FOLDS:
        return lists, {}
    rows = np.concatenate([one.rows for one in lists])
    ranks = np.concatenate([np.arange(len(one.rows)) for one in lists])[:, None]
    # Of the words alone: marks are as long before every passage.
    lengths = np.log([[words] for _, line in both for _, words in line["attention"]["tokens"]])
    attention = np.concatenate([centred_attention(line) for _, line in both])
    bare, more = np.hstack([ranks, lengths]), np.hstack([rows, ranks, lengths])
    return lists, {
        "r": rows[:, 0],
        "rank": -ranks[:, 0],
        BARE: fitted(bare, lists),
        RETRIEVER: fitted(more, lists),
        READER: fitted(bare, lists, linear=attention),
        BOTH: fitted(more, lists, linear=attention),
    }


def centred_attention(line: Line) -> np.ndarray:
    """(passages, layers) the logarithm of each passage's attention, less its list's mean.

    Passages of a list compete for a layer's attention, whose size the rest of a prompt decides.
    """
    logs = np.log1p(np.array(line["attention"]["words"], dtype=float)).T
    return logs - logs.mean(axis=0)


def fitted(
    columns: np.ndarray, lists: Sequence[RankedList], linear: np.ndarray | None = None
) -> np.ndarray:
    """The probability of gold by a logistic regression that was fitted to other questions.

    columns: (passages of all lists, any), of at least `FOLDS` clusters of questions, which are
    never on both sides. Squares and products are in it, as a former could make them; of
    `linear` (passages, any) they are not, for columns would be too many.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    labels, clusters = labels_and_clusters(lists)
    labels, made = np.asarray(labels), np.zeros(len(columns))
    n = columns.shape[1]
    columns = columns if linear is None else np.column_stack([columns, linear])
    # Whole clusters, dealt out in the order in which they come.
    deal = {name: i % FOLDS for i, name in enumerate(dict.fromkeys(clusters))}
    fold = np.array([deal[name] for name in clusters])
    for held_out in range(FOLDS):
        out = fold == held_out
        squares = PolynomialFeatures(2, include_bias=False), slice(n)
        model = make_pipeline(
            StandardScaler(),
            make_column_transformer(squares, remainder="passthrough"),
            LogisticRegression(C=STRENGTH, max_iter=5_000),
        )
        model.fit(columns[~out], labels[~out])
        made[out] = model.predict_proba(columns[out])[:, 1]
    return made


def labels_and_clusters(lists: Sequence[RankedList]) -> tuple[list[int], list[str]]:
    """Of each passage of all lists: 1 if gold, else 0; and its question's cluster."""
    labels = [label for one in lists for label in one.labels]
    return labels, [one.question.unit for one in lists for _ in one.rows]


# ------------------------------------------------------------------- the areas


def areas(
    signals: Mapping[str, np.ndarray], lists: Sequence[RankedList], *bases: str
) -> list[tuple[str, Interval, *tuple[Interval | None, ...]]]:
    """Of each signal: its name, its AUC, and what that has over each base's, paired by questions.

    In percent and points; None over itself, and over a base that is not among the signals.
    """
    kinds = labels_and_clusters(lists)
    judged = {name: Judgements.from_labels(_ordered(v), *kinds) for name, v in signals.items()}
    made = []
    for name, one in judged.items():
        gains = [
            calibration.auc_gain(one, judged[base], new_generator()).scaled(100)
            if base != name and base in judged
            else None
            for base in bases
        ]
        made.append((name, calibration.auc(one, new_generator()).scaled(100), *gains))
    return made


def _ordered(values: np.ndarray) -> np.ndarray:
    """The same order between 0 and 1, ties kept: an area is of order alone, and `Judgements` have
    numbers from 0 to 1.
    """
    _, places = np.unique(values, return_inverse=True)
    return places / max(1, places.max())


# ------------------------------------------------------------------ layer by layer


def by_kind(lines: Iterable[Line], kind: str) -> dict[tuple[int], float]:
    """(layer,) -> percent on one token of a kind: "embeddings", "words" of passages, or "marks".

    A question's share by its number of such tokens.
    """
    made = []
    for line in lines:
        looked = line.get("attention", {})
        if not looked.get("tokens") or kind not in looked:
            continue
        marks, words = (sum(column) for column in zip(*looked["tokens"], strict=True))
        count = {"embeddings": len(looked["tokens"]), "words": words, "marks": marks}[kind]
        shares = np.array(looked[kind], dtype=float)
        if count:
            made.append(100 * shares.reshape(len(shares), -1).sum(1) / UNIT / count)
    return _by_layer(made)


def by_passage(lines: Iterable[Line], shown: int = 4) -> dict[tuple[int, str], float]:
    """(layer, place) -> percent on the first passages: "1e" the embedding before the first, "1w"
    its words; of questions with at least so many passages.
    """
    made: dict[str, list[np.ndarray]] = {}
    for line in lines:
        looked = line.get("attention", {})
        if len(looked.get("tokens", ())) < shown:
            continue
        for kind, letter in (("embeddings", "e"), ("words", "w")):
            for i, column in enumerate(np.array(looked.get(kind, [])).T[:shown], start=1):
                made.setdefault(f"{i}{letter}", []).append(100 * column / UNIT)
    return {
        (*layer, place): value
        for place, shares in made.items()
        for layer, value in _by_layer(shares).items()
    }


def gold_over_best_other(lines: Iterable[Line]) -> dict[tuple[int], float]:
    """(layer,) -> points on a gold passage above the best other one, embeddings with their words;
    of questions that have both.
    """
    made = []
    for line in lines:
        shares, gold, other = passages(line), gold_places(line), best_other(line)
        if shares is not None and gold and other is not None:
            made.append(100 * (shares[:, gold].mean(1) - shares[:, other]))
    return _by_layer(made)


def _by_layer(made: Sequence[np.ndarray]) -> dict[tuple[int], float]:
    """(layer,) -> the mean over questions; {} without any."""
    means = np.mean(made, axis=0).tolist() if made else []
    return {(layer,): value for layer, value in enumerate(means, start=1)}
