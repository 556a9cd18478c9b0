"""Scores of one prediction against the accepted answers: pure functions.

Every score lies in [0, 1] and is the best over the accepted answers, each
score maximised on its own (as HotpotQA's script and DRAGIN's `data.py` do). A
prediction of None (the reader did not follow the asked form) scores 0.

| here | DR-RAG | ERM4 | DRAGIN | R²AG |
| --- | --- | --- | --- | --- |
| `exact_match` | EM | "EM" of figure 3 | EM | - |
| `token_scores` | F1 | no (see `erm4_scores`) | F1, precision, recall | F1, first line |
| `accuracy` | Acc | - | accuracy of StrategyQA is EM | Acc, first line |
| `hit` | - | hit rate | - | - |
| `rouge_l` | - | - | - | Rouge (variant not named) |
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple
from unicodedata import normalize

import regex

from rag_repro.evaluation import normalise

CLOSED = frozenset({"yes", "no", "noanswer"})
_LISTED = re.compile(r";|,\s+(?!\d)")


class Overlap(NamedTuple):
    precision: float
    recall: float
    f1: float


_NOTHING = Overlap(0.0, 0.0, 0.0)


def first_line(prediction: str | None) -> str | None:
    """What R²AG scores (after lost-in-the-middle and LongBench): the first line with words."""
    return prediction and prediction.strip().split("\n", 1)[0].strip()


def outputs(prediction: str | None) -> tuple[str, ...]:
    """The answers of a reader that may give several: one a line (ERM4)."""
    return tuple(line.strip() for line in (prediction or "").split("\n") if line.strip())


def exact_match(prediction: str | None, answers: Sequence[str]) -> float:
    """1 where the normalised prediction equals a normalised answer."""
    if not prediction:
        return 0.0
    return float(normalise.answer(prediction) in map(normalise.answer, answers))


def accuracy(prediction: str | None, answers: Sequence[str], *, whole_words: bool = False) -> float:
    """1 where a normalised answer is contained in the normalised prediction.

    Adaptive-RAG's `calculate_acc`, which DR-RAG follows ("Acc", appendix A.1),
    over the *extracted* prediction; with `first_line` R²AG's Acc
    (`best_subspan_em`). Characters are compared, not words: the answer "no" is
    contained in "know"; `whole_words` tells how much that matters.
    """
    if not prediction:
        return 0.0
    occurs = normalise.holds if whole_words else normalise.contains
    return float(any(occurs(prediction, a) for a in answers))


def overlap(said: Sequence[str], wanted: Sequence[str]) -> Overlap:
    """Precision, recall and F1 of two bags of units."""
    same = sum((Counter(said) & Counter(wanted)).values())
    if not same:
        return _NOTHING
    precision, recall = same / len(said), same / len(wanted)
    return Overlap(precision, recall, 2 * precision * recall / (precision + recall))


def token_scores(prediction: str | None, answers: Sequence[str], *, closed: bool = True) -> Overlap:
    """Precision, recall and F1 over words (Chinese: characters).

    closed: HotpotQA's rule, also 2Wiki's and DRAGIN's: where prediction or
    answer is "yes", "no" or "noanswer", anything but equality scores 0.
    MuSiQue's script and LongBench (so R²AG) do without it.
    """
    if not prediction:
        return _NOTHING
    best = _NOTHING
    for answer in answers:
        said = normalise.units(prediction, beside=answer)
        wanted = normalise.units(answer, beside=prediction)
        if closed and said != wanted and {" ".join(said), " ".join(wanted)} & CLOSED:
            continue
        best = Overlap(*map(max, best, overlap(said, wanted)))
    return best


def answer_set_recall(prediction: str | None, readings: Sequence[Sequence[str]]) -> float:
    """Mean share of a question's readings whose answer the prediction holds.

    readings: for each way to understand the question its accepted answers
    (ERM4, section 2: recall over all labelled answers of CAmbigNQ). With one
    reading it is `accuracy` in whole words.
    """
    found = [accuracy(prediction, answers, whole_words=True) for answers in readings]
    return sum(found) / len(found)


def set_scores(prediction: str | None, readings: Sequence[Sequence[str]]) -> Overlap:
    """Token precision, recall and F1 against one answer of every reading together.

    Of each reading's answers the one with the best F1 counts, the first of equal ones; their
    words are joined. So who answers one of three readings well is precise and recalls a third,
    and who lists everything the other way round (ERM4, figure 3). With one reading it is
    `token_scores` of its best answer, yes and no being words like others.
    """
    if not readings:
        raise ValueError("set_scores needs at least one reading with its answers")
    units = partial(normalise.units, beside=prediction or "")
    said = normalise.units(prediction or "")
    wanted: list[str] = []
    for answers in readings:
        wanted += max(map(units, answers), key=lambda units: overlap(said, units).f1)
    return overlap(said, wanted)


def distinct(prediction: str | None) -> int:
    """How many different answers an output gives: its lines, cut at ";" and at commas.

    Not at a comma before a figure, which stands in numbers and dates. A name that holds a comma
    counts twice, and "A and B" once: for comparing outputs, not for its level.
    """
    parts = (part for line in outputs(prediction) for part in _LISTED.split(line))
    return len({said for part in parts if (said := normalise.answer(part))})


# ------------------------------------------------------------------------ ERM4


def hit(said: Sequence[str], answers: Sequence[str]) -> float:
    """ERM4's hit: an answer is a substring of the outputs joined by commas.

    As released: normalised by `normalise.erm4` first, articles stay, no word
    boundaries. An answer that normalises to nothing is passed over here (in
    the release it always hits).
    """
    joined = ",".join(normalise.erm4(s) for s in said)
    return float(any(a and a in joined for a in map(normalise.erm4, answers)))


def erm4_scores(said: Sequence[str], answers: Sequence[str]) -> Overlap:
    """ERM4's precision, recall and F1, which count *characters*.

    As in the released `my_eval_question_answering`: every (answer, output)
    pair becomes the answer if the output contains it, else the word "None";
    these are joined, the answers are joined, and characters are counted. So
    "Helium" for "Neon" scores 1. Kept for the comparison with table 1 only.
    """
    wanted = [a for a in map(normalise.erm4, answers) if a]
    given = [s for s in map(normalise.erm4, said) if s]
    pairs = [a if a in s else "None" for a in wanted for s in given]
    return overlap(normalise.erm4(",".join(pairs)), normalise.erm4(",".join(wanted)))


# ----------------------------------------------------------------------- ROUGE


# Letters that the rouge-score library's own tokenizer, which keeps a-z and 0-9 only, drops.
_FOREIGN = regex.compile(r"[^\P{L}\p{Latin}\p{Common}]")
_KEPT = regex.compile("[a-zA-Z0-9]")


class _Units:
    """A tokenizer for the rouge-score library: the units are joined by blanks already."""

    def tokenize(self, text: str) -> list[str]:
        return text.split()


@lru_cache(maxsize=2)
def _rouge(units: bool):
    from rouge_score.rouge_scorer import RougeScorer
    from rouge_score.tokenizers import DefaultTokenizer

    # It is handed in, since choosing it by itself the library sets up logging to stderr.
    tokenizer = _Units() if units else DefaultTokenizer(use_stemmer=False)
    return RougeScorer(["rougeL"], tokenizer=tokenizer)


def rouge_l(prediction: str | None, answers: Sequence[str]) -> float:
    """ROUGE-L F1 of the best answer: the rouge-score library's value, no stemming.

    Its tokenizer knows a-z and 0-9. Of an answer that holds letters of another script, or
    neither of the two, `normalise.units` are counted: words, of Chinese and its like characters.
    Where one answer is Chinese they are of all.
    LongBench (so R²AG) uses another library over jieba's words: levels differ,
    differences between methods hardly.
    """
    if not prediction or not answers:
        return 0.0
    said = normalize("NFC", prediction)
    chinese = any(map(normalise.is_chinese, answers))
    return max(_longest_common(said, normalize("NFC", answer), chinese) for answer in answers)


def _longest_common(said: str, wanted: str, units: bool) -> float:
    units = units or not _KEPT.search(wanted) or _FOREIGN.search(wanted) is not None
    if units:
        pair = normalise.units(wanted, beside=said), normalise.units(said, beside=wanted)
        wanted, said = map(" ".join, pair)
    return float(_rouge(units).score(wanted, said)["rougeL"].fmeasure)


def answer_length(prediction: str) -> float:
    """Words (Chinese: characters), nothing normalised away.

    Tokens are the reader's business (`Cost.new_tokens`): R²AG, section 4.5.
    """
    return float(normalise.size(prediction))
