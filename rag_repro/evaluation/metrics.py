"""Every metric by name, and all of them for one record.

The functions themselves live in `answer_metrics`, `retrieval_metrics` and their
like. A score is a pure function of the question, the stored prediction and the
stored ids of the hits, so it can be computed again from records at any time;
some need no more than a record's line, and are computed from it whenever it is
read (`of_line`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rag_repro.evaluation import answer_metrics as ans
from rag_repro.evaluation import (
    attention_metrics,
    compression_metrics,
    cost_metrics,
    dynamic_metrics,
    knowledge_metrics,
    line_metrics,
    pair_metrics,
)
from rag_repro.evaluation import retrieval_metrics as ret
from rag_repro.evaluation.metric import Metric, Scored, accepted, described, readings
from rag_repro.evaluation.normalise import answer as normalise_answer
from rag_repro.schema import Passage, Question
from rag_repro.words import nearest


def _open_text(s: Scored) -> bool:
    """Yes and no occur everywhere: finding them in a passage tells nothing."""
    return bool(s.answers) and not s.closed


def _with_gold(fn: Callable[[Sequence[str], Sequence[str]], float], role: str | None = None):
    def scored(s: Scored) -> float | None:
        return fn(s.hit_ids, s.gold(role)) if s.gold(role) else None

    return scored


def _line(s: Scored) -> str | None:
    return ans.first_line(s.prediction)


def _intent_hit(s: Scored) -> float | None:
    """None where nobody knows what was meant."""
    meant = s.question.meta.get("intent")
    if meant is None:
        return None
    return ans.accuracy(s.prediction, s.question.interpretations[meant].answers, whole_words=True)


def _stands(words: str, passages: Sequence[Passage]) -> bool:
    return any(ret.has_answer(p, (words,)) for p in passages)


def _distracted(s: Scored) -> float | None:
    """None where nothing was said, or nobody knows what is gold; yes and no stand everywhere."""
    line, gold = _line(s), set(s.gold())
    if not line or not gold or not _open_text(s):
        return None
    if ans.accuracy(line, s.answers) or normalise_answer(line) in ans.CLOSED:
        return 0.0
    others = [p for p in s.passages if p.id not in gold]
    told = [p for p in s.passages if p.id in gold]
    return float(_stands(line, others) and not _stands(line, told))


_OF_SCORED = (
    described("em", lambda s: ans.exact_match(s.prediction, s.answers)),
    described("f1", lambda s: ans.token_scores(s.prediction, s.answers).f1),
    described("precision", lambda s: ans.token_scores(s.prediction, s.answers).precision),
    described("recall_tokens", lambda s: ans.token_scores(s.prediction, s.answers).recall),
    described("acc", lambda s: ans.accuracy(s.prediction, s.answers)),
    described("acc_words", lambda s: ans.accuracy(s.prediction, s.answers, whole_words=True)),
    described("acc_line", lambda s: ans.accuracy(_line(s), s.answers)),
    described("f1_line", lambda s: ans.token_scores(_line(s), s.answers, closed=False).f1),
    described("hit", lambda s: ans.hit(ans.outputs(s.prediction), s.answers)),
    described("f1_chars", lambda s: ans.erm4_scores(ans.outputs(s.prediction), s.answers).f1),
    described("set_recall", lambda s: ans.answer_set_recall(s.prediction, readings(s.question))),
    described("set_f1", lambda s: ans.set_scores(s.prediction, readings(s.question)).f1),
    described(
        "set_precision", lambda s: ans.set_scores(s.prediction, readings(s.question)).precision
    ),
    described(
        "set_recall_tokens", lambda s: ans.set_scores(s.prediction, readings(s.question)).recall
    ),
    described("distinct", lambda s: float(ans.distinct(s.prediction))),
    described("intent_hit", _intent_hit),
    described("rouge_l", lambda s: ans.rouge_l(s.prediction, s.answers)),
    described("unparsed", lambda s: float(s.prediction is None)),
    described(
        "length", lambda s: None if s.prediction is None else ans.answer_length(s.prediction)
    ),
    described("recall", _with_gold(ret.recall)),
    described("recall_static", _with_gold(ret.recall, "static")),
    described("recall_dynamic", _with_gold(ret.recall, "dynamic")),
    described("all_gold", _with_gold(ret.all_found)),
    described("any_gold", _with_gold(ret.any_found)),
    described(
        "gold_precision",
        lambda s: ret.precision(s.hit_ids, s.gold()) if s.hit_ids and s.gold() else None,
    ),
    described("map", _with_gold(ret.average_precision)),
    described("passages", lambda s: float(len(set(s.hit_ids)))),
    described(
        "answer_recall",
        lambda s: ret.answer_recall(s.passages, readings(s.question)) if _open_text(s) else None,
    ),
    described(
        "snippet_precision",
        lambda s: (
            ret.snippet_precision(s.passages, s.answers) if s.passages and _open_text(s) else None
        ),
    ),
    described(
        "shown_words",
        lambda s: sum(ans.answer_length(p.text) for p in s.passages) if s.passages else None,
    ),
    described("distracted", _distracted),
)

METRICS: Mapping[str, Metric] = {
    m.name: m
    for table in (
        _OF_SCORED,
        line_metrics.TABLE,
        pair_metrics.TABLE,
        dynamic_metrics.TABLE,
        compression_metrics.TABLE,
        knowledge_metrics.TABLE,
        dynamic_metrics.CHECKS,
        attention_metrics.TABLE,
        cost_metrics.TABLE,
    )
    for m in table
}


def get(name: str) -> Metric:
    """The metric of that name. Errors: ValueError, with the nearest name."""
    if name in METRICS:
        return METRICS[name]
    raise ValueError(
        f"there is no metric {name!r}{nearest(name, METRICS)}; there are: {', '.join(METRICS)}"
    )


def score(
    question: Question,
    prediction: str | None,
    hit_ids: Sequence[str],
    *,
    passages: Mapping[str, Passage] | None = None,
    answered: bool = True,
) -> dict[str, float]:
    """Every metric that a record stores and that has a value here, by name.

    prediction: None means asked and not given in the asked form: scores 0.
    answered: False where no reader was asked at all (a recall exhibit): metrics
    of the prediction are absent then. passages: needed for those that look
    into the text; absent without.

    Absent, never zero: metrics of gold passages where the question has none;
    shares of the hits where there is no hit; the answer's occurrence in
    passages where it is yes or no; all metrics of the prediction where the
    question has no accepted answer.

    Errors: KeyError where a hit is not among `passages`.
    """
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
    values = {m.name: m.fn(case) for m in METRICS.values() if defined[m.needs]}
    return {name: value for name, value in values.items() if value is not None}


def of_line(name: str, line: Mapping[str, Any]) -> float | None:
    """The metric out of a record's line: stored there, or computed from it.

    None where the line has no such score. Errors: ValueError for an unknown name.
    """
    metric = get(name)
    return metric.fn(line) if metric.needs == "line" else line["scores"].get(name)
