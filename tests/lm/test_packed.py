"""Linear layers with their weights laid out once: the same products, and only where they may be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from rag_repro.lm.passes import FEW, PackedLinears
from rag_repro.schema import Generate, Prompt
from tests.lm import tiny

ALL = 1 << 30

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this PyTorch has no oneDNN"
)


class Two(nn.Module):
    """Two linear layers, one with a bias, and something that only looks like one."""

    class Other(nn.Linear):
        def forward(self, x):
            return super().forward(x) + 1

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.first = nn.Linear(24, 40, dtype=dtype)
        self.last = nn.Linear(40, 8, bias=False, dtype=dtype)
        self.other = Two.Other(8, 8, dtype=dtype)
        self.device = torch.device("cpu")

    def forward(self, x):
        return self.other(self.last(self.first(x)))


@pytest.fixture
def model():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return Two()


def x(rows: int) -> torch.Tensor:
    return torch.randn(1, rows, 24, generator=torch.Generator().manual_seed(rows))


@pytest.mark.parametrize("rows", [1, FEW, FEW + 1, 40])
def test_products_are_the_plain_ones(model, rows):
    with torch.inference_mode():
        plain = model(x(rows))
        with PackedLinears(model, ALL).used():
            torch.testing.assert_close(model(x(rows)), plain, rtol=0, atol=1e-5)


def test_packed_are_linear_layers_themselves_and_only_in_the_block(model):
    packed = PackedLinears(model, ALL)
    assert packed.layers == [model.first, model.last]
    with packed.used():
        assert {"forward"} <= model.first.__dict__.keys() & model.last.__dict__.keys()
        assert "forward" not in model.other.__dict__
    assert "forward" not in model.first.__dict__
    with pytest.raises(RuntimeError, match="in the middle"), packed.used():
        raise RuntimeError("in the middle")
    assert "forward" not in model.first.__dict__


def test_two_users_share_the_packed_weights(model):
    def made():
        with PackedLinears(model, ALL).used():
            return model.first.__dict__["forward"].packed

    assert made() is made()


@pytest.mark.parametrize("how", ["in place", "exchanged", "other memory"])
def test_changed_weights_are_packed_anew(model, how):
    packed = PackedLinears(model, ALL)
    with torch.inference_mode(), packed.used():
        model(x(9))
    with torch.no_grad():
        if how == "in place":
            model.first.weight.add_(1)
        elif how == "exchanged":
            version = model.first.weight._version
            model.first.weight = nn.Parameter(model.first.weight + 1)
            while model.first.weight._version < version:  # nothing but the object differs
                model.first.weight.mul_(1)
        else:
            model.first.weight.data = model.first.weight + 1
    with torch.inference_mode():
        plain = model(x(9))
        with packed.used():
            torch.testing.assert_close(model(x(9)), plain, rtol=0, atol=1e-4)


def test_what_does_not_fit_or_is_of_another_kind_stays_plain(model):
    size = model.first.weight.nbytes
    assert PackedLinears(model, size).layers == [model.first]
    assert PackedLinears(model, size - 1).layers == []
    assert PackedLinears(Two(torch.bfloat16), ALL).layers == []
    model.device = torch.device("cuda")
    assert PackedLinears(model, ALL).layers == []


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_reader_writes_and_traces_alike_with_packed_weights_and_without(family):
    prompts = [Prompt.from_segments(text) for text in tiny.LINES]
    calls = [Generate(prompt, 6, trace=True) for prompt in prompts]
    plain = tiny.reader(family, packed_bytes=0).generate(calls)
    packed = tiny.reader(family, packed_bytes=ALL).generate(calls)
    for one, other in zip(plain, packed, strict=True):
        assert one.tokens == other.tokens
        np.testing.assert_allclose(one.trace.entropy, other.trace.entropy, atol=1e-4)
        np.testing.assert_allclose(one.trace.attention[-1], other.trace.attention[-1], atol=1e-5)


@pytest.mark.parametrize(("limit", "used"), [(0, False), (ALL, True)])
def test_a_reader_uses_them_as_far_as_they_may_take_memory(limit, used):
    reader, seen = tiny.reader(packed_bytes=limit), set()
    for module in reader.model.modules():
        if type(module) is nn.Linear:
            module.register_forward_hook(lambda layer, *_: seen.add("forward" in layer.__dict__))
    reader.generate([Generate(Prompt.from_segments(*tiny.LINES), 3)])
    assert seen == {used}


def test_after_a_reader_the_model_is_transformers_own():
    reader = tiny.reader()
    reader.generate([Generate(Prompt.from_segments(*tiny.LINES), 3)])
    assert all("forward" not in module.__dict__ for module in reader.model.modules())
