"""The lessons of ERM4's Knowledge Filter: a question, a passage, an explanation and a label.

    weak hypothesis      entailment: the passage is gold
    strong hypothesis    entailment: it is gold and holds the answer itself
    both                 contradiction: it is about another of the same name;   neutral: else

The paper has GPT-4 write explanation and label (section 3.2). Here the labels are gold
passages of train questions, and the explanation is the gold sentence that decides, so that
nothing is taught that the data do not say. Its reason for explanations, that a model taught
labels alone cannot classify, is tried by lessons without them (c24).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from .. import data
from ..data import candidates
from ..evaluation.knowledge_metrics import hypothesis_of
from ..evaluation.retrieval_metrics import tells_answer
from ..methods.erm4.knowledge_filter import (
    CONTRADICTION,
    ENTAILMENT,
    NEUTRAL,
    judging_prompt,
    label_of,
    written,
)
from ..methods.erm4.rewriter import SEPARATOR
from ..methods.erm4.settings import ERM4Settings
from ..schema import Hit, Passage, Question
from .examples import Example
from .summaries import supporting


def filtering(
    dataset: str,
    seed: int,
    hypothesis: str,
    explain: bool,
    filter: str = "nli",
    others: int = 2,
    questions: int | None = None,
    skip: int = 0,
    mined: bool = False,
    data_dir: Path | None = None,
) -> Iterator[Example]:
    """A train split's first questions, each beside its gold passages and `others` that are not.

    As many lessons take a passage as refuse one, of the larger part a sample: few passages hold
    an answer by themselves, and a filter that met four refusals for each took nothing at all.
    skip: leave out the first so many, which another part has.
    hypothesis, explain, filter: as the method's settings; "ask" has yes for entailment and no
    for the others. others: drawn from the question's own candidates, those of a gold passage's
    name first. mined: the data set hands out no candidates, and the nearest ten passages
    without an answer stand in for them.
    A passage of which no sentence decides is left out where an explanation is wanted.
    """
    settings = ERM4Settings(filter=filter, judge="taught", hypothesis=hypothesis, explain=explain)
    last = None if questions is None else skip + questions
    asked = data.load(dataset, data_dir=data_dir, split="train").first(last)
    if mined:
        asked = candidates.given(asked, "10")
    by_id = asked.corpus.by_id
    random = Random(f"filter/{dataset}/{seed}")
    made: dict[bool, list[tuple[int, Example]]] = {True: [], False: []}
    for question in asked.questions[skip:]:
        gold = [by_id[name] for name in question.gold_ids]
        rest = [by_id[name] for name in question.candidates if name not in question.gold_ids]
        random.shuffle(rest)
        rest.sort(key=lambda passage: not namesake(passage, gold))
        for passage in (*gold, *rest[:others]):
            label, said = judged(question, passage, gold, settings)
            if explain and (not said or SEPARATOR in said):
                continue
            taken, label = label == ENTAILMENT, label_of(filter, label)
            prompt = judging_prompt(question, Hit(passage, 0.0, 1), settings)
            target = written(label, said if explain else None)
            source = f"filter:{dataset} {hypothesis}, {label}"
            example = Example(prompt, target, source, question.id)
            made[taken].append((len(made[True]) + len(made[False]), example))
    least = min(map(len, made.values()))
    drawn = [one for part in made.values() for one in random.sample(part, least)]
    yield from (example for _, example in sorted(drawn, key=lambda one: one[0]))


def judged(
    question: Question, passage: Passage, gold: Sequence[Passage], settings: ERM4Settings
) -> tuple[str, str]:
    """The label of a passage, and why; "" where it is gold and no sentence of it tells."""
    title = " ".join(passage.title.split())
    if passage.id not in question.gold_ids:
        if namesake(passage, gold):
            return CONTRADICTION, f"The passage is about {title}, which only bears the same name."
        return NEUTRAL, f"The passage is about {title} and tells nothing of what is asked."
    said = " ".join(supporting(question, [passage]))
    hypothesis = hypothesis_of(settings.hypothesis, question.hops)
    if hypothesis == "weak" or tells_answer(question, passage):
        return ENTAILMENT, said and f"The passage says: {said}"
    return NEUTRAL, said and f"The passage says: {said} But the answer is not there."


def namesake(passage: Passage, gold: Sequence[Passage]) -> bool:
    """Whether it bears a gold passage's name and is no part of the same page.

    As "Ash (1984 film)" beside "Ash (band)".
    """
    return any(_name(passage) == _name(p) and passage.title != p.title for p in gold)


def _name(passage: Passage) -> str:
    return passage.title.partition(" (")[0]
