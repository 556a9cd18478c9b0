"""Text as plain words: nothing that it says becomes a token which a vocabulary was given apart.

Such added tokens steer a reader ("<|im_end|>", Self-RAG's "[Relevant]"), and a passage
that imitates one must stay text, whether or not the vocabulary calls the token special.
Runs of white space that were added are words like any other and stay within reach.
"""

from __future__ import annotations

import json
import re
from typing import Any

from rag_repro.schema.errors import ReaderError
from rag_repro.words import whole

Tokens = tuple[list[int], list[tuple[int, int]]]


class Plain:
    """A fast tokenizer seen as one of plain words.

    added: text -> id of the tokens that plain text cannot write.
    """

    def __init__(self, tokenizer: Any):
        if not getattr(tokenizer, "is_fast", False):
            raise ReaderError(
                f"{type(tokenizer).__name__} cannot tell which characters a token covers: "
                "a fast tokenizer (tokenizer.json) is needed"
            )
        held = tokenizer.added_tokens_decoder
        self.added = {str(t): i for i, t in held.items() if not str(t).isspace()}
        self.pattern = _pattern([t for t in held.values() if not str(t).isspace()])
        self._control = {i: str(t) for i, t in held.items() if t.special}
        self._unknown = tokenizer.unk_token_id
        self.tokenizer = tokenizer
        # transformers can leave out the special tokens; the others need a copy without them.
        apart = any(not t.special and not str(t).isspace() for t in held.values())
        self._bare = _bare(tokenizer) if apart else None
        self._trims = False
        _, spans = self.tokens("a a")
        self._trims = len(spans) > 1 and spans[0][1] < spans[1][0]

    def tokens(self, text: str) -> Tokens:
        """Ids, and the stretch (first, last) of the text that each covers; no opening token."""
        text = whole(text)
        if self._bare is not None:
            out = self._bare.encode(text, add_special_tokens=False)
            ids, spans = out.ids, out.offsets
        else:
            out = self.tokenizer(
                text,
                add_special_tokens=False,
                split_special_tokens=True,
                return_offsets_mapping=True,
                verbose=False,
            )
            ids, spans = out.input_ids, out.offset_mapping
        if self._trims:
            spans = _spread(spans)
        cuts = [
            last - 1
            for i, (first, last) in zip(ids, spans, strict=True)
            if last - first > 1 and self._spells(i, text[first:last])
        ]
        return self._in_pieces(text, cuts) if cuts else (ids, spans)

    def _spells(self, token: int, text: str) -> bool:
        """Whether text came out as a control token, which some vocabularies hold as a word too."""
        if token not in self._control:
            return False
        return token != self._unknown or text.strip() == self._control[token]

    def _in_pieces(self, text: str, cuts: list[int]) -> Tokens:
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        for first, last in zip([0, *cuts], [*cuts, len(text)], strict=True):
            some, theirs = self.tokens(text[first:last])
            ids += some
            spans += [(first + a, first + b) for a, b in theirs]
        return ids, spans


def _spread(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that leave nothing out: a token has the white space before it, as elsewhere."""
    made, at = [], 0
    for first, last in spans:
        made.append((min(first, at), max(last, min(first, at))))
        at = max(at, last)
    return made


def _pattern(added: list[Any]) -> re.Pattern:
    """Finds added tokens in a template, each a group, and the white space that some swallow."""
    longest = sorted(added, key=lambda t: len(str(t)), reverse=True)
    parts = [
        (r"\s*" if t.lstrip else "") + f"({re.escape(str(t))})" + (r"\s*" if t.rstrip else "")
        for t in longest
    ]
    return re.compile("|".join(parts) or r"(?!)")


def _bare(tokenizer: Any) -> Any:
    """A copy whose added tokens are all special, and so can all be left out; ids stay the same."""
    from tokenizers import Tokenizer

    told = json.loads(tokenizer.backend_tokenizer.to_str())
    for token in told["added_tokens"]:
        token["special"] = not token["content"].isspace()
    told["truncation"] = told["padding"] = None
    bare = Tokenizer.from_str(json.dumps(told))
    bare.encode_special_tokens = True
    return bare
