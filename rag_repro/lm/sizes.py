"""How large a reader is, by its shape alone: parameters, bytes of weights, bytes of a cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from rag_repro.schema.errors import ReaderError
from rag_repro.words import nearest

SHAPES = Path(__file__).parent / "shapes.yaml"
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
KEPT = 1 << 30
"""Bytes of kept beginnings of prompts that a local reader holds at most."""
PACKED = 4 << 30
"""Bytes of the second copy of its linear layers that it makes for a processor, at most."""
NF4_BLOCK = 64
"""Weights that share one float32 scale, as bitsandbytes has it unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A causal model of the Llama kind: its layers are attention and a gated inner layer.

    width: of the hidden state. heads, key_heads: of queries, and of keys and values; head_width:
    of each. inner: width between the gates. tied: the embedding writes, too.
    context: tokens at most. bias: queries, keys and values have one. norms: a layer's, beside the
    last one of the model; head_norms: queries and keys have one besides.
    """

    layers: int
    width: int
    heads: int
    key_heads: int
    head_width: int
    inner: int
    vocabulary: int
    tied: bool
    context: int
    bias: bool = False
    norms: int = 2
    head_norms: bool = False

    @property
    def linear(self) -> int:
        """Weights in the layers' products, which four bits can stand for; the head's are not."""
        queries, keys = self.heads * self.head_width, self.key_heads * self.head_width
        return self.layers * self.width * (2 * queries + 2 * keys + 3 * self.inner)

    @property
    def embedding(self) -> int:
        """Weights of one table of words."""
        return self.vocabulary * self.width

    @property
    def parameters(self) -> int:
        """All of them; a tied embedding counts once."""
        biases = self.bias * (self.heads + 2 * self.key_heads) * self.head_width
        norms = self.norms * self.width + 2 * self.head_norms * self.head_width
        tables = self.embedding * (1 if self.tied else 2)
        return tables + self.linear + self.layers * (biases + norms) + self.width

    def weights(self, dtype: str) -> int:
        """Bytes of the weights in memory; "nf4": half a byte each and the scales, the rest in two.

        ReaderError for another dtype.
        """
        if dtype == "nf4":
            rest = self.parameters - self.linear
            return self.linear // 2 + self.linear // NF4_BLOCK * 4 + rest * 2
        if dtype not in BYTES:
            raise ReaderError(f"unknown dtype {dtype!r}{nearest(dtype, [*BYTES, 'nf4'])}")
        return self.parameters * BYTES[dtype]

    @property
    def packed(self) -> int:
        """Bytes of the second copy, in float32; the head, which writes, is a linear layer too."""
        return min(PACKED, 4 * (self.linear + self.embedding))

    def cache(self, tokens: int, dtype: str) -> int:
        """Bytes of the keys and values of so many tokens; four-bit weights compute in two bytes."""
        a_token = 2 * self.layers * self.key_heads * self.head_width
        return tokens * a_token * BYTES["bfloat16" if dtype == "nf4" else dtype]


@cache
def shapes() -> Mapping[str, Shape]:
    """The shapes that are known, by the name that `lm.hub` resolves, or by owner/name."""
    told = yaml.safe_load(SHAPES.read_text(encoding="utf-8"))
    return {name: Shape(**shape) for name, shape in told.items()}


def shape(name: str) -> Shape:
    """The shape of the weights of that name, as `smollm2-135m` or `hub:owner/name@commit`.

    ReaderError where it is not known.
    """
    bare = name.removeprefix("hub:").partition("@")[0]
    if bare not in shapes():
        raise ReaderError(
            f"the shape of {bare!r} is not known{nearest(bare, shapes())}; add it to {SHAPES.name}"
        )
    return shapes()[bare]
