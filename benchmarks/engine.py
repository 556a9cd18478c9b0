"""Batches of 16 that share the exemplars against one question at a time without reuse.

Both sides run `engine.run` on the same reader's weights with the same linear
layers; what differs is how many questions are in flight and whether a prompt's
beginning is computed once or for each. Questions are of the testbed, of all
its kinds in turn; the prompt is the study's "short" one, with six
exemplars, after one search.

Two lengths of answer are measured, since the gain depends on them: what both
sides must do alike is reading each question's own tokens, and nearly all of a
short answer's time goes there. `ratio` is of answers of NEW tokens, as a
reasoning reader writes them; `short` has the study's single_step as it is, with
its own longest answer, which ends at the line's end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from statistics import mean, median
from typing import Any

from benchmarks import timing
from rag_repro import data, engine
from rag_repro.lm.load import Loaded
from rag_repro.methods.base import Settings, get
from rag_repro.methods.reading import PROMPTS
from rag_repro.methods.stages import retrieve
from rag_repro.schema import Answer, Generate, Question
from rag_repro.schema.dataset import Dataset

GOAL = 4
NEW = 40
BATCH = 16
BATCHED, ALONE = "batch 16, prefix shared", "batch 1, no reuse"


def written(question: Question, settings: Settings) -> engine.Flow:
    """single_step whose reader writes on past the line's end, to the longest answer."""
    hits = yield from retrieve(question, settings)
    prompt = PROMPTS[settings.prompt].fill(question, hits)
    out = yield Generate(prompt, max_new_tokens=settings.max_new_tokens)
    return Answer(text=out.text, hits=tuple(hits))


def main(argv: Sequence[str] | None = None, loaded: Loaded | None = None) -> None:
    """loaded: a model instead of the one that --reader names."""
    given = timing.parser(__doc__.splitlines()[0], questions=64, repeats=3, k=3).parse_args(argv)
    loaded = loaded or timing.weights(given.reader, given.device)
    dataset = data.load("world-B")
    single_step = get("single_step")
    short = single_step.configure({"prompt": "short", "k": given.k})
    long = single_step.configure({"prompt": "short", "k": given.k, "max_new_tokens": NEW})
    sides, rows = {}, {}
    for name, method, settings in (("long", written, long), ("short", single_step.run, short)):
        tasks = [
            engine.Task(question, method, settings)
            for question in timing.first(dataset, given.questions)
        ]
        sides[name], times = measure(loaded, dataset, tasks, given.repeats)
        rows |= {f"{name} answers, {side}": taken for side, taken in times.items()}
    facts = {
        "benchmark": "engine",
        **sides["long"],
        "equal_answers": all(one["equal_answers"] for one in sides.values()),
        "short": sides["short"],
        "questions": given.questions,
        "repeats": given.repeats,
        "exemplars": 6,
        "passages": given.k,
        "batch": BATCH,
        **timing.setting(loaded),
    }
    goals = [told(name, one) for name, one in sides.items()]
    goals.append(f"goal: {GOAL} times the questions a second, equal answers")
    title = f"seconds for {given.questions} questions of the testbed"
    timing.show(title, facts, rows, as_json=given.json, goals=goals)


def measure(
    loaded: Loaded, dataset: Dataset, tasks: Sequence[engine.Task], repeats: int
) -> tuple[dict[str, Any], dict[str, timing.Times]]:
    """Facts of one length of answers, and each side's seconds for all questions."""
    from rag_repro.lm.local import LocalReader
    from rag_repro.retrieval import BM25

    readers = {
        BATCHED: LocalReader(loaded, batch_size=BATCH),
        ALONE: LocalReader(loaded, batch_size=1, reuse=False),
    }
    sizes = {BATCHED: BATCH, ALONE: 1}
    times, answers = in_turns(tasks, readers, sizes, BM25(dataset.corpus), repeats)
    texts = {name: [answer.text for answer in side] for name, side in answers.items()}
    same = sum(a == b for a, b in zip(texts[BATCHED], texts[ALONE], strict=True))
    return {
        **timing.ratio(times[ALONE], times[BATCHED]),
        "equal_answers": same == len(tasks),
        "equal": same,
        "ties": {name: reader.ties for name, reader in readers.items()},
        "questions_per_second": {
            name: round(len(tasks) / median(side.wall), 3) for name, side in times.items()
        },
        "max_new_tokens": tasks[0].settings.max_new_tokens,
        "new_tokens": average(answer.cost.new_tokens for answer in answers[ALONE]),
        "prompt_tokens": average(answer.cost.prompt_tokens for answer in answers[ALONE]),
        "prefilled_tokens": {
            name: average(answer.cost.prefilled_tokens for answer in side)
            for name, side in answers.items()
        },
    }, times


def in_turns(
    tasks: Sequence[engine.Task],
    readers: Mapping[str, Any],
    sizes: Mapping[str, int],
    retriever: Any,
    repeats: int,
) -> tuple[dict[str, timing.Times], dict[str, list[Answer]]]:
    """Each side's times for all tasks, and its answers.

    readers, sizes: a side's reader, and how many questions it has in flight.
    """
    asked = {
        name: partial(answered, tasks, {"reader": reader, "retriever": retriever}, sizes[name])
        for name, reader in readers.items()
    }
    # The first batch is enough to lay out weights and to get memory.
    for name, side in asked.items():
        answered(tasks[: sizes[name]], *side.args[1:])
    return timing.interleave(asked, repeats, warm=0)


def answered(tasks: Sequence[engine.Task], services: dict, batch_size: int) -> list[Answer]:
    """All answers in the tasks' order, from a reader that remembers nothing."""
    services["reader"].forget()
    done = {
        task.question.id: answer
        for task, answer in engine.run(tasks, services, batch_size=batch_size)
    }
    for name, answer in done.items():
        if answer.error is not None:
            raise RuntimeError(f"question {name} failed, so nothing was measured: {answer.error}")
    return [done[task.question.id] for task in tasks]


def average(counts: Iterable[int]) -> float:
    return round(mean(counts), 1)


def told(name: str, one: dict[str, Any]) -> str:
    """One length of answers in words."""
    return (
        f"{name} answers ({one['new_tokens']} tokens after {one['prompt_tokens']}): "
        f"{one['ratio']} times the questions a second ({one['ratio_min']} to {one['ratio_max']}; "
        f"by processor time {one['ratio_cpu']}), equal answers: {one['equal_answers']}"
    )


if __name__ == "__main__":
    main()
