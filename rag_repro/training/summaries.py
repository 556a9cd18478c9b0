"""The lessons of RECOMP's abstractive compressor: passages of a question, and what to say of them.

It learns to write the gold passages' supporting sentences, in the order of the reasoning,
or nothing where none of the passages is gold. The original learns summaries by GPT-3.5,
kept where they make the reader better and emptied where the reader does without (Xu et
al. 2023, section 3.2); gold labels stand for that here, so nothing is known of the reader.
A sentence that does not name what its passage is about is headed by the name, for a summary
has to stand alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from rag_repro.splitter import english

from .. import data
from ..data import candidates
from ..evaluation.normalise import holds
from ..methods.baselines.recomp import summary_prompt
from ..schema import Hit, Passage, Question
from .examples import Example


def public_thoughts(question: Question, gold: Sequence[Passage]) -> str:
    """The reasoning for a real question; "" where nothing that came with it leads to the answer.

    By what there is: a chain written by hand (IRCoT's demonstrations), evidence
    triples (2WikiMultihopQA), the sentences that annotators marked (HotpotQA), or
    the gold passage's first sentence that holds the answer (NQ).
    """
    meta = question.meta
    if "cot" in meta:
        return meta["cot"].partition("So the answer is")[0].strip()
    if meta.get("evidences"):
        return " ".join(f"The {relation} of {a} is {b}." for a, relation, b in meta["evidences"])
    if meta.get("supporting_facts"):
        return " ".join(sentence for _, sentence in marked(meta["supporting_facts"], gold))
    return next(filter(None, (first_with(question.answers, passage) for passage in gold)), "")


def first_with(answers: Sequence[str], passage: Passage) -> str:
    """The passage's first sentence that holds one of the answers; "" without any."""
    for sentence in english()(passage.text):
        if any(holds(sentence, answer) for answer in answers):
            return sentence.strip()
    return ""


def marked(marks: Sequence[tuple[str, int]], gold: Sequence[Passage]) -> list[tuple[Passage, str]]:
    """Sentences by title and number; borders are ours, so a number may lie beyond the last."""
    by_title = {p.title: (p, [s.strip() for s in english()(p.text)]) for p in gold}
    found = [(*by_title[title], n) for title, n in marks if title in by_title]
    return [(p, said[min(n, len(said) - 1)]) for p, said, n in found if said]


def summaries(
    dataset: str,
    seed: int,
    passages: Mapping[int, float],
    without: float = 0.2,
    questions: int | None = None,
    exposures: int = 1,
    mined: bool = False,
    data_dir: Path | None = None,
) -> Iterator[Example]:
    """A train split's first questions with passages of their own candidates, in random order.

    passages: how many in all -> how often. without: share of the lessons whose passages
    hold no gold one, and whose summary is empty. mined: the data set hands out no
    distractors, and each question gets the nearest passages that hold none of its answers.
    Each exposure draws anew. Questions to which no sentence leads are left out.
    """
    if not 0 <= without < 1:
        raise ValueError(f"without is {without}; a share lies between 0 and 1")
    asked = data.load(dataset, data_dir=data_dir, split="train").first(questions)
    if mined:
        asked = candidates.given(asked, str(max(passages)))
    random = Random(f"summary/{dataset}/{seed}")
    sizes, weights = list(passages), list(passages.values())
    for question in asked.questions:
        gold = [asked.corpus.by_id[i] for i in question.gold_ids]
        others = [asked.corpus.by_id[i] for i in question.candidates if i not in question.gold_ids]
        said = supporting(question, gold)
        for _ in range(exposures if said else 0):
            n = random.choices(sizes, weights)[0]
            bare = random.random() < without and bool(others)
            # The first ones: of the testbed and of mined lists the nearest, as a retriever finds
            # them; HotpotQA and 2WikiMultihopQA hand theirs out in an order of no meaning.
            chosen = others[:n] if bare else [*gold, *others[: max(0, n - len(gold))]]
            random.shuffle(chosen)
            hits = [Hit(p, 0.0, i) for i, p in enumerate(chosen, start=1)]
            # The prompt ends at "Summary:"; the blank behind it is the compressor's.
            target = "" if bare else " " + " ".join(said)
            source = f"summary:{dataset}" + (", of nothing" if bare else "")
            yield Example(summary_prompt(question, hits), target, source, question.id)


def supporting(question: Question, gold: Sequence[Passage]) -> list[str]:
    """The sentences that lead to the answer, each once; [] where nothing tells which.

    By what came with the question: annotators' marks (HotpotQA, 2WikiMultihopQA), the steps
    of its chain (the testbed), or else each accepted answer's first sentence (NQ).
    """
    if marks := question.meta.get("supporting_facts"):
        found = marked(marks, gold)
    elif question.steps:
        by_id = {passage.id: passage for passage in gold}
        steps = [(by_id[s.passage_id], s.answer) for s in question.steps if s.passage_id in by_id]
        found = [(passage, first_with((answer,), passage)) for passage, answer in steps]
    else:
        found = [(passage, first_with(question.answers, passage)) for passage in gold]
    said = [named(passage, sentence) for passage, sentence in found if sentence]
    return list(dict.fromkeys(said))


def named(passage: Passage, sentence: str) -> str:
    """The sentence on one line, headed by its passage's name where only the passage says that."""
    line = " ".join(sentence.split())
    name = passage.title.partition(" (")[0]
    return f"{name}: {line}" if holds(passage.text, name) and not holds(line, name) else line
