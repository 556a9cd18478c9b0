"""R²-Former: against the equations in plain numpy, with and without padding, saved and loaded."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from rag_repro.lm import former
from rag_repro.lm.former import FreeTokens, R2Former
from rag_repro.schema import Generate, Prompt, Soft
from rag_repro.schema.errors import CallError, WeightsError
from tests.lm import tiny

SMALL = {"n_features": 3, "width": 5, "hidden": 8, "heads": 2, "feed_forward": 12, "places": 6}
FEATURES = torch.tensor(np.random.default_rng(0).normal(size=(4, 3)), dtype=torch.float32)


def small(seed: int = 0, **more) -> R2Former:
    return former.build_module("r2", seed, **{**SMALL, **more}).eval()


def by_hand(module: R2Former, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """H, equation 3 and equation 7 of x (k, n) by their words."""
    w = {name: t.detach().double().numpy() for name, t in module.state_dict().items()}

    def linear(name, a):
        return a @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(name, a):
        a = (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5)
        return a * w[f"{name}.weight"] + w[f"{name}.bias"]

    h = linear("lift", x) + w["positions"][: len(x)]
    at = "encoder.layers.0."
    q, k, v = np.split(h @ w[at + "self_attn.in_proj_weight"].T + w[at + "self_attn.in_proj_bias"],
                       3, axis=1)  # fmt: skip
    heads = []
    for a, b, c in zip(*(np.split(m, 2, axis=1) for m in (q, k, v)), strict=True):
        scores = np.exp(a @ b.T / np.sqrt(4))
        heads.append(scores / scores.sum(1, keepdims=True) @ c)
    h = norm(at + "norm1", h + linear(at + "self_attn.out_proj", np.concatenate(heads, axis=1)))
    fed = linear(at + "linear2", np.maximum(linear(at + "linear1", h), 0))
    h = norm(at + "norm2", h + fed)
    return h, linear("projection", h), linear("head", h)[:, 0]


def test_it_is_the_equations():
    module = small()
    h, e, s = by_hand(module, FEATURES.double().numpy())
    with torch.no_grad():
        hidden = module.attend(FEATURES[None])
        np.testing.assert_allclose(hidden[0], h, atol=1e-5)
        np.testing.assert_allclose(module(FEATURES), e, atol=1e-5)
        np.testing.assert_allclose(module.relevance(hidden)[0], s, atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_a_padded_row_changes_no_other(training):
    """In training another path through PyTorch's layer is taken."""
    module = small(dropout=0.0).train(training)
    rubbish = torch.full((2, 4, 3), 7.0)
    rubbish[0, :4], rubbish[1, :2] = FEATURES, FEATURES[:2]
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    with torch.no_grad():
        together = module.attend(rubbish, mask)
        for row, k in ((0, 4), (1, 2)):
            alone = module.attend(FEATURES[None, :k])[0]
            np.testing.assert_allclose(together[row, :k], alone, atol=1e-5)
        unmasked = module.attend(rubbish)
    assert not np.allclose(unmasked[1, :2], together[1, :2], atol=1e-3)


def test_place_matters_and_every_place_sees_every_other():
    module = small()
    with torch.no_grad():
        made = module(FEATURES)
        turned = module(FEATURES.flip(0)).flip(0)
        last = module(torch.cat([FEATURES[:3], FEATURES[3:] + 1]))
    assert not torch.allclose(made, turned, atol=1e-3)
    assert not torch.allclose(made[0], last[0], atol=1e-4)


def test_sizes_of_the_paper():
    """1.5 million numbers beside a 576-wide reader, 2.4 million beside a 4096-wide one."""
    assert former.count(R2Former(3, 576)) == 1_469_505
    assert former.count(R2Former(3, 4096)) == 2_374_145
    # A vector a place, and a projection as large as a former's.
    assert former.count(FreeTokens(20, 576)) == 20 * 256 + 576 * 257
    # Three columns or two: 256 numbers of 1.5 million.
    assert former.count(R2Former(2, 576)) == 1_469_505 - 256


def test_what_does_not_fit_is_named():
    with pytest.raises(CallError, match="7 passages for a former of 6 places"):
        small()(torch.zeros(7, 3))
    with pytest.raises(CallError, match="7 passages for a former of 6 places"):
        FreeTokens(6, 5)(torch.zeros(7, 3))
    with pytest.raises(CallError, match="3 columns was given 2: name in the condition's `columns`"):
        small()(torch.zeros(4, 2))


def test_free_tokens_look_at_no_feature():
    tokens = former.build_module("free", 0, places=6, width=5)
    assert torch.equal(tokens(FEATURES), tokens(FEATURES * 9))
    assert torch.equal(tokens(FEATURES), tokens.projection(tokens.vectors[:4]))


@pytest.mark.parametrize("kind", ["r2", "free"])
def test_they_begin_as_long_as_the_readers_own_embeddings(kind):
    sizes = {"r2": {"n_features": 3, "width": 48}, "free": {"places": 20, "width": 48}}
    module = former.build_module(kind, 0, **sizes[kind]).eval()
    own = torch.randn(400, 48, generator=torch.Generator().manual_seed(1)) * 0.07
    with torch.no_grad():
        module.start_as(own)
        lengths = module(torch.rand(20, 3)).norm(dim=1)
    assert float(lengths.mean()) == pytest.approx(float(own.norm(dim=1).mean()), rel=0.2)


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_what_layers_meet_is_told_and_not_what_the_table_holds(family):
    """Gemma scales its embeddings by the root of their width, behind the table."""
    table = tiny.loaded(family).model.get_input_embeddings()
    scale = {"llama": 1, "gemma3": table.weight.shape[1] ** 0.5}[family]
    np.testing.assert_allclose(former.met(table), scale * table.weight.detach(), rtol=1e-2)


@pytest.mark.parametrize("kind", ["r2", "free"])
def test_saved_and_loaded_it_is_the_same_to_half_precision(kind, tmp_path):
    sizes = {"r2": SMALL, "free": {"places": 6, "width": 5}}[kind]
    module = former.build_module(kind, 3, **sizes).eval()
    former.save(module, tmp_path)
    card = {"former": {"soft": "x", "kind": kind, "settings": sizes, "inputs": "free"}}
    name, again = former.load(tmp_path, card)
    assert name == "x"
    assert not again.training
    with torch.no_grad():
        np.testing.assert_allclose(again(FEATURES), module(FEATURES), atol=5e-3)
    wrong = json.loads(json.dumps(card))
    wrong["former"]["settings"]["width"] = 7
    for other in (wrong, {}, {"former": {"soft": "x", "kind": "q"}}):
        with pytest.raises(WeightsError, match="not the former that its card tells of"):
            former.load(tmp_path, other)
    (tmp_path / "former.safetensors").write_bytes(b"\0" * 40)
    with pytest.raises(WeightsError, match=r"former\.safetensors"):
        former.load(tmp_path, card)


def test_the_same_seed_the_same_weights():
    assert torch.equal(small(1).positions, small(1).positions)
    assert not torch.equal(small(1).positions, small(2).positions)


def test_a_reader_says_what_does_not_fit_in_the_calls_place():
    reader = tiny.reader()
    reader.add_soft("r2", former.build_module("r2", 0, n_features=3, width=48, places=2))
    features = FEATURES.numpy()
    asked = [
        Generate(Prompt.from_segments("a", Soft("r2", part, 0), "b"), 2)
        for part in (features[:2], features[:3], features[:2, :2])
    ]
    good, long, narrow = reader.generate(asked)
    assert good.tokens
    assert "3 passages for a former of 2 places" in str(long)
    assert "columns" in str(narrow)
