"""The list of metrics: those of answers and of hits here, those of lines from their modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..schema import Passage
from . import answer_metrics as ans
from . import (
    attention_metrics,
    compression_metrics,
    cost_metrics,
    dynamic_metrics,
    influence_metrics,
    knowledge_metrics,
    line_metrics,
    pair_metrics,
    query_metrics,
    timing_metrics,
)
from . import retrieval_metrics as ret
from .answer_metrics import (
    accuracy,
    answer_length,
    answer_set_recall,
    distinct,
    erm4_scores,
    exact_match,
    hit,
    outputs,
    rouge_l,
    set_scores,
    token_scores,
)
from .metric import Metric, Scored, percent, readings
from .normalise import answer as normalise_answer


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
    return accuracy(s.prediction, s.question.interpretations[meant].answers, whole_words=True)


def _stands(words: str, passages: Sequence[Passage]) -> bool:
    return any(ret.has_answer(p, (words,)) for p in passages)


def _distracted(s: Scored) -> float | None:
    """None where nothing was said, or nobody knows what is gold; yes and no stand everywhere."""
    line, gold = _line(s), set(s.gold())
    if not line or not gold or not _open_text(s):
        return None
    if accuracy(line, s.answers) or normalise_answer(line) in ans.CLOSED:
        return 0.0
    others = [p for p in s.passages if p.id not in gold]
    told = [p for p in s.passages if p.id in gold]
    return float(_stands(line, others) and not _stands(line, told))


_OF_SCORED = (
    percent(
        "em",
        "EM",
        "prediction",
        lambda s: exact_match(s.prediction, s.answers),
        "the normalised prediction is an accepted answer",
    ),
    percent(
        "f1",
        "F1",
        "prediction",
        lambda s: token_scores(s.prediction, s.answers).f1,
        "token F1 of the best accepted answer; yes and no must be exact",
    ),
    percent(
        "precision",
        "P",
        "prediction",
        lambda s: token_scores(s.prediction, s.answers).precision,
        "token precision, as F1",
    ),
    percent(
        "recall_tokens",
        "R",
        "prediction",
        lambda s: token_scores(s.prediction, s.answers).recall,
        "token recall, as F1",
    ),
    percent(
        "acc",
        "Acc",
        "prediction",
        lambda s: accuracy(s.prediction, s.answers),
        "the prediction contains an accepted answer (DR-RAG, after Adaptive-RAG)",
    ),
    percent(
        "acc_words",
        "Acc (words)",
        "prediction",
        lambda s: accuracy(s.prediction, s.answers, whole_words=True),
        "as Acc, in whole words",
    ),
    percent(
        "acc_line",
        "Acc (line)",
        "prediction",
        lambda s: accuracy(_line(s), s.answers),
        "as Acc, over the prediction's first line (R²AG)",
    ),
    percent(
        "f1_line",
        "F1 (line)",
        "prediction",
        lambda s: token_scores(_line(s), s.answers, closed=False).f1,
        "token F1 of the first line, yes and no as other words (R²AG, LongBench)",
    ),
    percent(
        "hit",
        "Hit",
        "prediction",
        lambda s: hit(outputs(s.prediction), s.answers),
        "an accepted answer is a substring of the outputs (ERM4's hit rate)",
    ),
    percent(
        "f1_chars",
        "F1 (chars)",
        "prediction",
        lambda s: erm4_scores(outputs(s.prediction), s.answers).f1,
        "ERM4's released character-level F1",
    ),
    percent(
        "set_recall",
        "Set recall",
        "prediction",
        lambda s: answer_set_recall(s.prediction, readings(s.question)),
        "share of the question's readings that the prediction answers (ERM4, figure 3)",
    ),
    percent(
        "set_f1",
        "Set F1",
        "prediction",
        lambda s: set_scores(s.prediction, readings(s.question)).f1,
        "token F1 against an answer of every reading together (ERM4, figure 3)",
    ),
    percent(
        "set_precision",
        "Set P",
        "prediction",
        lambda s: set_scores(s.prediction, readings(s.question)).precision,
        "token precision, as set F1",
    ),
    percent(
        "set_recall_tokens",
        "Set R",
        "prediction",
        lambda s: set_scores(s.prediction, readings(s.question)).recall,
        "token recall, as set F1",
    ),
    Metric(
        "distinct",
        "Distinct",
        "answers",
        "prediction",
        None,
        lambda s: float(distinct(s.prediction)),
        "different answers in the output (ERM4, section 2)",
    ),
    percent(
        "intent_hit",
        "Intent hit",
        "prediction",
        _intent_hit,
        "the prediction holds, in whole words, an answer to what was meant",
    ),
    percent(
        "rouge_l",
        "ROUGE-L",
        "prediction",
        lambda s: rouge_l(s.prediction, s.answers),
        "ROUGE-L F1 of the best accepted answer",
    ),
    percent(
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
    percent(
        "recall",
        "Recall",
        "hits",
        _with_gold(ret.recall),
        "share of the gold passages among the hits (DR-RAG, table 5)",
    ),
    percent(
        "recall_static",
        "Recall (static)",
        "hits",
        _with_gold(ret.recall, "static"),
        "share of the static-relevant gold passages among the hits",
    ),
    percent(
        "recall_dynamic",
        "Recall (dynamic)",
        "hits",
        _with_gold(ret.recall, "dynamic"),
        "share of the dynamic-relevant gold passages among the hits",
    ),
    percent(
        "all_gold",
        "All gold",
        "hits",
        _with_gold(ret.all_found),
        "all gold passages are among the hits",
    ),
    percent(
        "any_gold",
        "Any gold",
        "hits",
        _with_gold(ret.any_found),
        "a gold passage is among the hits",
    ),
    percent(
        "gold_precision",
        "Gold share",
        "hits",
        lambda s: ret.precision(s.hit_ids, s.gold()) if s.hit_ids and s.gold() else None,
        "share of the hits that are gold",
    ),
    percent(
        "map",
        "MAP",
        "hits",
        _with_gold(ret.average_precision),
        "average precision of the ranking (R²AG, table 4)",
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
    percent(
        "answer_recall",
        "Answer recall",
        "texts",
        lambda s: ret.answer_recall(s.passages, readings(s.question)) if _open_text(s) else None,
        "share of the answer items that occur in the passages (ERM4, figure 2)",
    ),
    percent(
        "snippet_precision",
        "Snippet precision",
        "texts",
        lambda s: (
            ret.snippet_precision(s.passages, s.answers) if s.passages and _open_text(s) else None
        ),
        "share of the passages in which an answer occurs (ERM4, figure 2)",
    ),
    Metric(
        "shown_words",
        "Words shown",
        "words",
        "texts",
        None,
        lambda s: sum(answer_length(p.text) for p in s.passages) if s.passages else None,
        "length of the passages used, in words (Chinese: characters)",
    ),
    percent(
        "distracted",
        "Distracted",
        "texts",
        _distracted,
        "the first line is wrong, and stands in a passage that is not gold and in no gold one",
        higher=False,
    ),
)

METRICS: Mapping[str, Metric] = {
    m.name: m
    for table in (
        _OF_SCORED,
        line_metrics.TABLE,
        pair_metrics.TABLE,
        dynamic_metrics.TABLE,
        query_metrics.TABLE,
        compression_metrics.TABLE,
        knowledge_metrics.TABLE,
        timing_metrics.TABLE,
        influence_metrics.TABLE,
        attention_metrics.TABLE,
        cost_metrics.TABLE,
    )
    for m in table
}
