"""Reading a given text (teacher forcing): what the reader makes of each of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rag_repro.lm.decode import entropy
from rag_repro.lm.passes import Passes, Todo
from rag_repro.lm.prefix import Slots, Store
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
    template: tuple[tuple[int, int], ...]
    soft: dict[int, Tensor]
    text: str
    given: tuple[int, ...]
    offsets: tuple[int, ...]


def read(
    passes: Passes, store: Store | None, jobs: Sequence[Reading], adapter: str | None
) -> dict[int, Generation]:
    """-> job number -> generation. One pass a job, several in one pack where they fit.

    Of jobs with one prompt, as the labels that a judge chooses from, the first reads it, and the
    others go on behind it.
    """
    first: dict[bytes, Reading] = {}
    for job in jobs:
        first.setdefault(job.tokens.tobytes(), job)
    leading = [job for job in jobs if first[job.tokens.tobytes()] is job]
    if store is None or len(leading) == len(jobs):
        return _read(passes, store, jobs, adapter, {})
    done: dict[bytes, Todo] = {}
    results = _read(passes, store, leading, adapter, done)
    following = [job for job in jobs if first[job.tokens.tobytes()] is not job]
    return results | _read(passes, store, following, adapter, done)


def _begun(job: Reading, whole: int, read: Todo | None, store: Store | None, adapter: str | None):
    """The job's row, with what is known of its beginning: of a prompt just read all of it."""
    full = np.concatenate([job.tokens, np.array(job.given, dtype=np.int64)])
    n_shared, span, done, tail = 0, None, 0, None
    if read is not None:
        n_shared, span, done = read.n_shared, read.shared, len(full) - whole
        tail = read.slots.span(read.slot, 0, done - n_shared)
    elif store is not None:
        n_shared, span = store.prefix(full[:-whole], adapter)
        done, tail = store.tail(full[:-whole], n_shared, adapter)
    slots = Slots(1, len(full) - n_shared)
    if tail is not None:
        slots.put(0, tail)
    return Todo(
        full, job.soft, slots, 0, done, span, n_shared, whole=whole, traced=len(job.given) or 1
    )


def _read(
    passes: Passes,
    store: Store | None,
    jobs: Sequence[Reading],
    adapter: str | None,
    done: dict[bytes, Todo],
) -> dict[int, Generation]:
    """done: rows by their prompts, which these jobs go on behind; filled with theirs."""
    todos, prefilled = [], []
    for job in jobs:
        # Token t is drawn from what its predecessor predicts: the prompt's last is needed too.
        whole = len(job.given) + bool(len(job.tokens))
        todo = _begun(job, whole, done.get(job.tokens.tobytes()), store, adapter)
        todos.append(todo)
        prefilled.append(len(job.tokens) - todo.done)
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
            job.template,
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
        todo = todos[row]
        behind = done.setdefault(job.tokens.tobytes(), todo) is not todo
        if store is not None and not behind:  # whose prompt is kept already
            span = todo.slots.span(0, 0, todo.slots.capacity)
            store.add(todo.tokens, todo.n_shared, span, adapter)
    return results
