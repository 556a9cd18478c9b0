"""Reading a given text (teacher forcing): what the reader makes of each of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rag_repro.lm.choose import entropy
from rag_repro.lm.passes import Passes, Todo
from rag_repro.lm.prefix import Store
from rag_repro.lm.slots import Slots
from rag_repro.schema import Generation, Read, Trace


@dataclass(slots=True, eq=False)
class Reading:
    """A `Read` call as tokens: the prompt's, and the text's own with their offsets.

    Either may have none; without a text the attention is that of the prompt's last token.
    """

    number: int
    call: Read
    tokens: np.ndarray
    pieces: tuple[str, ...]
    soft: dict[int, Tensor]
    text: str
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
        whole = len(job.given) + bool(len(job.tokens))
        done, span = (0, None) if store is None else store.prefix(full[:-whole], adapter)
        todos.append(
            Todo(
                full, job.soft, Slots(1, len(full) - done), 0, done, span, done,
                whole=whole, traced=len(job.given) or 1,
            )
        )  # fmt: skip
        prefilled.append(len(job.tokens) - done)
    wanted = frozenset(passes.layers + i for job in jobs for i in job.call.layers)
    results = {}
    for row, logits, captured in passes.ragged(todos, wanted):
        job = jobs[row]
        log_p = logits[:-1].log_softmax(-1)
        foretold = logits.new_tensor(job.given[-len(log_p) :] if len(log_p) else ()).long()
        given = log_p.gather(1, foretold[:, None])[:, 0].exp()
        # Without a prompt nothing foretells the first token.
        unknown = logits.new_full((len(job.given) - len(log_p),), torch.nan)
        attention = {i: captured[passes.layers + i].cpu().numpy() for i in job.call.layers}
        trace = Trace(
            torch.cat([unknown, given]).cpu().numpy(),
            torch.cat([unknown, entropy(log_p)]).cpu().numpy(),
            attention,
            job.pieces,
        )
        results[job.number] = Generation(
            text=job.text,
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
