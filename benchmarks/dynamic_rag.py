"""DRAGIN as released, batched and with prefix reuse, against one question at a time.

Three sides answer the same questions by the same method (`dragin_released`) with the
same weights, exemplars and retriever:

- `engine`: our engine at batch 16;
- `alone`: our engine at batch 1;
- `loop`: a plain loop that does what the released code does: one question at a time,
  transformers' `generate` in full length, no prefix reuse, a second pass with
  attention on in every layer, a third one for the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks import timing
from benchmarks.engine import average, in_turns
from benchmarks.plain import PlainReader
from rag_repro import data, engine
from rag_repro.lm.load import Loaded
from rag_repro.methods.base import get

GOAL = 6
BATCH = 16
ENGINE, ALONE, LOOP = "engine, batch 16", "engine, batch 1", "released loop"


class Loop(PlainReader):
    """A plain reader that a benchmark can ask to forget; it has nothing to forget."""

    def forget(self) -> None:
        pass


def main(argv: Sequence[str] | None = None, loaded: Loaded | None = None) -> None:
    """loaded: a model instead of the one that --reader names."""
    from rag_repro.lm.local import LocalReader
    from rag_repro.retrieval import BM25
    from rag_repro.study.runner import AHEAD

    parser = timing.parser(__doc__.splitlines()[0], questions=48, repeats=1, new_tokens=64)
    parser.add_argument("--dataset", default="world-B", help="default: %(default)s")
    parser.add_argument("--threshold", type=float, default=1.2, help="theta (default: %(default)s)")
    given = parser.parse_args(argv)
    loaded = loaded or timing.weights(given.reader, given.device)
    dataset = data.load(given.dataset)
    released = get("dragin_released")
    settings = released.configure(
        {
            "prompt": "dragin",
            "exemplars": "own",
            "threshold": given.threshold,
            "max_new_tokens": given.new_tokens,
        }
    )
    tasks = [
        engine.Task(question, released.run, settings)
        for question in timing.first(dataset, given.questions)
    ]
    readers = {
        ENGINE: LocalReader(loaded, batch_size=BATCH),
        ALONE: LocalReader(loaded, batch_size=1),
        LOOP: Loop(loaded),
    }
    # As the study runs: more questions in flight than rows, so that none stays free.
    sizes = {ENGINE: AHEAD * BATCH, ALONE: 1, LOOP: 1}
    times, answers = in_turns(tasks, readers, sizes, BM25(dataset.corpus), given.repeats)
    texts = {name: [answer.text for answer in side] for name, side in answers.items()}
    same = sum(len({*row}) == 1 for row in zip(*texts.values(), strict=True))
    against = {
        "against_released_loop": timing.ratio(times[LOOP], times[ENGINE]),
        "against_batch_1": timing.ratio(times[ALONE], times[ENGINE]),
    }
    facts = {
        "benchmark": "dynamic_rag",
        **{name: one["ratio"] for name, one in against.items()},
        "ratios": against,
        "equal_answers": same == len(tasks),
        "equal": same,
        "questions": given.questions,
        "repeats": given.repeats,
        "threshold": given.threshold,
        "max_new_tokens": given.new_tokens,
        "seconds_a_question": {
            name: round(median(side.wall) / len(tasks), 2) for name, side in times.items()
        },
        "retrievals": average(answer.cost.retrievals for answer in answers[ENGINE]),
        "reader_calls": average(answer.cost.reader_calls for answer in answers[ENGINE]),
        "prompt_tokens": average(answer.cost.prompt_tokens for answer in answers[ENGINE]),
        "prefilled_tokens": {
            name: average(answer.cost.prefilled_tokens for answer in side)
            for name, side in answers.items()
        },
        **timing.setting(loaded),
    }
    goals = [
        f"{name}: {one['ratio']} ({one['ratio_min']} to {one['ratio_max']}; "
        f"by processor time {one['ratio_cpu']})"
        for name, one in against.items()
    ]
    goals.append(f"goal: {GOAL} times the released loop; equal answers: {same} of {len(tasks)}")
    title = f"seconds for {given.questions} questions of {given.dataset}"
    timing.show(title, facts, times, as_json=given.json, goals=goals)


if __name__ == "__main__":
    main()
