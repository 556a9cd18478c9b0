"""The released code's decisions, word by word, against a second writing of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rag_repro.methods.dragin.dynamic_settings import RELEASED, DynamicSettings, ReleasedSettings
from tests.methods.dragin import reference
from tests.methods.dragin.given import decision
from tests.methods.dragin.language import SMALL

WORDS = [
    "the",
    "was",
    "in",
    "of",
    "Brak",
    "town",
    "river",
    "1847",
    "painter",
    "wrote",
    "Odd",
    "Hall",
]


def text_of(rng: np.random.Generator, n: int) -> str:
    words = [WORDS[i] for i in rng.integers(len(WORDS), size=n)]
    return " ".join(w + ("." if rng.random() < 0.25 else "") for w in words)


def tokens_of(text: str, rng: np.random.Generator) -> tuple[str, ...]:
    """Words in one to three pieces, the blank with the first."""
    made = []
    for i, word in enumerate(text.split(" ")):
        word = f" {word}" if i else word
        inside = rng.integers(1, len(word) + 1, size=rng.integers(3)).tolist()
        made += [word[a:b] for a, b in pairwise(sorted({0, len(word), *inside}))]
    # A blank alone would begin a word that the next piece belongs to: join it.
    joined = []
    for piece in made:
        if joined and joined[-1].isspace():
            joined[-1] += piece
        else:
            joined.append(piece)
    return tuple(joined)


def attention_of(n: int, heads: int, rng: np.random.Generator) -> np.ndarray:
    made = np.tril(rng.random((heads, n, n)) ** 4)
    return made / made.sum(-1, keepdims=True)


def sentences(text: str) -> list[str]:
    return [text[a:b] for a, b in SMALL.sentences(text)]


@pytest.mark.parametrize("seed", range(60))
def test_decision_and_query_are_the_same(seed: int):
    rng = np.random.default_rng(seed)
    tokens = tokens_of(text_of(rng, int(rng.integers(1, 25))), rng)
    if seed % 10 == 9:  # a line break in the text, which the join by blanks never has
        tokens = tuple(t.replace(" ", "\n") if i == 3 else t for i, t in enumerate(tokens))
    entropy = rng.random(len(tokens)) * 2
    attention = attention_of(len(tokens), 3, rng)
    question, said = "Who was in Brak?", " ".join([text_of(rng, 4)] * (seed % 2))
    threshold, top = float(rng.choice([0.5, 1.5, 3.0, 6.0])), int(rng.integers(2, 8))
    expected = reference.trigger(tokens, entropy, attention, threshold, sentences, SMALL.content)
    triggered, kept, hits, sentence = expected

    def again(text: str):
        fixed = np.random.default_rng(seed + 1000)
        read = tokens_of(text.replace("  ", " "), fixed)
        return read, attention_of(len(read), 3, fixed)

    settings = ReleasedSettings(threshold=threshold, top_n=top)
    extra = {}
    if triggered:
        words = reference.words_of(tokens)
        current = [reference.spelled(tokens, w) for w in words[sentence[0] : sentence[1]]]
        text = " ".join([question, said, kept, " ".join(current)])
        extra["context_tokens"], extra["context_attention"] = again(text)
    ours = decision(
        tokens, entropy, attention, settings, question=question, said=said, language=SMALL, **extra
    )
    assert ours.triggered == triggered
    assert " ".join(ours.kept.split()) == " ".join(kept.split())
    if triggered:
        words = [reference.spelled(tokens, w) for w in reference.words_of(tokens)]
        assert list(ours.hits) == [words[w] for w in hits]
        wanted = reference.query(
            tokens, attention, hits, sentence, question, said, kept, again, SMALL.content, top
        )
        assert ours.query == wanted


def test_both_answers_occur_above():
    """Else the comparison would have compared nothing."""
    found = set()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        tokens = tokens_of(text_of(rng, int(rng.integers(1, 25))), rng)
        entropy = rng.random(len(tokens)) * 2
        attention = attention_of(len(tokens), 3, rng)
        said = reference.trigger(tokens, entropy, attention, 3.0, sentences, SMALL.content)
        found.add((said[0], bool(said[2]), bool(said[1])))
    assert {(True, True, True), (True, True, False), (False, False, True)} <= found


def example(seed: int):
    """A draft behind five others, the same read alone, and a second reading of it."""
    rng = np.random.default_rng(seed)
    tokens = tokens_of(text_of(rng, 20), rng)
    n = len(tokens)
    entropy, whole = rng.random(n) * 2, attention_of(n + 5, 3, rng)
    read = tokens_of(f"Who was in Brak? {''.join(tokens)}", rng)
    return tokens, entropy, whole, read, attention_of(len(read), 3, rng)


def decided(seed: int, settings: DynamicSettings):
    tokens, entropy, whole, read, looks = example(seed)
    given, seen = {"before": ("Who", " was", " in", " Brak", "?")}, whole[:, 5:]
    if settings.alone:
        given, seen = {}, whole[:, 5:, 5:] / whole[:, 5:, 5:].sum(-1, keepdims=True)
    if settings.context == "again":
        given |= {"context_tokens": read, "context_attention": looks}
    made = decision(tokens, entropy, seen, settings, language=SMALL, **given)
    return made.triggered, made.kept, made.hits, made.query


IN_THE_LOOP = {"documents", "query_tokens", "ask_again"}


@pytest.mark.parametrize("name", sorted(RELEASED.keys() - IN_THE_LOOP))
def test_each_difference_of_the_released_code_changes_a_decision_or_a_query(name: str):
    """One setting at a time back to the equations: it must flip something in the examples."""
    released = {"threshold": 2.0, "top_n": 5}
    back = {**released, name: getattr(DynamicSettings(), name)}
    flipped = [
        seed
        for seed in range(60)
        if decided(seed, ReleasedSettings(**released)) != decided(seed, ReleasedSettings(**back))
    ]
    assert flipped
