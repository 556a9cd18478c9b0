"""Decoding of many calls at once, and reading of given texts, with traces in the same pass.

Rows come and go: a row that is finished hands its slot to the last one, and a
waiting call is prefilled into the free slot at the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rag_repro.lm.passes import Passes, Todo
from rag_repro.lm.prefix import LEAST, Slots, Span, Store, shared_lengths
from rag_repro.lm.prompts import Codec, Encoded
from rag_repro.schema import Generate, Generation, Read, Sampling, Trace


@dataclass(frozen=True, slots=True)
class Choice:
    """A drawn token; probability, entropy (nats) of its distribution where asked for.

    gap: the best logit less the second best (a tie where it is tiny).
    """

    token: int
    gap: float
    probability: float | None = None
    entropy: float | None = None
    watched: tuple[float, ...] | None = None


def entropy(log_p: Tensor) -> Tensor:
    """Entropy in nats of distributions given as log probabilities (..., vocabulary)."""
    return torch.special.entr(log_p.exp()).sum(-1)


def distribution(logits: Tensor, sampling: Sampling) -> Tensor:
    """What sampling draws from: tempered, then cut to the fewest tokens that hold `top_p`.

    logits (vocabulary,) -> probabilities (vocabulary,).
    """
    p = (logits / sampling.temperature).softmax(-1)
    if sampling.top_p < 1:
        ranked, order = p.sort(descending=True, stable=True)
        beyond = ranked.cumsum(-1) - ranked >= sampling.top_p
        p = p.index_fill(0, order[beyond], 0.0)
        p = p / p.sum()
    return p


def choose(
    logits: Tensor,
    traced: Sequence[bool],
    watched: Sequence[tuple[int, ...]],
    samplings: Sequence[Sampling | None],
    generators: Sequence[torch.Generator | None],
) -> list[Choice]:
    """One token a row from logits (rows, vocabulary), float32.

    Greedy rows take the best token; sampled rows draw with their own
    generator, so that neighbours do not change the draw.
    """
    best, index = logits.max(-1)
    second = logits.scatter(1, index[:, None], -torch.inf).amax(-1)
    tokens, gaps = index.tolist(), (best - second).tolist()
    need = [i for i in range(len(tokens)) if traced[i] or watched[i]]
    log_p = logits[need].log_softmax(-1) if need else None
    row_of = {row: place for place, row in enumerate(need)}
    entropies = entropy(log_p).tolist() if any(traced) else []

    choices = []
    for row, token in enumerate(tokens):
        probability = spread = seen = None
        if row in row_of:
            mine = log_p[row_of[row]]
            if traced[row]:
                probability = mine[token].exp().item()
                spread = entropies[row_of[row]]
            if watched[row]:
                seen = tuple(mine[list(watched[row])].exp().tolist())
        if samplings[row] is not None:
            p = distribution(logits[row], samplings[row]).double()
            draw = torch.rand((), generator=generators[row], dtype=torch.float64).item()
            total = p.cumsum(-1)
            token = int(torch.searchsorted(total, draw * total[-1].item(), right=True))
            token = min(token, int(p.nonzero()[-1]))
            if traced[row]:
                probability = p[token].item()
                spread = torch.special.entr(p).sum().item()
        choices.append(Choice(token, gaps[row], probability, spread, seen))
    return choices


@dataclass(slots=True, eq=False)
class Planned:
    """A prompt as tokens. Soft places have negative ids, made from their vectors' content."""

    number: int
    call: Generate | Read
    encoded: Encoded
    tokens: np.ndarray
    soft: dict[int, Tensor]


@dataclass(slots=True, eq=False)
class Job(Planned):
    """A `Generate` call."""

    limit: int
    watched: tuple[int, ...]
    shared: Span | None = None
    n_shared: int = 0
    prefilled: int = 0

    @property
    def reads_attention(self) -> bool:
        """Whether its trace tells the attention."""
        return self.call.trace and self.call.attention


@dataclass(slots=True, eq=False)
class Row:
    """A job being written. own: its tokens in its slot; fed: new tokens among them.

    choices: what is known of each of its new tokens.
    """

    job: Job
    own: int
    generator: torch.Generator | None
    tokens: list[int] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    attention: list[np.ndarray] = field(default_factory=list)
    fed: int = 0
    text: str = ""
    kept: int = 0
    offsets: tuple[int, ...] = ()
    finish: str | None = None

    @property
    def done(self) -> bool:
        """Finished, and every kept token whose attention is told has been an input itself."""
        return self.finish is not None and (not self.job.reads_attention or self.fed >= self.kept)


class Decoder:
    """Writes the answers of jobs.

    ties: new tokens whose best two logits were closer than `margin`.
    """

    def __init__(
        self,
        passes: Passes,
        codec: Codec,
        store: Store,
        ends: frozenset[int],
        batch_size: int,
        reuse: bool,
        margin: float,
    ):
        self.passes = passes
        self.codec = codec
        self.store = store
        self.ends = ends
        self.batch_size = batch_size
        self.reuse = reuse
        self.margin = margin
        self.ties = 0
        self._slots: Slots | None = None

    def run(self, jobs: Sequence[Job]) -> dict[int, Generation]:
        """-> job number -> generation"""
        if self.reuse:
            self._share(jobs)
        # Rows of one prefix and of like length stand together: one product, short columns.
        waiting = deque(
            sorted(jobs, key=lambda j: (j.n_shared, id(j.shared), len(j.tokens)), reverse=True)
        )
        slots = self._room(jobs)
        rows: list[Row] = []
        results: dict[int, Generation] = {}
        while waiting or rows:
            fresh = []
            while waiting and len(rows) < self.batch_size:
                job = waiting.popleft()
                seed = job.call.sampling
                generator = None if seed is None else torch.Generator().manual_seed(seed.seed)
                row = Row(job, len(job.tokens) - job.n_shared, generator)
                fresh.append(row)
                rows.append(row)
            if fresh:
                logits = self._prefill(fresh, slots, len(rows) - len(fresh))
                self._extend(fresh, logits)
            self._retire(rows, slots, results)
            if rows:
                self._step(rows, slots)
                self._retire(rows, slots, results)
        return results

    # -------------------------------------------------------------- prefixes

    def _share(self, jobs: Sequence[Job]) -> None:
        """Point each job to its shared prefix, computing those that are not kept."""
        lengths = shared_lengths([j.tokens for j in jobs], [j.encoded.prefix for j in jobs])
        made: dict[bytes, Span] = {}
        for job, n in zip(jobs, lengths, strict=True):
            if not n:
                have, span = self.store.longest(job.tokens[:-1])
                if span is not None and have >= LEAST:
                    key = job.tokens[:have].tobytes()
                    job.shared, job.n_shared = made.setdefault(key, span), have
                continue
            key = job.tokens[:n].tobytes()
            if key not in made:
                made[key], job.prefilled = self._prefix(job, n)
            job.shared, job.n_shared = made[key], n

    def _prefix(self, job: Job, n: int) -> tuple[Span, int]:
        """Keys and values of a job's first n tokens, and how many had to be computed."""
        have, span = self.store.longest(job.tokens[:n])
        if have == n:
            return span, 0
        slots = Slots(1, n)
        if span is not None:
            slots.put(0, span)
        todo = Todo(job.tokens[:n], job.soft, slots, 0, done=have)
        for _ in self.passes.ragged([todo]):
            pass
        span = slots.span(0, 0, n)
        self.store.add(job.tokens[:n], 0, span)
        return span, n - have

    def _room(self, jobs: Sequence[Job]) -> Slots:
        """Slots for the jobs; the last ones again where they suffice (memory is slow to get)."""
        rows = min(self.batch_size, len(jobs))
        capacity = max(len(j.tokens) - j.n_shared + j.limit for j in jobs)
        old = self._slots
        if old is None or old.rows < rows or old.capacity < capacity:
            self._slots = Slots(rows, capacity)
        return self._slots

    # ------------------------------------------------------------------ rows

    def _prefill(self, rows: Sequence[Row], slots: Slots, first: int) -> Tensor:
        """Logits (rows, vocabulary) after the prompts."""
        todos = []
        for slot, row in enumerate(rows, start=first):
            job = row.job
            done = job.n_shared
            if self.reuse:
                done, tail = self.store.longest(job.tokens[:-1], job.n_shared)
                if tail is not None:
                    slots.put(slot, tail)
            job.prefilled += len(job.tokens) - done
            todos.append(Todo(job.tokens, job.soft, slots, slot, done, job.shared, job.n_shared))
        return torch.cat([logits for _, logits, _ in self.passes.ragged(todos)])

    def _step(self, rows: Sequence[Row], slots: Slots) -> None:
        """Feed each row its newest token that it has not seen, and draw the next."""
        logits, attention, width = self.passes.step(
            [row.tokens[row.fed] for row in rows],
            [row.own for row in rows],
            [(row.job.shared, row.job.n_shared) for row in rows],
            slots,
            traced=any(row.job.reads_attention for row in rows),
        )
        if attention is not None:
            attention = attention.cpu().numpy()
        writing = []
        for place, row in enumerate(rows):
            if row.job.reads_attention:
                mine = attention[place]
                own = mine[:, width : width + row.own + 1]
                row.attention.append(np.concatenate([mine[:, : row.job.n_shared], own], axis=1))
            row.own += 1
            row.fed += 1
            if row.finish is None:
                writing.append(place)
        if len(writing) < len(rows):
            logits = logits[writing]
        self._extend([rows[i] for i in writing], logits)

    def _extend(self, rows: Sequence[Row], logits: Tensor) -> None:
        """Draw each row's next token, and see whether that ends it."""
        if not rows:
            return
        choices = choose(
            logits,
            [row.job.call.trace for row in rows],
            [row.job.watched for row in rows],
            [row.job.call.sampling for row in rows],
            [row.generator for row in rows],
        )
        for row, choice in zip(rows, choices, strict=True):
            self.ties += choice.gap < self.margin
            if choice.token in self.ends:
                self._finish(row, "eos")
                continue
            row.tokens.append(choice.token)
            row.choices.append(choice)
            if row.job.call.stop and self._stops(row):
                continue
            if len(row.tokens) >= row.job.limit:
                self._finish(row, "length")

    def _stops(self, row: Row) -> bool:
        text = self.codec.text(row.tokens)
        if (cut := row.job.call.cut(text)) is not None:
            self._finish(row, "stop", cut)
        elif any(not isinstance(s, str) and s.holds(text) for s in row.job.call.stop):
            self._finish(row, "stop")
        return row.finish is not None

    def _finish(self, row: Row, why: str, cut: int | None = None) -> None:
        """Settle the text and the tokens that belong to it: those that begin before the cut."""
        text = self.codec.text(row.tokens)
        offsets = self.codec.offsets(row.tokens, text)
        row.finish, row.text, row.kept = why, text, len(row.tokens)
        if cut is not None:
            row.text = text[:cut]
            row.kept = sum(start < cut for start in offsets)
        row.offsets = offsets[: row.kept]

    def _retire(self, rows: list[Row], slots: Slots, results: dict[int, Generation]) -> None:
        """Take finished rows out; the last row moves into the slot that is free."""
        place = 0
        while place < len(rows):
            row = rows[place]
            if not row.done:
                place += 1
                continue
            results[row.job.number] = self._result(row)
            if self.reuse:
                full = np.concatenate([row.job.tokens, row.tokens[: row.fed]]).astype(np.int64)
                span = slots.span(place, 0, row.own).clone()
                self.store.add(full, row.job.n_shared, span)
            last = rows.pop()
            if last is not row:
                slots.copy(len(rows), place, last.own)
                rows[place] = last

    def _result(self, row: Row) -> Generation:
        job, n, choices = row.job, row.kept, row.choices[: row.kept]
        trace = None
        if job.call.trace:
            trace = Trace(
                np.array([choice.probability for choice in choices], dtype=np.float32),
                np.array([choice.entropy for choice in choices], dtype=np.float32),
                {-1: self._attention(row)} if job.reads_attention else {},
                job.encoded.pieces,
                job.encoded.template,
            )
        watched = None
        if job.watched:
            shape = (n, len(job.watched))
            told = [choice.watched for choice in choices]
            watched = np.array(told, dtype=np.float32).reshape(shape)
        return Generation(
            text=row.text,
            tokens=tuple(row.tokens[:n]),
            offsets=row.offsets,
            finish=row.finish,
            prompt_tokens=len(job.tokens),
            prefilled=job.prefilled,
            trace=trace,
            watched=watched,
        )

    def _attention(self, row: Row) -> np.ndarray:
        """Of the kept tokens, (H, kept, prompt + kept)."""
        n, before = row.kept, len(row.job.tokens)
        made = np.zeros((self.passes.heads, n, before + n), dtype=np.float32)
        for t, seen in enumerate(row.attention[:n]):
            made[:, t, : seen.shape[1]] = seen
        return made


@dataclass(slots=True, eq=False)
class Reading(Planned):
    """A `Read` call (teacher forcing): besides the prompt's, the text's tokens and their offsets.

    Either may have none; without a text the attention is that of the prompt's last token.
    """

    text: str
    given: tuple[int, ...]
    offsets: tuple[int, ...]


def read(passes: Passes, store: Store | None, jobs: Sequence[Reading]) -> dict[int, Generation]:
    """-> job number -> generation. One pass a job, several in one pack where they fit.

    Of jobs with one prompt, as the labels that a judge chooses from, the first reads it, and the
    others go on behind it.
    """
    first: dict[bytes, Reading] = {}
    for job in jobs:
        first.setdefault(job.tokens.tobytes(), job)
    leading = [job for job in jobs if first[job.tokens.tobytes()] is job]
    if store is None or len(leading) == len(jobs):
        return _read(passes, store, jobs, {})
    done: dict[bytes, Todo] = {}
    results = _read(passes, store, leading, done)
    following = [job for job in jobs if first[job.tokens.tobytes()] is not job]
    return results | _read(passes, store, following, done)


def _begun(job: Reading, whole: int, read: Todo | None, store: Store | None):
    """The job's row, with what is known of its beginning: of a prompt just read all of it."""
    full = np.concatenate([job.tokens, np.array(job.given, dtype=np.int64)])
    n_shared, span, done, tail = 0, None, 0, None
    if read is not None:
        n_shared, span, done = read.n_shared, read.shared, len(full) - whole
        tail = read.slots.span(read.slot, 0, done - n_shared)
    elif store is not None:
        n_shared, span = store.longest(full[:-whole])
        done, tail = store.longest(full[:-whole], n_shared)
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
    done: dict[bytes, Todo],
) -> dict[int, Generation]:
    """done: rows by their prompts, which these jobs go on behind; filled with theirs."""
    todos, prefilled = [], []
    for job in jobs:
        # Token t is drawn from what its predecessor predicts: the prompt's last is needed too.
        whole = len(job.given) + bool(len(job.tokens))
        todo = _begun(job, whole, done.get(job.tokens.tobytes()), store)
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
            job.encoded.pieces,
            job.encoded.template,
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
            store.add(todo.tokens, todo.n_shared, span)
    return results
