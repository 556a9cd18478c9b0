"""Training on a tiny random-weight model: it learns, stops, goes on, and loads again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from peft import PeftModel

from rag_repro.lm.local import LocalReader
from rag_repro.lm.prompts import Codec
from rag_repro.schema import Generate, Prompt
from rag_repro.training import fit as module
from rag_repro.training.examples import Encoded, Example, encode
from rag_repro.training.fit import Plan, backward, fit, halved, loss_of, rate, suited, wrap
from rag_repro.training.recipes import Lora, Optimiser, RecipeError
from tests.lm import tiny

LESSONS = (("Who directed the film?", " Xawery"), ("The capital of Italy is", " Rome."))


def _plan(codec: Codec, key: str = "k", **optimiser) -> Plan:
    examples = [encode(Example(Prompt.from_segments(a), b, "x"), codec, 2) for a, b in LESSONS] * 3
    how = {"learning_rate": 2e-2, "batch_tokens": 64, "epochs": 12, **optimiser}
    return Plan(examples, Lora(rank=4, alpha=8), Optimiser(**how), seed=3, key=key)


def _fit(loaded, plan: Plan, folder, **how):
    return fit(wrap(loaded.model, plan.lora, plan.seed), plan, folder, **how)


class Cut(Exception):
    """The machine goes away."""


def _cut_at(step: int | None):
    """The targets' loss, until the machine goes away at one of the steps; None: it stays."""
    steps = iter(range(99))

    def loss(model, batch):
        if next(steps) == step:
            raise Cut
        return loss_of(model, batch)

    return loss


def _curve(folder) -> list[dict]:
    return [json.loads(row) for row in (folder / "curve.jsonl").read_text().splitlines()]


def test_the_rate_rises_in_a_line_and_falls_in_a_cosine():
    optimiser = Optimiser(learning_rate=1.0, warmup=0.1)
    assert rate(0, 100, optimiser) == pytest.approx(0.1)
    assert rate(9, 100, optimiser) == pytest.approx(1.0)
    assert rate(10, 100, optimiser) == pytest.approx(1.0)
    assert rate(55, 100, optimiser) == pytest.approx(0.5)
    assert rate(100, 100, optimiser) == pytest.approx(0.0)


def test_loss_is_the_targets_cross_entropy_whatever_the_padding():
    loaded = tiny.loaded("llama")
    model = wrap(loaded.model, Lora(rank=2), 0)
    rows = [Encoded((5, 6, 7, 8, 9), 2, "x"), Encoded((11, 12, 13), 1, "x")]
    with torch.no_grad():
        total, n = loss_of(model, rows)
        by_hand = 0.0
        for row in rows:
            logits = model(input_ids=torch.tensor([row.tokens])).logits[0]
            log_p = logits.log_softmax(-1)
            for at in range(len(row.tokens) - row.n_target, len(row.tokens)):
                by_hand -= float(log_p[at - 1, row.tokens[at]])
    assert n == 3
    assert float(total) == pytest.approx(by_hand, rel=1e-5)


def test_what_is_named_is_learned_in_full_and_the_rest_stays(tmp_path):
    before = dict(tiny.loaded("llama").model.named_parameters())
    last = {n for n in before if "layers.2." in n}
    loaded = tiny.loaded("llama")
    lora = Lora(rank=2, targets=["layers.0.mlp.up_proj"], whole=["layers.2"])
    _fit(loaded, replace(_plan(Codec(loaded.tokenizer)), lora=lora), tmp_path)
    base = tiny.loaded("llama").model
    merged = PeftModel.from_pretrained(base, tmp_path).merge_and_unload()
    moved = {n for n, p in merged.named_parameters() if not torch.equal(p, before[n])}
    assert len(last) == 9
    assert moved == {*last, "model.layers.0.mlp.up_proj.weight"}


@pytest.mark.parametrize("tied", [False, True])
def test_a_step_on_halved_weights_is_the_same_to_the_last_digit(tied):
    rows, grads = [Encoded((5, 6, 7, 8, 9), 2, "x")], []
    for how in (lambda model, _: model, halved):
        model = wrap(tiny.loaded("llama", tie_word_embeddings=tied).model, Lora(rank=2), 0)
        total, _ = backward(how(model, Optimiser()), rows, Optimiser(), loss_of)
        trained = [p for p in model.parameters() if p.requires_grad]
        grads.append([total, *(p.grad for p in trained)])
    for plain, half in zip(*grads, strict=True):
        assert torch.equal(torch.as_tensor(plain), torch.as_tensor(half))
    precisions = {n: p.dtype for n, p in model.named_parameters() if not p.requires_grad}
    head = [n for n in precisions if "embed_tokens" in n or (tied and "lm_head" in n)]
    assert all(precisions[n] == torch.float32 for n in head)
    assert sum(p == torch.bfloat16 for p in precisions.values()) == 7 * 3 + (not tied)
    whole = halved(wrap(tiny.loaded("llama").model, Lora(rank=2), 0), Optimiser(autocast=False))
    assert {p.dtype for p in whole.parameters()} == {torch.float32}


def test_a_device_that_is_slow_in_bfloat16_computes_in_float32(monkeypatch):
    """The plan's key is another matter: a run may go on where it is fast."""
    for fast in (True, False):
        monkeypatch.setattr("rag_repro.training.fit.fast_bfloat16", lambda device, fast=fast: fast)
        assert suited(Optimiser(), "cpu") == Optimiser(autocast=fast)
        assert suited(Optimiser(autocast=False), "cpu") == Optimiser(autocast=False)


def test_it_learns_and_the_reader_says_it(tmp_path):
    loaded = tiny.loaded("llama")
    codec = Codec(loaded.tokenizer)
    _fit(loaded, _plan(codec), tmp_path / "a", held_out=_plan(codec).examples[:2])
    curve = _curve(tmp_path / "a")
    assert curve[-1]["loss"] < 0.2 < 2 < curve[0]["loss"]
    assert curve[-1]["held_out"]["x"] < 0.2
    assert not (tmp_path / "a" / "state").exists()
    fresh = tiny.loaded("llama")
    from peft import PeftModel

    taught = PeftModel.from_pretrained(fresh.model, tmp_path / "a").merge_and_unload()
    reader = LocalReader(replace(fresh, model=taught))
    ask = [Generate(Prompt.from_segments(question), 8) for question, _ in LESSONS]
    assert [g.text for g in reader.generate(ask)] == [answer for _, answer in LESSONS]


def test_a_cut_run_ends_where_an_uncut_one_does(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SAVE_EVERY", 0.0)
    plan = _plan(Codec(tiny.tokenizer()), epochs=4, batch_tokens=40)
    plan = replace(plan, lora=replace(plan.lora, dropout=0.1))
    assert len(plan.steps()) == 8
    whole = _fit(tiny.loaded("llama"), plan, tmp_path / "whole")

    with pytest.raises(Cut):
        _fit(tiny.loaded("llama"), plan, tmp_path / "cut", objective=_cut_at(5))
    cut = _fit(tiny.loaded("llama"), plan, tmp_path / "cut")
    from safetensors.torch import load_file

    a, b = (load_file(f / "adapter_model.safetensors") for f in (whole, cut))
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name
    losses = [[row["loss"] for row in _curve(folder)] for folder in (whole, cut)]
    assert losses[0] == losses[1]


def test_a_run_that_goes_on_elsewhere_tells_of_both_precisions(tmp_path, monkeypatch):
    """The state is taken over where another precision is fast."""
    monkeypatch.setattr(module, "SAVE_EVERY", 0.0)
    plan = _plan(Codec(tiny.tokenizer()), epochs=4, batch_tokens=40, autocast=False)
    with pytest.raises(Cut):
        _fit(tiny.loaded("llama"), plan, tmp_path, objective=_cut_at(5))
    elsewhere = replace(plan, optimiser=replace(plan.optimiser, autocast=True))
    told = [row["computed_in"] for row in _curve(_fit(tiny.loaded("llama"), elsewhere, tmp_path))]
    assert told == ["float32"] * 5 + ["bfloat16"] * 3


def test_another_recipes_state_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SAVE_EVERY", 0.0)
    codec = Codec(tiny.tokenizer())
    loaded = tiny.loaded("llama")
    plan = _plan(codec, epochs=1)
    model = wrap(loaded.model, plan.lora, 0)
    adam = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    module.State(tmp_path / "state", "other").save(model, adam, 1, [])
    with pytest.raises(RecipeError, match="to lose them and begin anew"):
        _fit(tiny.loaded("llama"), plan, tmp_path)


@pytest.mark.parametrize("cut", [None, 6])
def test_the_weights_of_the_lowest_check_are_kept(cut, tmp_path, monkeypatch):
    """Also where the run was cut after that check."""
    monkeypatch.setattr(module, "SAVE_EVERY", 0.0)
    plan = _plan(Codec(tiny.tokenizer()), epochs=4, batch_tokens=40)
    seen, said = [], iter([0.7, 0.2, 0.9, 0.2])

    def check(model, examples):
        assert not model.training
        assert not torch.is_grad_enabled()
        seen.append({n: p.clone() for n, p in model.named_parameters() if p.requires_grad})
        return {"a": 1.0, "b": next(said)}

    loss = _cut_at(cut)

    def train():
        goal = {"objective": loss, "held_out": [1], "checks": 4, "check": check, "keep": "b"}
        return _fit(tiny.loaded("llama"), plan, tmp_path / "a", **goal)

    if cut is not None:
        with pytest.raises(Cut):
            train()
    folder = train()
    rows = _curve(folder)
    assert len(rows) == 8  # none is cut short
    assert [row["step"] for row in rows if row.get("kept")] == [2, 4]
    from safetensors.torch import load_file

    told = json.loads((folder / "adapter_config.json").read_text())
    assert told["base_model_name_or_path"] is None  # a folder of this machine
    published = load_file(folder / "adapter_model.safetensors")
    for name, tensor in published.items():
        own = name.replace(".weight", ".default.weight")
        assert torch.equal(tensor, seen[1][own].half())
    assert any(
        not torch.equal(seen[3][n.replace(".weight", ".default.weight")].half(), published[n])
        for n in published
    )


@pytest.mark.parametrize("cut", [None, 3])
def test_a_run_stops_when_its_patience_ends_and_keeps_the_lowest(cut, tmp_path, monkeypatch):
    """The lowest mean over all held-out examples, of which each source has its own number."""
    monkeypatch.setattr(module, "SAVE_EVERY", 0.0)
    plan = _plan(Codec(tiny.tokenizer()), epochs=4, batch_tokens=40, checks=8, patience=2)
    assert len(plan.steps()) == 8
    held_out = [Encoded((5, 6), 1, source) for source in ("many", "many", "many", "few")]
    # The mean of the two sources is lowest at the third look, that of the examples at the second.
    said = iter([(0.9, 0.9), (0.4, 0.9), (0.7, 0.1), (0.8, 0.8)])
    how = {
        "objective": _cut_at(cut),
        "held_out": held_out,
        "check": lambda model, examples: dict(zip(("many", "few"), next(said), strict=True)),
    }
    if cut is not None:
        with pytest.raises(Cut):
            _fit(tiny.loaded("llama"), plan, tmp_path, **how)
    rows = _curve(_fit(tiny.loaded("llama"), plan, tmp_path, **how))
    assert len(rows) == 4
    assert all("held_out" in row for row in rows)
    assert [row["step"] for row in rows if "kept" in row] == [1, 2]


def test_patience_without_held_out_examples_is_refused(tmp_path):
    with pytest.raises(RecipeError, match="no example is held out; leave out patience"):
        _fit(tiny.loaded("llama"), _plan(Codec(tiny.tokenizer()), patience=2), tmp_path)


@pytest.mark.parametrize(("told", "kept"), [([0.2, 0.1, 0.3, 0.4], [2, 4]), ([], [])])
def test_without_patience_all_steps_are_taken_and_the_lowest_weights_kept(told, kept, tmp_path):
    """Without held-out examples the last, of which no row says so."""
    plan = _plan(Codec(tiny.tokenizer()), epochs=4, batch_tokens=40)
    said = iter(told)
    how = {"held_out": [Encoded((5, 6), 1, "x")] if told else (), "checks": 4}
    rows = _curve(
        _fit(tiny.loaded("llama"), plan, tmp_path, check=lambda m, e: {"x": next(said)}, **how)
    )
    assert len(rows) == 8
    assert [row["step"] for row in rows if "kept" in row] == kept
