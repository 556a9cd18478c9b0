"""A reader as the papers' released code has it: one question at a time, nothing reused.

transformers' own `generate` in full length (what comes behind a stop is cut off
afterwards), and a text read with attention on in every layer, as DRAGIN's
`generate_attn` does. It serves the same calls as our reader, so that a method
need not know which of the two it asks.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rag_repro.lm.load import Loaded
from rag_repro.lm.prompts import Codec, spoken_text
from rag_repro.schema import Generate, Generation, Kept, Read, Trace


class PlainReader:
    """Greedy `Generate` calls and `Read` calls, each alone.

    `prefilled` counts each prompt whole, as it is computed.
    """

    def __init__(self, loaded: Loaded):
        self.model = loaded.model
        self.codec = Codec(loaded.tokenizer)
        self.ends = sorted(self.codec.ends())

    def generate(self, calls: Sequence[Generate]) -> list[Generation]:
        return [self._generate(call) for call in calls]

    def read(self, calls: Sequence[Read]) -> list[Generation]:
        return [self._read(call) for call in calls]

    @torch.inference_mode()
    def _generate(self, call: Generate) -> Generation:
        encoded = self.codec.encode(call.prompt)
        ids = torch.tensor([encoded.tokens], device=self.model.device)
        out = self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=call.max_new_tokens,
            do_sample=False,
            eos_token_id=self.ends,
            pad_token_id=self.ends[0],
            output_scores=call.trace,
            return_dict_in_generate=True,
        )
        tokens = out.sequences[0, ids.shape[1] :].tolist()
        finish = "length"
        if tokens and tokens[-1] in self.ends:
            tokens, finish = tokens[:-1], "eos"
        text = self.codec.text(tokens)
        offsets = self.codec.offsets(tokens, text)
        found = [at for stop in call.stop if isinstance(stop, str) and (at := text.find(stop)) >= 0]
        n = len(tokens)
        if found:
            text, finish = text[: min(found)], "stop"
            n = sum(start < len(text) for start in offsets)
        trace = None
        if call.trace:
            log_p = torch.cat(out.scores[:n]).log_softmax(-1).cpu() if n else torch.zeros(0, 1)
            places = torch.arange(n), torch.tensor(tokens[:n], dtype=torch.long)
            entropy = -(log_p.exp() * log_p).nansum(-1)
            trace = Trace(log_p[places].exp().numpy(), entropy.numpy(), {}, tuple(encoded.pieces))
        return Generation(
            text, tuple(tokens[:n]), offsets[:n], finish, len(encoded), len(encoded), trace
        )

    @torch.inference_mode()
    def _read(self, call: Read) -> Generation:
        if call.prompt is not None:
            raise ValueError("the released code reads texts alone")
        tokens, offsets = self.codec.given(call.text)
        before = self.model.config._attn_implementation
        self.model.set_attn_implementation("eager")  # the only one that tells its weights
        try:
            ids = torch.tensor([tokens], device=self.model.device)
            out = self.model(ids, output_attentions=True, use_cache=False)
        finally:
            self.model.set_attn_implementation(before)
        log_p = out.logits[0].log_softmax(-1).cpu()
        foretold = log_p[:-1].gather(1, torch.tensor(tokens[1:])[:, None])[:, 0].exp()
        unknown = torch.full((1,), torch.nan)
        trace = Trace(
            torch.cat([unknown, foretold]).numpy(),
            torch.cat([unknown, -(log_p.exp() * log_p).sum(-1)[:-1]]).numpy(),
            {layer: out.attentions[layer][0].numpy(force=True) for layer in call.layers},
        )
        text = spoken_text(call.text) if isinstance(call.text, Kept) else call.text
        return Generation(text, tuple(tokens), tuple(offsets), "given", 0, 0, trace)
