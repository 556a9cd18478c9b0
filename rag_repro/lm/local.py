"""A reader on this machine: a causal model of transformers, decoded in batches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np
import torch
import transformers
from torch import Tensor

from rag_repro.digest import sha256
from rag_repro.lm import attention, former, passes
from rag_repro.lm.decode import Decoder, Job, Reading, read
from rag_repro.lm.former import SoftModules, content_id
from rag_repro.lm.hub import cache_folder, card_of
from rag_repro.lm.load import Loaded, check, load
from rag_repro.lm.passes import Passes
from rag_repro.lm.prefix import Store
from rag_repro.lm.prompts import Codec, Encoded, kept, spoken_text
from rag_repro.lm.sizes import KEPT, PACKED
from rag_repro.lm.weights import FORMER, Weights
from rag_repro.schema import Generate, Generation, Kept, Read, Until
from rag_repro.schema.errors import CallError, PromptTooLong, WeightsError

WAVE = 256
"""Calls planned together: enough to find what their prompts share."""


class LocalReader:
    """Answers `Generate` and `Read` calls with a model held in memory.

    device: "cpu", "cuda", ...; dtype: "float32", "bfloat16", "float16", "nf4".
    batch_size: rows decoded at once; any number of calls may be handed in.
    reuse: share and keep the beginnings of prompts (off: each is computed whole);
    keep_bytes: memory for those kept. pack: tokens in one prefill pass.
    packed_bytes: memory for a second copy of the linear layers' weights, laid out for
        the processor (float32 on a CPU only; what does not fit stays as it is).

    Rows do not influence one another: in float32 the tokens are the same at any
    batch size and order, except after two logits closer than `tie_margin`, which
    may change places with the last bits of a sum; `ties` counts those met so far.
    """

    def __init__(
        self,
        weights: Weights | Loaded,
        *,
        device: str = "cpu",
        dtype: str = "float32",
        batch_size: int = 16,
        reuse: bool = True,
        keep_bytes: int = KEPT,
        pack: int | None = None,
        packed_bytes: int = PACKED,
        tie_margin: float = 1e-4,
    ):
        loaded = weights if isinstance(weights, Loaded) else load(weights, device, dtype)
        check(loaded.model)
        self.model = loaded.model
        self.weights = loaded.weights
        self.dtype = loaded.dtype
        self.name = loaded.weights.name
        self.tie_margin = tie_margin
        self.context = self.model.config.get_text_config().max_position_embeddings
        self.codec = Codec(loaded.tokenizer)
        self.reuse = reuse
        table = self.model.get_input_embeddings()
        self._words = len(table.weight)
        self._soft = SoftModules(table.embedding_dim, self.model.device)
        if self.weights.base is not None and (self.weights.path / FORMER).is_file():
            self.add_soft(*former.load(self.weights.path, card_of(self.weights.path)))
        self._store = Store(keep_bytes)
        pack = pack or (1024 if self.model.device.type == "cpu" else 8192)
        self._passes = Passes(self.model, pack, packed_bytes)
        self._verify()
        ends = self.codec.ends() | _ids(self.model.config) | _ids(self.model.generation_config)
        self._decoder = Decoder(
            self._passes, self.codec, self._store, ends, batch_size, reuse, tie_margin
        )

    # --------------------------------------------------------------- answers

    def generate(self, calls: Sequence[Generate]) -> list[Generation | CallError]:
        """One result a call, in order; a CallError stands where one cannot be answered.

        Prompts longer than the context are refused; new tokens end (finish
        "length") where the context does.
        """
        return self._serve(calls, self._job, self._decoder.run)

    def read(self, calls: Sequence[Read]) -> list[Generation | CallError]:
        """One result a call, in order. The text is tokenised on its own, after the prompt."""
        store = self._store if self.reuse else None
        return self._serve(calls, self._reading, partial(read, self._passes, store))

    @property
    def ties(self) -> int:
        """New tokens so far whose two best logits were closer than `tie_margin`."""
        return self._decoder.ties

    def forget(self) -> None:
        """Drop all kept beginnings of prompts."""
        self._store.clear()

    def _serve(self, calls: Sequence, prepare: Callable, run: Callable) -> list:
        results: list[Generation | CallError | None] = [None] * len(calls)
        with self._evaluating(), torch.inference_mode():
            for start in range(0, len(calls), WAVE):
                jobs = []
                for number in range(start, min(start + WAVE, len(calls))):
                    try:
                        jobs.append(prepare(number, calls[number]))
                    except CallError as error:
                        results[number] = error
                for number, result in run(jobs).items() if jobs else ():
                    results[number] = result
        return results

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """The model without dropout; training goes on afterwards as it was."""
        training = self.model.training
        self.model.eval()
        try:
            yield
        finally:
            self.model.train(training)

    # ------------------------------------------------------------ from calls

    def _job(self, number: int, call: Generate) -> Job:
        if call.max_new_tokens < 1:
            raise CallError(f"max_new_tokens is {call.max_new_tokens}: at least 1 is needed")
        if "" in call.stop:
            raise CallError("an empty stop string would end every answer at once")
        if call.sampling is not None and not (
            call.sampling.temperature > 0 and 0 < call.sampling.top_p <= 1
        ):
            raise CallError(f"{call.sampling}: temperature > 0 and 0 < top_p <= 1 are needed")
        watched = tuple(self.codec.watched(text) for text in call.watch)
        encoded = self.codec.encode(call.prompt)
        room = self.context - len(encoded)
        if room < 1:
            raise PromptTooLong(len(encoded), self.context)
        tokens, soft = self._content(encoded)
        limit = min(call.max_new_tokens, room)
        return Job(number, call, encoded, tokens, soft, limit, watched)

    def _reading(self, number: int, call: Read) -> Reading:
        layers = self._passes.layers
        wrong = [i for i in call.layers if not -layers <= i <= -1]
        if wrong:
            raise CallError(f"layers {wrong}: -1 (the last) to -{layers} are known")
        encoded = Encoded((), ()) if call.prompt is None else self.codec.encode(call.prompt)
        given, offsets = self.codec.given(call.text)
        if not given and not (len(encoded) and call.layers):
            raise CallError(
                "the text to read is empty, and of a prompt alone only attention can be told: "
                "name layers"
            )
        if len(encoded) + len(given) > self.context:
            raise PromptTooLong(len(encoded) + len(given), self.context)
        tokens, soft = self._content(encoded)
        text = call.text if isinstance(call.text, str) else spoken_text(call.text)
        return Reading(number, call, encoded, tokens, soft, text, given, offsets)

    def _content(self, encoded: Encoded) -> tuple[np.ndarray, dict[int, Tensor]]:
        """Ids that name the content everywhere: a soft place gets one made of its vector."""
        tokens = np.array(encoded.tokens, dtype=np.int64)
        if tokens.max(initial=0) >= self._words:
            raise CallError(
                f"the prompt has a token that the model has no embedding for: {tokens.max()}, and "
                f"its last is {self._words - 1}; leave the token out, or take another reader"
            )
        vectors = self._soft.rows([segment for _, segment in encoded.soft])
        soft = {at: vector for (at, _), vector in zip(encoded.soft, vectors, strict=True)}
        for at, vector in soft.items():
            tokens[at] = content_id(vector)
        return tokens, soft

    # -------------------------------------------------------- soft embeddings

    def add_soft(self, name: str, module: torch.nn.Module) -> None:
        """Make a module (passages, n_features) -> (passages, d_model) known to `Soft` segments."""
        self._soft.add(name, module)

    # --------------------------------------------------------------- identity

    @property
    def fingerprint(self) -> str:
        """Everything of the reader that can change a result."""
        return _hash([self._identity(), {}, self._soft.digests()])

    def key(self, call: Generate | Read) -> str:
        """A name for a call's result by content: reader, tokens, settings.

        Two calls with one key get the same result; rules (`Until`) count by name.
        CallError: what `generate` or `read` would put into the call's place.
        """
        tokens = np.array([], dtype=np.int64)
        if call.prompt is not None:
            tokens, _ = self._content(self.codec.encode(call.prompt))
        if isinstance(call, Read):
            text = call.text
            if isinstance(text, Kept):
                text = ["tokens", *kept(text)[0]]
            asked = ["read", text, list(call.layers)]
        else:
            stop = [
                ["rule", s.name]
                if isinstance(s, Until)
                # Once such stops ended a reply at its first blank.
                else ["behind blanks", s]
                if s.isspace() and not call.prompt.begun
                else s
                for s in call.stop
            ]
            s = call.sampling
            sampling = None if s is None else [s.seed, s.temperature, s.top_p]
            trace = call.trace and (call.attention or "without attention")
            asked = ["generate", call.max_new_tokens, stop, trace, list(call.watch), sampling]
        # None, {} above: where adapters stood, which calls could name; answers are kept by these.
        return _hash([self._identity(), None, tokens.tolist(), asked])

    def _identity(self) -> list:
        return [
            "local",
            self.weights.sha256,
            self.dtype,
            self.model.device.type,
            type(self.model).__name__,
            self.codec.tokenizer.chat_template,
            self.codec.template,
        ]

    def _verify(self) -> None:
        """Once a machine for these weights, dtype and libraries: `Passes.verify`."""
        code = [sha256(Path(module.__file__)) for module in (attention, passes)]
        shape = repr(self.model.config.to_dict())
        facts = [self._identity(), code, shape, torch.__version__, transformers.__version__]
        kept = cache_folder() / "readers" / _hash(facts)
        if not kept.is_file():
            with self._evaluating():
                self._passes.verify()
            with suppress(OSError):  # a cache that cannot be written costs a second check
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.touch()

    def __repr__(self) -> str:
        return f"LocalReader({self.name}, {self.dtype}, {self.model.device})"


def _hash(facts: list) -> str:
    text = json.dumps(facts, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _ids(config) -> set[int]:
    ids = getattr(config, "eos_token_id", None)
    ids = ids if isinstance(ids, list) else [] if ids is None else [ids]
    if wrong := [i for i in ids if type(i) is not int]:
        raise WeightsError(
            f"eos_token_id is {wrong[0]!r} in {type(config).__name__}; mend its file"
        )
    return set(ids)
