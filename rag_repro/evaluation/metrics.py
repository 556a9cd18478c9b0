"""Every metric by name, and all of them for one record.

The functions themselves live in `answer_metrics`, `retrieval_metrics` and their
like. A score is a pure function of the question, the stored prediction and the
stored ids of the hits, so it can be computed again from records at any time;
some need no more than a record's line, and are computed from it whenever it is
read (`of_line`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..schema import Passage, Question
from ..words import nearest
from .metric import Metric, Scored, accepted
from .registry import METRICS

__all__ = ["METRICS", "Metric", "UnknownMetricError", "get", "of_line", "score"]


class UnknownMetricError(ValueError):
    """A metric name that is not in the registry."""


def get(name: str) -> Metric:
    """The metric of that name. Errors: UnknownMetricError, with the nearest name."""
    if name in METRICS:
        return METRICS[name]
    raise UnknownMetricError(
        f"there is no metric {name!r}{nearest(name, METRICS)}; there are: {', '.join(METRICS)}"
    )


def score(
    question: Question,
    prediction: str | None,
    hit_ids: Sequence[str],
    *,
    passages: Mapping[str, Passage] | None = None,
    names: Iterable[str] | None = None,
    answered: bool = True,
) -> dict[str, float]:
    """Every metric that a record stores and that has a value here, by name.

    prediction: None means asked and not given in the asked form: scores 0.
    answered: False where no reader was asked at all (a recall exhibit): metrics
    of the prediction are absent then. passages: needed for those that look
    into the text; absent without. names: only these.

    Absent, never zero: metrics of gold passages where the question has none;
    shares of the hits where there is no hit; the answer's occurrence in
    passages where it is yes or no; all metrics of the prediction where the
    question has no accepted answer.

    Errors: UnknownMetricError; KeyError where a hit is not among `passages`.
    """
    chosen = METRICS.values() if names is None else [get(name) for name in names]
    ids = tuple(dict.fromkeys(hit_ids))
    missing = [] if passages is None else [i for i in ids if i not in passages]
    if missing:
        raise KeyError(
            f"question {question.id!r}: hit {missing[0]!r} is not among the given passages; "
            "score it over the corpus that it was retrieved from"
        )
    texts = () if passages is None else tuple(passages[i] for i in ids)
    answers = accepted(question)
    case = Scored(question, answers, prediction, ids, texts)
    defined = {
        "prediction": answered and bool(answers),
        "hits": True,
        "texts": passages is not None,
        "line": False,
    }
    values = {m.name: m.fn(case) for m in chosen if defined[m.needs]}
    return {name: value for name, value in values.items() if value is not None}


def of_line(name: str, line: Mapping[str, Any]) -> float | None:
    """The metric out of a record's line: stored there, or computed from it.

    None where the line has no such score. Errors: UnknownMetricError.
    """
    metric = get(name)
    return metric.fn(line) if metric.needs == "line" else line["scores"].get(name)
