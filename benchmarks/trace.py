"""What a trace costs: decoding with it, without it, and with a second pass for it.

The setting is that of a dynamic method's first reading: six exemplars and six
passages, about 1,000 tokens, and 64 new ones, 16 questions in a batch. Both
ways write in the same batch with the same shared exemplars.

`overhead` is of decoding alone: the prompts' keys and values are kept from the
turn before, and their last token is all that is computed of them.
`overhead_with_prompts` has the prompts in both sides. `against_two_passes` is
how many times longer it takes to write without a trace and then to read prompt
and answer again with the attention of all layers: question by question, with
transformers' own eager attention, as DRAGIN's released code does. That side
gets no probabilities or entropies, which the trace holds as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import numpy as np

from benchmarks import timing
from rag_repro import data
from rag_repro.lm.load import Loaded
from rag_repro.methods.reading import PROMPTS
from rag_repro.schema import Generate, Generation

GOALS = {"overhead": 1.15, "against_two_passes": 2}
BATCH = 16
PLAIN, TRACED, SECOND = "plain", "traced", "second pass"
PLAIN_KEPT, TRACED_KEPT = "plain, prompts kept", "traced, prompts kept"


def main(argv: Sequence[str] | None = None, loaded: Loaded | None = None) -> None:
    """loaded: a model instead of the one that --reader names."""
    from rag_repro.lm.local import LocalReader

    parser = timing.parser(__doc__.splitlines()[0], questions=BATCH, repeats=3, k=6, new_tokens=64)
    given = parser.parse_args(argv)
    loaded = loaded or timing.weights(given.reader, given.device)
    calls = asked(given.questions, given.k, given.new_tokens)
    reader = LocalReader(loaded, batch_size=BATCH)
    traced = [replace(call, trace=True) for call in calls]
    # One answer of each kind is enough to lay out weights and to get memory.
    written = reader.generate(calls)
    reader.generate(traced[:1])
    second_pass(reader, calls[:1], written[:1])
    sides = {
        PLAIN: lambda: anew(reader, calls),
        PLAIN_KEPT: lambda: reader.generate(calls),
        TRACED: lambda: anew(reader, traced),
        TRACED_KEPT: lambda: reader.generate(traced),
        SECOND: lambda: second_pass(reader, calls, written),
    }
    times, results = timing.interleave(sides, given.repeats, warm=0)
    facts = {
        "benchmark": "trace",
        **compared(times),
        "equal_answers": len({str(tokens(results[name])) for name in (PLAIN, TRACED)}) == 1,
        "largest_difference": difference(results[TRACED], results[SECOND]),
        "questions": given.questions,
        "repeats": given.repeats,
        "exemplars": 6,
        "passages": given.k,
        "batch": BATCH,
        "prompt_tokens": round(mean(made.prompt_tokens for made in written), 1),
        "new_tokens": round(mean(len(made.tokens) for made in written), 1),
        **timing.setting(loaded),
    }
    goals = [
        f"overhead of decoding: {facts['overhead']} (by processor time {facts['overhead_cpu']}); "
        f"goal: at most {GOALS['overhead']}",
        f"overhead with the prompts: {facts['overhead_with_prompts']}",
        f"two passes: {facts['against_two_passes']} times as long (by processor time "
        f"{facts['against_two_passes_cpu']}); goal: at least {GOALS['against_two_passes']}",
        f"equal answers: {facts['equal_answers']}; attention differs by at most "
        f"{facts['largest_difference']:.1e}",
    ]
    title = (
        f"seconds for {given.questions} answers of {facts['new_tokens']} tokens "
        f"after {facts['prompt_tokens']}"
    )
    timing.show(title, facts, times, as_json=given.json, goals=goals)


def asked(n: int, k: int, new: int) -> list[Generate]:
    """The calls: questions of the testbed with the exemplars and k passages each."""
    from rag_repro.retrieval import BM25

    dataset = data.load("world-B")
    questions = timing.first(dataset, n)
    found = BM25(dataset.corpus).search([question.text for question in questions], k)
    return [
        Generate(PROMPTS["short"].fill(question, hits), new)
        for question, hits in zip(questions, found, strict=True)
    ]


def anew(reader, calls: Sequence[Generate]) -> list[Generation]:
    """Answers from a reader that remembers nothing."""
    reader.forget()
    return reader.generate(calls)


def second_pass(reader, calls: Sequence[Generate], written: Sequence[Generation]) -> list:
    """A trace as the released code gets it: the whole text once more, all attention kept.

    -> the last layer's attention of each answer's tokens, (H, new, prompt + new)
    """
    import torch

    model, rows = reader.model, []
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            for call, made in zip(calls, written, strict=True):
                ids = [*reader.codec.encode(call.prompt).tokens, *made.tokens]
                out = model(torch.tensor([ids], device=model.device), output_attentions=True)
                rows.append(out.attentions[-1][0, :, -len(made.tokens) :].numpy(force=True))
    finally:
        model.set_attn_implementation(before)
    return rows


def compared(times: dict[str, timing.Times]) -> dict[str, Any]:
    """The three ratios by the clock, each with its range over turns and by processor time."""
    ratios = {
        "overhead": timing.ratio(times[TRACED_KEPT], times[PLAIN_KEPT]),
        "overhead_with_prompts": timing.ratio(times[TRACED], times[PLAIN]),
        "against_two_passes": timing.ratio(times[PLAIN] + times[SECOND], times[TRACED]),
    }
    return {
        key.replace("ratio", name): value
        for name, ratio in ratios.items()
        for key, value in ratio.items()
    }


def tokens(written: Sequence[Generation]) -> list[tuple[int, ...]]:
    return [made.tokens for made in written]


def difference(traced: Sequence[Generation], rows: Sequence[np.ndarray]) -> float:
    """The most by which an attention weight of the trace and of the second pass differ."""
    return max(
        float(np.abs(made.trace.attention[-1] - row).max())
        for made, row in zip(traced, rows, strict=True)
    )


if __name__ == "__main__":
    main()
