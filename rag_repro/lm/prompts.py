"""From a prompt's segments to token ids, and from token ids back to text.

This is the one way by which text reaches a reader. Only the chat template and a
`Marker` may write the tokens that a vocabulary was given apart: what any other
segment says is plain text, also where it imitates one ("<|im_end|>" in a passage
is ten characters).

Such added tokens steer a reader ("<|im_end|>", Self-RAG's "[Relevant]"), and a passage
that imitates one must stay text, whether or not the vocabulary calls the token special.
Runs of white space that were added are words like any other and stay within reach.
"""

from __future__ import annotations

import json
import logging
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from rag_repro.plain import shortened
from rag_repro.schema import Kept, Marker, Prefix, Prompt, Reply, Segment, Soft, pieces_of
from rag_repro.schema.errors import CallError, ReaderError
from rag_repro.words import nearest, whole

Tokens = tuple[list[int], list[tuple[int, int]]]


class Plain:
    """A fast tokenizer seen as one of plain words: no text becomes a token that was added.

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
        self._bare = _bare(tokenizer)
        self._trims = False
        _, spans = self.tokens("a a")
        self._trims = len(spans) > 1 and spans[0][1] < spans[1][0]

    def tokens(self, text: str) -> Tokens:
        """Ids, and the stretch (first, last) of the text that each covers; no opening token."""
        text = whole(text)
        out = self._bare.encode(text, add_special_tokens=False)
        ids, spans = out.ids, _spread(out.offsets) if self._trims else out.offsets
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


log = logging.getLogger(__name__)

_MARK = "\ue000here\ue001"
# Some templates print today's date; a prompt must not change from one day to the next. The day is
# the one that Llama 3.1's own template falls back on.
_TODAY = datetime(2024, 7, 26)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A prompt as token ids; at the places in `soft` an embedding stands instead (id 0).

    pieces: what each token says. prefix: how many leading tokens the prompt declares
    to share (`Prefix`). template: the tokens that are none of the prompt's own, as in `Trace`.
    """

    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    soft: tuple[tuple[int, Soft], ...] = ()
    prefix: int = 0
    template: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)


class _Line:
    """A prompt on its way to tokens. Text of adjacent segments is tokenised together."""

    def __init__(self, words: Plain):
        self._words = words
        self._text = ""
        self._stretches: list[tuple[int, int]] = []  # of that text, what the chat template says
        self._shared: int | None = None  # up to where the prompt declares that text to be shared
        self.tokens: list[int] = []
        self.pieces: list[str] = []
        self.soft: list[tuple[int, Soft]] = []
        self.template: list[tuple[int, int]] = []
        self.prefix = 0

    def say(self, text: str, prefix: bool = False, template: bool = False) -> None:
        """Add text; prefix: what stands up to its end is shared."""
        if template:
            self._stretches.append((len(self._text), len(self._text) + len(text)))
        self._text += text
        if prefix:
            self._shared = len(self._text)

    def put(self, tokens: Sequence[int], pieces: Sequence[str], template: bool = False) -> None:
        """Add tokens that are not made of text here, and what each says."""
        self._flush()
        if template:
            self.template.append((len(self.tokens), len(self.tokens) + len(tokens)))
        self.tokens += tokens
        self.pieces += pieces

    def place(self, segment: Soft) -> None:
        """Add the place of an embedding."""
        self._flush()
        self.soft.append((len(self.tokens), segment))
        self.put([0], [""])

    def _flush(self) -> None:
        """Tokenise the text that was said since tokens were put last."""
        text, before = self._text, len(self.tokens)
        ids, spans = self._words.tokens(text) if text else ([], [])
        if self._shared is not None:
            self.prefix = before + sum(last <= self._shared for _, last in spans)
        for stretch in self._stretches:
            first, last = _tokens_of(stretch, text, spans)
            self.template.append((before + first, before + last))
        self.tokens += ids
        self.pieces += pieces_of(text, [first for first, _ in spans])
        self._text, self._stretches, self._shared = "", [], None

    def encoded(self) -> Encoded:
        """What was added. CallError: nothing."""
        self._flush()
        if not self.tokens:
            raise CallError("the prompt is empty: a reader needs at least one token to start from")
        return Encoded(
            tuple(self.tokens),
            tuple(self.pieces),
            tuple(self.soft),
            self.prefix,
            tuple(s for s in self.template if s[0] < s[1]),
        )


class Codec:
    """A tokenizer with its chat template.

    template: what is handed to the chat template beside the user's turn.
    """

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer
        self.template = {"date_string": "26 Jul 2024"}
        self._words = Plain(tokenizer)
        bare = tokenizer("a", add_special_tokens=False).input_ids
        full = tokenizer("a", add_special_tokens=True).input_ids
        at = next((i for i in range(len(full)) if full[i : i + len(bare)] == bare), 0)
        self._opening = tuple(full[:at])
        self._turn: tuple[str, str, bool] | None = None

    # ------------------------------------------------------------- to tokens

    def ids(self, text: str) -> tuple[int, ...]:
        """Token ids of plain text: no opening token, nothing in it is special."""
        return tuple(self._words.tokens(text)[0])

    def given(self, text: str | Kept) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ids of plain text or of kept tokens, and the character at which each begins."""
        if isinstance(text, Kept):
            ids, _ = kept(text)
            return tuple(ids), text.generation.offsets[: text.n_tokens]
        ids, spans = self._words.tokens(text)
        return tuple(ids), tuple(first for first, _ in spans)

    def watched(self, text: str) -> int:
        """The id of a token given as text. CallError: it is not one token."""
        ids = self.ids(text)
        if len(ids) == 1:
            return ids[0]
        known = self.tokenizer.get_vocab().get(text)
        if known is None:
            raise CallError(
                f"cannot watch {text!r}: the reader writes it as {len(ids)} tokens; "
                "watch a single token (a leading space often matters)"
            )
        return known

    def encode(self, prompt: Prompt) -> Encoded:
        """A prompt's ids. CallError: no tokens, no chat template, a bad Kept."""
        line = _Line(self._words)
        if prompt.chat:
            self._chat(line, prompt)
        else:
            line.put(self._opening, [self.text([i]) for i in self._opening], template=True)
            self._add(line, prompt.segments)
        return line.encoded()

    def _add(self, line: _Line, segments: Sequence[Segment]) -> None:
        for segment in segments:
            if isinstance(segment, str):
                line.say(segment)
            elif isinstance(segment, Prefix | Reply):
                line.say(segment.text, prefix=isinstance(segment, Prefix))
            elif isinstance(segment, Soft):
                line.place(segment)
            elif isinstance(segment, Marker):
                line.put([self._marker(segment.text)], [segment.text])
            elif isinstance(segment, Kept):
                line.put(*kept(segment))
            else:
                raise CallError(f"a prompt cannot hold a {type(segment).__name__}")

    def _chat(self, line: _Line, prompt: Prompt) -> None:
        before, after, trims = self._user_turn()
        cut = next(
            (i for i, s in enumerate(prompt.segments) if isinstance(s, Reply | Kept)),
            len(prompt.segments),
        )
        said = list(prompt.segments[:cut])
        if trims and said:
            said[0] = _strip(said[0], "left")
            said[-1] = _strip(said[-1], "right")
        self._template(line, before)
        self._add(line, said)
        self._template(line, after)
        self._add(line, prompt.segments[cut:])

    def _marker(self, text: str) -> int:
        if text not in self._words.added:
            raise CallError(
                f"the reader's vocabulary has no added token {text!r}"
                f"{nearest(text, self._words.added)}; say other text in a plain segment"
            )
        return self._words.added[text]

    def _template(self, line: _Line, text: str) -> None:
        """Add a stretch of the chat template, whose added tokens count."""
        at = 0
        for found in self._words.pattern.finditer(text):
            if found.start() > at:
                line.say(text[at : found.start()], template=True)
            token = self._words.added[found[found.lastindex]]
            line.put([token], [found[0]], template=True)
            at = found.end()
        if at < len(text):
            line.say(text[at:], template=True)

    def _user_turn(self) -> tuple[str, str, bool]:
        """The template before and after what the user says, and whether it trims that."""
        if self._turn is None:
            if not self.tokenizer.chat_template:
                raise CallError(
                    "this reader has no chat template: ask with Prompt(..., chat=False)"
                )
            spaced = f" {_MARK} "
            self._turn = *self._around(), spaced not in self._rendered(("user", spaced))
            self._check()
        return self._turn

    def _around(self) -> tuple[str, str]:
        """The template before and after what the user says. CallError: it fails."""
        before, *after = self._rendered(("user", _MARK)).split(_MARK)
        if len(after) != 1:
            raise self._bad("does not write what the user says just once")
        return before, after[0]

    def _rendered(self, *turns: tuple[str, str]) -> str:
        """The chat of these turns (role, text) as the template writes it. CallError: it fails."""
        from transformers.utils.chat_template_utils import _compile_jinja_template as compiled

        try:
            # The library keeps what it compiled, so that this is what it renders.
            template = compiled(self.tokenizer.get_chat_template())
            template.globals["strftime_now"] = _TODAY.strftime
            return self.tokenizer.apply_chat_template(
                [{"role": role, "content": said} for role, said in turns],
                tokenize=False,
                add_generation_prompt=turns[-1][0] == "user",
                **self.template,
            )
        except Exception as error:  # a template is a program, which may raise anything
            raise self._bad(
                f"fails ({shortened(' '.join(str(error).split()) or type(error).__name__)})"
            ) from error

    def _bad(self, how: str) -> CallError:
        return CallError(
            f"{self.tokenizer.name_or_path or 'the tokenizer'}: its chat template {how}; "
            "mend chat_template.jinja, or remove it and ask without a chat"
        )

    def _check(self) -> None:
        """Our piecewise tokens must be the tokenizer's own where nothing imitates a special one."""
        probe = "Who wrote it?\n\nA passage."
        whole = self.tokenizer(self._rendered(("user", probe)), add_special_tokens=False).input_ids
        if tuple(whole) != self.encode(Prompt.from_segments(probe, chat=True)).tokens:
            log.warning(
                "the chat template tokenises differently in pieces (the tokenizer adds a space "
                "at the start of each); prompts differ from the model's own by that"
            )

    def ends(self) -> frozenset[int]:
        """Ids that end the reader's turn: its end-of-sequence token and its template's.

        CallError: the chat template fails.
        """
        ids = {self.tokenizer.eos_token_id}
        if self.tokenizer.chat_template:
            self._around()
            text = self._rendered(("user", "a"), ("assistant", _MARK))
            found = self._words.pattern.search(text.rpartition(_MARK)[2] if _MARK in text else "")
            if found:
                ids.add(self._words.added[found[found.lastindex]])
        return frozenset(ids - {None})

    # --------------------------------------------------------------- to text

    def text(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode(
            list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )

    def offsets(self, tokens: Sequence[int], text: str) -> tuple[int, ...]:
        """The character of `text` (all of `tokens` decoded) at which each token begins.

        A character of several tokens begins each of them: half a character
        decodes to a replacement mark, which the whole text does not have there.
        """
        starts = []
        for i in range(len(tokens)):
            before = self.text(tokens[:i])
            starts.append(_common(before, text))
        return tuple(starts)


def kept(segment: Kept) -> tuple[Sequence[int], Sequence[str]]:
    """The ids that a segment keeps, and what each says. CallError: more than there are."""
    made, n = segment.generation, segment.n_tokens
    if not 0 <= n <= len(made.tokens):
        raise CallError(f"cannot keep {n} tokens of a generation of {len(made.tokens)}")
    return made.tokens[:n], made.pieces[:n]


def spoken_text(segment: Kept) -> str:
    return "".join(kept(segment)[1])


def prompt_text(prompt: Prompt | None) -> str:
    """A prompt's segments as one text: soft ones as [name:index], kept ones as written."""
    if prompt is None:
        return ""
    parts = []
    for segment in prompt.segments:
        if isinstance(segment, str):
            parts.append(segment)
        elif isinstance(segment, Soft):
            parts.append(f"[{segment.name}:{segment.index}]")
        elif isinstance(segment, Kept):
            parts.append(spoken_text(segment))
        else:
            parts.append(segment.text)
    return "".join(parts)


def _tokens_of(
    stretch: tuple[int, int], text: str, spans: Sequence[tuple[int, int]]
) -> tuple[int, int]:
    """The tokens that say characters of a template's stretch, first and behind the last.

    A token at its edge, of which the stretch has blanks alone and its neighbour a word, is the
    neighbour's: words bring the space before them, and marks the line break behind them.
    """
    start, end = stretch
    first = bisect_right(spans, start, key=itemgetter(1))
    last = bisect_left(spans, end, key=itemgetter(0))

    def neighbours(token: int) -> bool:
        a, b = spans[token]
        own = text[a : max(a, start)] + text[min(b, end) : b]
        return bool(own.strip()) and not text[max(a, start) : min(b, end)].strip()

    if first < last and neighbours(first):
        first += 1
    if first < last and neighbours(last - 1):
        last -= 1
    return first, last


def _common(left: str, right: str) -> int:
    """How many characters two texts share from the start."""
    if right.startswith(left):
        return len(left)
    # Only the end of `left` can differ: half a character, rarely more than one.
    at = min(len(left), len(right))
    while not right.startswith(left[:at]):
        at -= 1
    return at


def _strip(segment, side: str):
    """A segment without white space on one side, as the template would leave it."""
    if isinstance(segment, str):
        return segment.lstrip() if side == "left" else segment.rstrip()
    if isinstance(segment, Prefix):
        return Prefix(_strip(segment.text, side))
    return segment
