"""Reading a given text (teacher forcing): what the reader makes of each of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from rag_repro.lm.attention import Slots
from rag_repro.lm.choose import entropy
from rag_repro.lm.passes import Passes, Todo
from rag_repro.lm.prefix import Store
from rag_repro.schema import Generation, Read, Trace


@dataclass(slots=True, eq=False)
class Reading:
    """A `Read` call as tokens: the prompt's, and the text's own with their offsets."""

    number: int
    call: Read
    tokens: np.ndarray
    soft: dict[int, Tensor]
    given: tuple[int, ...]
    offsets: tuple[int, ...]


def read(
    passes: Passes, store: Store | None, jobs: Sequence[Reading], adapter: str | None
) -> dict[int, Generation]:
    """-> job number -> generation. One pass a job, several in one pack where they fit."""
    todos, prefilled = [], []
    for job in jobs:
        full = np.concatenate([job.tokens, np.array(job.given, dtype=np.int64)])
        # Token t is drawn from what its predecessor predicts: the prompt's last is needed too.
        whole = len(job.given) + 1
        done, span = (0, None) if store is None else store.prefix(full[:-whole], adapter)
        todos.append(
            Todo(
                full, job.soft, Slots(1, len(full) - done), 0, done, span, done,
                whole=whole, traced=len(job.given),
            )
        )  # fmt: skip
        prefilled.append(len(job.tokens) - done)
    wanted = frozenset(passes.layers + i for job in jobs for i in job.call.layers)
    results = {}
    for row, logits, captured in passes.ragged(todos, wanted):
        job = jobs[row]
        log_p = logits[:-1].log_softmax(-1)
        given = log_p.gather(1, logits.new_tensor(job.given).long()[:, None])[:, 0]
        attention = {i: captured[passes.layers + i].cpu().numpy() for i in job.call.layers}
        trace = Trace(given.exp().cpu().numpy(), entropy(log_p).cpu().numpy(), attention)
        results[job.number] = Generation(
            text=job.call.text,
            tokens=job.given,
            offsets=job.offsets,
            finish="given",
            prompt_tokens=len(job.tokens),
            prefilled=prefilled[row],
            trace=trace,
        )
        if store is not None:
            todo = todos[row]
            span = todo.slots.span(0, 0, todo.slots.capacity)
            store.add(todo.tokens, todo.n_shared, span, adapter)
    return results
