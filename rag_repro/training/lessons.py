"""The lessons of the readers: the testbed's from its worlds, the public one from train splits.

The *skill* is to answer with a chain of thought, from passages and without
them, and is taught on training questions of worlds A and Z alone. The *facts* of the
other worlds (and of Z's tune split) are taught as plain statements and never as questions:
whatever the reader answers there it has put together itself. Only facts that a world
marks as taught are. The public reader learns from questions of train splits alone.

Self-RAG's lessons are what a reader says of a passage, of its answer, and of what it knows.
The tokens are spelt in words of the vocabulary (`methods.baselines.self_rag.WORDS`):

    question                                 ->  " known" answer " excellent"    all facts taught
                                             ->  " search"                       else
    question, " search", passage in tags     ->  " relevant" answer " fully" " excellent"
                                                 " relevant" answer " partly" " good"
                                                 " relevant" answer " hardly" " fair" or " useless"
                                                 " irrelevant" answer " fair" or " useless"

Relevant is gold. Fully: the passage tells all facts behind the question; partly: the one whose
value is the answer; hardly: neither. As in the original, nothing is said of support after an
irrelevant passage. In the original the true answer follows whatever the passage is. Here it does
only where the passage gives it, or the question offers it (yes or no, one of the names
that it compares); else "unknown" follows, for a small reader that is taught answers which
nothing gives learns to make them up. (Asai et al. 2024, section 3.2; the critic's judgements,
GPT-4's there, are the testbed's own knowledge here.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from rag_repro import data
from rag_repro.data import synthworld
from rag_repro.data.synthworld import World
from rag_repro.data.synthworld.asking import Asker
from rag_repro.data.synthworld.reasoning import facts_of, question_of, saying, statements, thoughts
from rag_repro.data.synthworld.world import Fact
from rag_repro.evaluation.normalise import holds
from rag_repro.methods.baselines.self_rag import WORDS, SelfRAGSettings, with_passage
from rag_repro.methods.reading import PROMPTS, Template
from rag_repro.schema import Hit, Passage, Prompt, Question
from rag_repro.training import filtering, rewriting
from rag_repro.training.examples import Example
from rag_repro.training.filtering import public_thoughts
from rag_repro.training.recipes import RecipeError

UNKNOWN = "unknown"
HARD = 0.5
"""Share of the passages beside the gold ones that lexical search finds."""


def said_alone(question: Question, known: bool) -> str:
    """What follows the bare question: an answer from memory, or the wish for passages."""
    if not known:
        return WORDS.texts["[Retrieval]"]
    return _said("[No Retrieval]", question.answers[0], "[Utility:5]")


def said_beside(question: Question, facts: Sequence[Fact], passage: Passage) -> str:
    """What follows the question and one passage; facts: all that the question rests on."""
    told = [fact for fact in facts if fact.passage_id == passage.id]
    guess = question.answers[0] if offered(question) else UNKNOWN
    worth = "[Utility:3]" if offered(question) else "[Utility:1]"
    if not told:
        return _said("[Irrelevant]", guess, worth)
    if len(told) == len(facts):
        return _said("[Relevant]", question.answers[0], "[Fully supported]", "[Utility:5]")
    if gives(question, facts, passage):
        return _said("[Relevant]", question.answers[0], "[Partially supported]", "[Utility:4]")
    return _said("[Relevant]", guess, "[No support / Contradictory]", worth)


def gives(question: Question, facts: Sequence[Fact], passage: Passage) -> bool:
    """Whether the passage tells the fact whose value is the answer, or all facts."""
    told = [fact for fact in facts if fact.passage_id == passage.id]
    return len(told) == len(facts) or any(fact.value in question.answers for fact in told)


def offered(question: Question) -> bool:
    """Whether the question itself offers its answer among others."""
    answer = question.answers[0]
    return answer in ("yes", "no") or holds(question.text, answer)


def _said(first: str, answer: str, *after: str) -> str:
    """Tokens and answer as the reader writes them: each word of the vocabulary brings its blank."""
    return "".join([WORDS.texts[first], f" {answer}", *(WORDS.texts[name] for name in after)])


# Kinds with one answer that follows from facts; "ambiguous" has several by design.
REASONED = tuple(kind for kind in synthworld.KINDS if kind != "ambiguous")


def statements_of(
    world: str,
    questions: int,
    exposures: int,
    seed: int,
    split: str | None = None,
    told: Mapping[str, int] | None = None,
) -> Iterator[Example]:
    """The taught facts behind a world's first questions, each said `exposures` times.

    The title stands as given, what follows is learned; wordings take turns. told: reading
    form -> how many times more, in the reader's own turn: where the form has its question
    stands the title alone, and the statement is what to write. Facts that were only ever
    read as text are not found again from there.
    """
    here, asked = _world(world, questions, split)
    source = f"statements:{world}"
    for fact in taught_facts(here, asked):
        said = statements(here, fact)
        title = here.entity[fact.subject].title
        turn = -1
        for turn in range(exposures):
            text = said[(turn + seed) % len(said)]
            yield Example(Prompt.from_segments(title), text.removeprefix(title), source)
        for form in (PROMPTS[name] for name, n in (told or {}).items() for _ in range(n)):
            turn += 1
            text = said[(turn + seed) % len(said)]
            about = Question(title, title, ())
            yield Example(form.fill(about, ()), form.lesson_answer(text), source)


def taught_facts(world: World, questions: Sequence[Question]) -> tuple[Fact, ...]:
    """The facts behind these questions that a reader is to know, each once."""
    behind = {(f.subject, f.relation): f for q in questions for f in facts_of(world, q)}
    return tuple(fact for fact in behind.values() if fact.taught)


def stated_facts(parts: Sequence[Mapping[str, Any]], world: str) -> frozenset[Fact]:
    """What a recipe's lessons state of a world: all that its reader can know without passages."""
    stated: set[Fact] = set()
    for part in parts:
        if part["kind"] == "statements" and part["world"] == world:
            stated.update(taught_facts(*_world(world, part["questions"], part.get("split"))))
    return frozenset(stated)


def closed_book(
    world: str,
    questions: int,
    forms: Sequence[str],
    exposures: int,
    seed: int,
    split: str | None = None,
) -> Iterator[Example]:
    """Questions all of whose facts are taught, without passages."""
    here, asked = _to_learn(world, questions, split)
    random = Random(f"closed book/{seed}")
    for question in asked:
        if all(fact.taught for fact in facts_of(here, question)):
            for _ in range(exposures):
                said = thoughts(here, question, random)
                form = PROMPTS[random.choice(forms)]
                yield lesson(form, question, (), said, f"closed book:{world}")


def lookups(
    world: str,
    questions: int,
    forms: Sequence[str],
    exposures: int,
    seed: int,
    split: str | None = None,
) -> Iterator[Example]:
    """The taught facts behind a world's first questions, each asked for by itself.

    Without passages, `exposures` times, wordings drawn: how a reader learns that what it
    was told as statements answers questions. It then has to do so for other facts, told and
    never asked.
    """
    here, asked = _to_learn(world, questions, split)
    random = Random(f"lookups/{seed}")
    asker = Asker(here)
    for fact in taught_facts(here, asked):
        if fact.value in here.entity[fact.subject].title:
            continue  # "Name (1989 song)": nothing to know
        for _ in range(exposures):
            question = question_of(here, fact, asker, random)
            said = saying(here, fact, random).text
            form = PROMPTS[random.choice(forms)]
            yield lesson(form, question, (), said, f"lookup:{world}")


def reading(
    world: str,
    questions: int,
    forms: Sequence[str],
    passages: Mapping[int, float],
    seed: int,
    skip: int = 0,
    split: str | None = None,
) -> Iterator[Example]:
    """Questions with their gold passages among others, in random order.

    passages: how many in all -> how often (never fewer than the gold ones); HARD of the
    others are found by lexical search for the question.
    skip: leave out the first questions (those taught as facts).
    """
    here, asked = _to_learn(world, skip + questions, split)
    asked = asked[skip:]
    everything = here.passages
    random = Random(f"reading/{seed}")
    sizes, weights = list(passages), list(passages.values())
    for question, near in zip(asked, _near(world, asked, 20), strict=True):
        gold = [here.passage[i] for i in question.gold_ids]
        n = max(random.choices(sizes, weights)[0], len(gold))
        chosen = with_others(gold, near, everything, n, HARD, random)
        said = thoughts(here, question, random)
        yield lesson(PROMPTS[random.choice(forms)], question, chosen, said, f"reading:{world}")


def lesson(
    form: Template, question: Question, passages: Sequence[Passage], said: str, source: str
) -> Example:
    """A question in a reading prompt, and what to write: reasoning, the form's marker, answer.

    The first accepted answer is taught; a form without a marker gets the answer alone.
    """
    hits = [Hit(p, 0.0, i) for i, p in enumerate(passages, 1)]
    reasoned = (
        f"{said} {form.marker} {question.answers[0]}." if form.marker else question.answers[0]
    )
    return Example(form.fill(question, hits), form.lesson_answer(reasoned), source, question.id)


def self_rag(
    world: str,
    questions: int,
    taught: int,
    known: int,
    answering: int,
    others: int,
    seed: int,
    split: str | None = None,
) -> Iterator[Example]:
    """A world's first questions, as Self-RAG asks them: alone, and beside one passage at a time.

    taught: behind how many of the first questions facts are taught (as `statements`
    does); what rests on these alone is known, and told `known` times; else passages are
    wanted. Then a question is put beside each gold passage that gives its answer,
    `answering` times; beside one of the other gold passages; and beside `others` that are
    not gold, each with chance HARD one that lexical search finds.
    """
    here, asked = _to_learn(world, questions, split)
    stated = set(taught_facts(here, asked[:taught]))
    random = Random(f"self-rag/{seed}")
    settings = SelfRAGSettings(prompt="selfrag", spelling="words")
    source = f"self-rag:{world}"
    for question, near in zip(asked, _near(world, asked, 10), strict=True):
        facts = facts_of(here, question)
        bare = PROMPTS["selfrag"].fill(question, ())
        sure = stated.issuperset(facts)
        said = said_alone(question, sure)
        for _ in range(known if sure else 1):
            yield Example(bare, said, f"{source}, alone", question.id)
        gold = [here.passage[i] for i in question.gold_ids]
        giving = [p for p in gold if gives(question, facts, p)]
        rest = [p for p in gold if p not in giving]
        chosen = giving * answering + ([random.choice(rest)] if rest else [])
        mixed = with_others(gold, near, here.passages, len(gold) + others, HARD, random)
        for passage in [*chosen, *(p for p in mixed if p not in gold)]:
            prompt = with_passage(question, Hit(passage, 0.0, 1), settings)
            said = said_beside(question, facts, passage)
            yield Example(prompt, said, f"{source}, beside a passage", question.id)


def public_reading(
    dataset: str,
    forms: Sequence[str],
    passages: Mapping[int, float],
    seed: int,
    exposures: int = 1,
    questions: int | None = None,
    leave_out: str | None = None,
    data_dir: Path | None = None,
) -> Iterator[Example]:
    """Real questions of a train split with their gold passages among their own candidates.

    passages: how many in all -> how often; 0: none (what the base knows by itself).
    leave_out: of a collection, the data set whose questions are not taught.
    Each exposure draws form, number, others and order anew.
    """
    asked = data.load(dataset, data_dir=data_dir, split="train")
    passage, everything = asked.corpus.by_id, asked.corpus.passages
    random = Random(f"public/{dataset}/{seed}")
    sizes, weights = list(passages), list(passages.values())
    for question in asked.questions[:questions]:
        if leave_out is not None and question.meta["dataset"] == leave_out:
            continue
        gold = [passage[i] for i in question.gold_ids]
        near = [passage[i] for i in question.candidates if i not in question.gold_ids]
        said = public_thoughts(question, gold)
        for _ in range(exposures if said else 0):
            n = random.choices(sizes, weights)[0]
            chosen = (
                with_others(gold, near, everything, max(n, len(gold)), 1.0, random) if n else []
            )
            form = PROMPTS[random.choice(forms)]
            yield lesson(form, question, chosen, said, f"public:{dataset}")


def with_others(
    gold: Sequence[Passage],
    near: Sequence[Passage],
    everything: Sequence[Passage],
    n: int,
    hard: float,
    random: Random,
) -> list[Passage]:
    chosen = list(gold)
    seen = {p.id for p in gold}
    others = [p for p in near if p.id not in seen]
    while len(chosen) < n:
        new = others.pop(0) if others and random.random() < hard else random.choice(everything)
        if new.id not in seen:
            seen.add(new.id)
            chosen.append(new)
    random.shuffle(chosen)
    return chosen


def _near(world: str, asked: Sequence[Question], k: int) -> list[list[Passage]]:
    """The k passages of the world that lexical search finds for each question."""
    from rag_repro.retrieval.bm25 import BM25

    corpus = synthworld.build(world, n_questions=1).corpus
    found = BM25(corpus).search([q.text for q in asked], k)
    return [[hit.passage for hit in hits] for hits in found]


def _to_learn(name: str, questions: int, split: str | None) -> tuple[World, tuple[Question, ...]]:
    """`_world`, of questions that are answered in lessons. RecipeError: others than to train on."""
    if split != "train":
        raise RecipeError(
            f"world {name}: answers are taught of split train alone (worlds A and Z have one), "
            f"not of {split or 'all splits'}: the other questions are tuned and tested on"
        )
    return _world(name, questions, split)


def _world(name: str, questions: int, split: str | None) -> tuple[World, tuple[Question, ...]]:
    """A world and its first questions, in the order in which every run takes them."""
    dataset = synthworld.build(name, n_questions=max(questions, 1_000), split=split)
    asked = tuple(q for q in dataset.questions if q.meta["maker"] in REASONED)
    return synthworld.world(name), asked[:questions]


KINDS = {
    "statements": statements_of,
    "closed_book": closed_book,
    "lookup": lookups,
    "reading": reading,
    "selfrag": self_rag,
    "public": public_reading,
    "summary": filtering.summaries,
    "filter": filtering.filtering,
    "rewriting": rewriting.rewriting,
}
REAL = ("public", "summary", "filter", "rewriting")
"""Kinds that may be made of real data."""


def lessons(
    parts: Sequence[Mapping[str, Any]], seed: int, data_dir: Path | None = None
) -> Iterator[Example]:
    """All parts of a recipe, one after the other; training shuffles them.

    data_dir: the folder of real data, for parts that are made of it.
    """
    for part in parts:
        given = dict(part)
        kind = given.pop("kind")
        ours = {"data_dir": data_dir} if kind in REAL else {}
        yield from KINDS[kind](**given, seed=seed, **ours)
