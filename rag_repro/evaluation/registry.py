"""What a metric is, and the list of them. `metrics` is the front door."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..schema import Passage, Question
from . import answer_metrics as ans
from . import cost_metrics as costs
from . import line_metrics as lines
from . import pair_metrics as pairs
from . import retrieval_metrics as ret
from .answer_metrics import (
    accuracy,
    answer_length,
    answer_set_recall,
    erm4_scores,
    exact_match,
    hit,
    outputs,
    rouge_l,
    token_scores,
)
from .normalise import answer as normalise_answer


def readings(question: Question) -> tuple[tuple[str, ...], ...]:
    """The accepted answers of each way to understand the question.

    One group for an unambiguous question, one for each interpretation of an
    ambiguous one (interpretations without answers are left out).
    """
    groups = tuple(i.answers for i in question.interpretations if i.answers)
    return groups or ((question.answers,) if question.answers else ())


def accepted(question: Question) -> tuple[str, ...]:
    """All accepted answers, those of every interpretation among them, once each.

    So an ambiguous question is answered by any of its readings, as in AmbigNQ
    and in ERM4's labels; `set_recall` asks for all of them.
    """
    flat = [*question.answers, *(a for i in question.interpretations for a in i.answers)]
    return tuple(dict.fromkeys(flat))


@dataclass(frozen=True, slots=True)
class Scored:
    """What a metric sees: one question with one record's outcome."""

    question: Question
    answers: tuple[str, ...]
    prediction: str | None
    hit_ids: tuple[str, ...]
    passages: tuple[Passage, ...]

    @property
    def closed(self) -> bool:
        return bool(self.answers) and all(normalise_answer(a) in ans.CLOSED for a in self.answers)

    def gold(self, role: str | None = None) -> tuple[str, ...]:
        wanted = [g for g in self.question.gold if role is None or g.role == role]
        return tuple(dict.fromkeys(g.passage_id for g in wanted))


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    unit: "percent" (scores in [0, 1], printed times `scale` = 100) or the
    name of what is counted. needs: "prediction"; "hits" (their ids); "texts"
    (the hits' passages); "line" (of a record, see `line_metrics`, `cost_metrics`). fn takes a
    `Scored`, or the line, and gives None where the score is not defined.
    """

    name: str
    symbol: str
    unit: str
    needs: Literal["prediction", "hits", "texts", "line"]
    higher_is_better: bool | None
    fn: Callable[[Any], float | None]
    meaning: str

    @property
    def scale(self) -> float:
        return 100.0 if self.unit == "percent" else 1.0

    @property
    def of_answers(self) -> bool:
        """Whether it says how good an answer is, so that a reader must be able to read."""
        return self.needs == "prediction" and self.higher_is_better is True

    @property
    def span(self) -> float | None:
        """The largest difference two scores can have; None where unbounded."""
        return 1.0 if self.unit == "percent" else None


def _open_text(s: Scored) -> bool:
    """Yes and no occur everywhere: finding them in a passage tells nothing."""
    return bool(s.answers) and not s.closed


def _with_gold(fn: Callable[[Sequence[str], Sequence[str]], float], role: str | None = None):
    def scored(s: Scored) -> float | None:
        return fn(s.hit_ids, s.gold(role)) if s.gold(role) else None

    return scored


def _percent(name, symbol, needs, fn, meaning, higher=True) -> Metric:
    return Metric(name, symbol, "percent", needs, higher, fn, meaning)


def _line(s: Scored) -> str | None:
    return ans.first_line(s.prediction)


_ALL = (
    _percent(
        "em",
        "EM",
        "prediction",
        lambda s: exact_match(s.prediction, s.answers),
        "the normalised prediction is an accepted answer",
    ),
    _percent(
        "f1",
        "F1",
        "prediction",
        lambda s: token_scores(s.prediction, s.answers).f1,
        "token F1 of the best accepted answer; yes and no must be exact",
    ),
    _percent(
        "precision",
        "P",
        "prediction",
        lambda s: token_scores(s.prediction, s.answers).precision,
        "token precision, as F1",
    ),
    _percent(
        "recall_tokens",
        "R",
        "prediction",
        lambda s: token_scores(s.prediction, s.answers).recall,
        "token recall, as F1",
    ),
    _percent(
        "acc",
        "Acc",
        "prediction",
        lambda s: accuracy(s.prediction, s.answers),
        "the prediction contains an accepted answer (DR-RAG, after Adaptive-RAG)",
    ),
    _percent(
        "acc_words",
        "Acc (words)",
        "prediction",
        lambda s: accuracy(s.prediction, s.answers, whole_words=True),
        "as Acc, in whole words",
    ),
    _percent(
        "acc_line",
        "Acc (line)",
        "prediction",
        lambda s: accuracy(_line(s), s.answers),
        "as Acc, over the prediction's first line (R²AG)",
    ),
    _percent(
        "f1_line",
        "F1 (line)",
        "prediction",
        lambda s: token_scores(_line(s), s.answers, closed=False).f1,
        "token F1 of the first line, yes and no as other words (R²AG, LongBench)",
    ),
    _percent(
        "hit",
        "Hit",
        "prediction",
        lambda s: hit(outputs(s.prediction), s.answers),
        "an accepted answer is a substring of the outputs (ERM4's hit rate)",
    ),
    _percent(
        "f1_chars",
        "F1 (chars)",
        "prediction",
        lambda s: erm4_scores(outputs(s.prediction), s.answers).f1,
        "ERM4's released character-level F1",
    ),
    _percent(
        "set_recall",
        "Set recall",
        "prediction",
        lambda s: answer_set_recall(s.prediction, readings(s.question)),
        "share of the question's readings that the prediction answers (ERM4, figure 3)",
    ),
    _percent(
        "rouge_l",
        "ROUGE-L",
        "prediction",
        lambda s: rouge_l(s.prediction, s.answers),
        "ROUGE-L F1 of the best accepted answer",
    ),
    _percent(
        "unparsed",
        "Unparsed",
        "prediction",
        lambda s: float(s.prediction is None),
        "the reader did not follow the asked form",
        higher=False,
    ),
    Metric(
        "length",
        "Length",
        "words",
        "prediction",
        None,
        lambda s: None if s.prediction is None else answer_length(s.prediction),
        "length of the prediction in words (Chinese: characters)",
    ),
    _percent(
        "recall",
        "Recall",
        "hits",
        _with_gold(ret.recall),
        "share of the gold passages among the hits (DR-RAG, table 5)",
    ),
    _percent(
        "recall_static",
        "Recall (static)",
        "hits",
        _with_gold(ret.recall, "static"),
        "share of the static-relevant gold passages among the hits",
    ),
    _percent(
        "recall_dynamic",
        "Recall (dynamic)",
        "hits",
        _with_gold(ret.recall, "dynamic"),
        "share of the dynamic-relevant gold passages among the hits",
    ),
    _percent(
        "all_gold",
        "All gold",
        "hits",
        _with_gold(ret.all_found),
        "all gold passages are among the hits",
    ),
    _percent(
        "any_gold",
        "Any gold",
        "hits",
        _with_gold(ret.any_found),
        "a gold passage is among the hits",
    ),
    _percent(
        "gold_precision",
        "Gold share",
        "hits",
        lambda s: ret.precision(s.hit_ids, s.gold()) if s.hit_ids and s.gold() else None,
        "share of the hits that are gold",
    ),
    _percent(
        "map",
        "MAP",
        "hits",
        _with_gold(ret.average_precision),
        "average precision of the ranking (R²AG, table 5)",
    ),
    Metric(
        "passages",
        "Passages",
        "passages",
        "hits",
        None,
        lambda s: float(len(set(s.hit_ids))),
        "number of passages used (DR-RAG, table 5: actual numbers)",
    ),
    _percent(
        "answer_recall",
        "Answer recall",
        "texts",
        lambda s: ret.answer_recall(s.passages, readings(s.question)) if _open_text(s) else None,
        "share of the answer items that occur in the passages (ERM4, figure 2)",
    ),
    _percent(
        "snippet_precision",
        "Snippet precision",
        "texts",
        lambda s: (
            ret.snippet_precision(s.passages, s.answers) if s.passages and _open_text(s) else None
        ),
        "share of the passages in which an answer occurs (ERM4, figure 2)",
    ),
    Metric(
        "entropy",
        "Entropy",
        "nats",
        "line",
        None,
        lambda line: line.get("entropy"),
        "highest entropy of a token of the answer, where the method had its reader traced",
    ),
    _percent(
        "useless",
        "Useless",
        "line",
        lines.useless,
        "share of the passages handed on that are not gold (DR-RAG, section 4.2)",
        higher=False,
    ),
    Metric(
        "pairs",
        "Pairs",
        "pairs",
        "line",
        None,
        lines.pairs,
        "number of items that a classifier was asked about",
    ),
    Metric(
        "removed",
        "Removed",
        "passages",
        "line",
        None,
        lines.number_removed,
        "number of passages judged and not handed on",
    ),
    _percent(
        "removed_gold",
        "Gold removed",
        "line",
        lines.removed_gold,
        "share of gold among the passages judged and not handed on",
        higher=False,
    ),
    _percent(
        "lost_gold",
        "Gold lost",
        "line",
        lines.lost_gold,
        "a gold passage was judged and not handed on",
        higher=False,
    ),
    _percent(
        "searched",
        "Searched",
        "line",
        lines.searched,
        "an adaptive method decided to fetch passages",
        higher=None,
    ),
    *(
        _percent(name, symbol, "line", fn, meaning, better)
        for name, symbol, fn, meaning, better in pairs.TABLE
    ),
    *(
        Metric(name, symbol, unit, "line", False, fn, meaning)
        for name, symbol, unit, fn, meaning in costs.TABLE
    ),
)

METRICS: Mapping[str, Metric] = {m.name: m for m in _ALL}
