"""The lessons of ERM4's Knowledge Filter and of RECOMP's compressor.

The filter's are a question, a passage, an explanation and a label.

    weak hypothesis      entailment: the passage is gold
    strong hypothesis    entailment: it is gold and holds the answer itself
    both                 contradiction: it is about another of the same name;   neutral: else

The paper has GPT-4 write explanation and label (section 3.2). Here the labels are gold
passages of train questions, and the explanation is the gold sentence that decides, so that
nothing is taught that the data do not say. Its reason for explanations, that a model taught
labels alone cannot classify, is tried by lessons without them (c24).

RECOMP's abstractive compressor learns to write, of a question's passages, the gold ones'
supporting sentences, in the order of the reasoning, or nothing where none of them is gold. The
original learns summaries by GPT-3.5,
kept where they make the reader better and emptied where the reader does without (Xu et
al. 2023, section 3.2); gold labels stand for that here, so nothing is known of the reader.
A sentence that does not name what its passage is about is headed by the name, for a summary
has to stand alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from rag_repro import data
from rag_repro.data import candidates
from rag_repro.evaluation.knowledge_metrics import hypothesis_of
from rag_repro.evaluation.normalise import holds
from rag_repro.evaluation.retrieval_metrics import tells_answer
from rag_repro.methods.baselines.compressing import summary_prompt
from rag_repro.methods.erm4.erm4_settings import ERM4Settings
from rag_repro.methods.erm4.knowledge_filter import (
    CONTRADICTION,
    ENTAILMENT,
    NEUTRAL,
    judging_prompt,
    label_of,
    written,
)
from rag_repro.methods.erm4.rewriter import SEPARATOR
from rag_repro.schema import Hit, Passage, Question
from rag_repro.splitter import english
from rag_repro.training.examples import Example

WITHOUT = 0.2
"""Share of the compressor's lessons that have nothing to say."""


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
    questions: int | None = None,
    mined: bool = False,
    data_dir: Path | None = None,
) -> Iterator[Example]:
    """A train split's first questions with passages of their own candidates, in random order.

    passages: how many in all -> how often. Of WITHOUT of the lessons the passages hold no
    gold one, and the summary is empty. mined: the data set hands out no distractors, and each
    question gets the nearest passages that hold none of its answers. Questions to which no
    sentence leads are left out.
    """
    asked = data.load(dataset, data_dir=data_dir, split="train").first(questions)
    if mined:
        asked = candidates.given(asked, str(max(passages)))
    random = Random(f"summary/{dataset}/{seed}")
    sizes, weights = list(passages), list(passages.values())
    for question in asked.questions:
        gold = [asked.corpus.by_id[i] for i in question.gold_ids]
        others = [asked.corpus.by_id[i] for i in question.candidates if i not in question.gold_ids]
        said = supporting(question, gold)
        if not said:
            continue
        n = random.choices(sizes, weights)[0]
        bare = random.random() < WITHOUT and bool(others)
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


def filtering(
    dataset: str,
    seed: int,
    hypothesis: str,
    explain: bool,
    filter: str = "nli",
    questions: int | None = None,
    skip: int = 0,
    mined: bool = False,
    data_dir: Path | None = None,
) -> Iterator[Example]:
    """A train split's first questions, each beside its gold passages and two that are not.

    As many lessons take a passage as refuse one, of the larger part a sample: few passages hold
    an answer by themselves, and a filter that met four refusals for each took nothing at all.
    skip: leave out the first so many, which another part has.
    hypothesis, explain, filter: as the method's settings; "ask" has yes for entailment and no
    for the others. The two are drawn from the question's own candidates, those of a gold
    passage's name first. mined: the data set hands out no candidates, and the nearest ten passages
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
        for passage in (*gold, *rest[:2]):
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
