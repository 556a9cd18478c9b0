"""Training low-rank adapters over a frozen base; for readers, loss on targets only.

A run writes its state every few minutes and goes on from there; the same
recipe, seed and base give the same order of steps wherever it was cut.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rag_repro.bars import Bar
from rag_repro.digest import replacing, write_whole
from rag_repro.lm.hub import CARD, CURVE, trained_files
from rag_repro.lm.load import fast_bfloat16
from rag_repro.lm.weights import quiet
from rag_repro.training.examples import Encoded, batches
from rag_repro.training.recipes import Lora, Optimiser, RecipeError

log = logging.getLogger(__name__)

SAVE_EVERY = 120.0
"""Seconds between two states on disk."""


Objective = Callable[[Any, Sequence[Any]], tuple[Any, int]]
"""(model, examples) -> summed loss, and over how many things it was summed."""

Check = Callable[[Any, Sequence[Any]], dict[str, float]]
"""(model, held-out examples) -> what is watched, by name."""


@dataclass(frozen=True)
class Plan:
    """One run: what is learned, how, in which order. `key` names all of it.

    examples: things with `tokens` and a `source`, as the objective wants them.
    """

    examples: Sequence[Any]
    lora: Lora | None
    optimiser: Optimiser
    seed: int
    key: str

    def steps(self) -> list[tuple[int, ...]]:
        lengths = [len(e.tokens) for e in self.examples]
        return [
            batch
            for epoch in range(self.optimiser.epochs)
            for batch in batches(
                lengths,
                epoch,
                self.seed,
                self.optimiser.batch_tokens,
                self.optimiser.batch_rows,
            )
        ]


def rate(step: int, steps: int, optimiser: Optimiser) -> float:
    """The learning rate of a step: a linear rise, then half a cosine to nothing."""
    rise = max(1, round(optimiser.warmup * steps))
    if step < rise:
        return optimiser.learning_rate * (step + 1) / rise
    done = (step - rise) / max(1, steps - rise)
    return optimiser.learning_rate * 0.5 * (1 + math.cos(math.pi * done))


def wrap(model: Any, lora: Lora, seed: int, task: str = "CAUSAL_LM") -> Any:
    """A base, frozen, with fresh low-rank matrices (peft) drawn from `seed`, but for what is
    learned whole.

    task: peft's name; with "SEQ_CLS" the classifying head is learned as well.
    """
    import torch

    with quiet():
        from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.targets if isinstance(lora.targets, str) else list(lora.targets),
        modules_to_save=list(lora.whole) or None,
        task_type=task,
    )
    for module in model.modules():
        # Else bitsandbytes packs four-bit weights at the first look at held-out examples, for a
        # processor to read: no gradient passes them from then on, and nobody is told.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
    # peft draws from the global generator: lent for the moment, and given back.
    with torch.random.fork_rng(), quiet():
        torch.manual_seed(seed)
        return get_peft_model(model, config)


def loss_of(model: Any, batch: Sequence[Encoded]) -> tuple[Any, int]:
    """Summed cross-entropy of the targets' tokens, and how many there are."""
    import torch

    logits, wanted, _ = targets(model.get_base_model(), batch)
    return torch.nn.functional.cross_entropy(logits, wanted, reduction="sum"), len(wanted)


def targets(
    base: Any, batch: Sequence[Any], embed: Callable[[Any], Any] | None = None
) -> tuple[Any, Any, Any]:
    """Logits (targets, vocabulary) of the targets' tokens, these (targets,), the row of each.

    Rows are padded on the right, where causal attention never looks, so no mask
    is needed; logits are computed for target tokens alone. embed: what the reader is
    given for ids (rows, longest); None: its own embeddings.
    """
    import torch

    longest = max(len(e.tokens) for e in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    rows, columns = [], []
    for row, example in enumerate(batch):
        n = len(example.tokens)
        ids[row, :n] = torch.tensor(example.tokens)
        rows += [row] * example.n_target
        columns += range(n - example.n_target, n)
    ids = ids.to(base.device)
    at, before = torch.tensor(columns), torch.tensor(columns) - 1
    given = {"input_ids": ids} if embed is None else {"inputs_embeds": embed(ids)}
    hidden = base.model(**given, use_cache=False).last_hidden_state  # (B, T, d)
    logits = base.lm_head(hidden[rows, before]).float()  # (targets, vocabulary)
    return logits, ids[rows, at], torch.tensor(rows, device=ids.device)


def fit(
    model: Any,
    plan: Plan,
    folder: Path,
    *,
    objective: Objective | None = None,
    held_out: Sequence[Any] = (),
    checks: int = 10,
    check: Check | None = None,
    keep: str | None = None,
    publish: Callable[[Any, Path], None] | None = None,
) -> Path:
    """Train a wrapped model, going on from `folder/state` where that is of the same plan.

    objective: None: cross-entropy of the targets. check: what is watched of held-out
    examples, at each whole `checks`th part of the steps and at the last one (the optimiser's
    number goes before); None: their mean loss by source. keep: which of it should be low; None:
    the mean over all held-out examples. The weights at its lowest are kept; without held-out
    examples the last. -> the folder.

    Writes `curve.jsonl` (step, tokens, loss, seconds, computed_in, for a cut run may go on where
    another precision is fast; `held_out`, and `kept` where it was the lowest so far) and what
    `publish` writes of the model; None: `adapter_model.safetensors` and
    `adapter_config.json`. RecipeError: the folder holds another plan's state, or patience without
    held-out examples.
    """
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    steps = plan.steps()
    objective = objective or loss_of
    weights = [p for p in model.parameters() if p.requires_grad]
    adam = torch.optim.AdamW(
        weights, lr=plan.optimiser.learning_rate, weight_decay=plan.optimiser.weight_decay
    )
    state = state_of(plan, folder)
    first, curve = state.load(model, adam)
    check = check or partial(held_out_loss, optimiser=plan.optimiser, objective=objective)
    model.train()
    saved = began = time.monotonic()
    every = max(1, len(steps) // (plan.optimiser.checks or checks))
    patience = plan.optimiser.patience
    if patience is not None and not held_out:
        raise RecipeError(f"{folder.name}: no example is held out; leave out patience")
    height = partial(_height, keep=keep, examples=held_out)
    bar = Bar(total=len(steps), initial=first, desc=folder.name, unit="step")
    for number in range(first, len(steps)):
        if patience is not None and _since_lowest(curve) >= patience:
            break
        batch = [plan.examples[i] for i in steps[number]]
        for group in adam.param_groups:
            group["lr"] = rate(number, len(steps), plan.optimiser)
        # Dropout draws from the global generator: lent, with a seed of the step's own.
        with torch.random.fork_rng():
            torch.manual_seed(plan.seed * len(steps) + number)
            total, n = backward(model, batch, plan.optimiser, objective)
        torch.nn.utils.clip_grad_norm_(weights, plan.optimiser.clip)
        adam.step()
        adam.zero_grad(set_to_none=True)
        row = {
            "step": number + 1,
            "tokens": sum(len(e.tokens) for e in batch),
            "loss": round(total / n, 4),
            "computed_in": "bfloat16" if plan.optimiser.autocast else "float32",
        }
        if held_out and ((number + 1) % every == 0 or number + 1 == len(steps)):
            row["held_out"] = _watched(model, held_out, plan.optimiser, check)
            lowest = min((height(r["held_out"]) for r in curve if "kept" in r), default=math.inf)
            if height(row["held_out"]) < lowest:
                row["kept"] = True
                state.keep(model)
        now = time.monotonic()
        row["seconds"], began = round(now - began, 2), now  # with those of a look at held-out ones
        curve.append(row)
        bar.update()
        if now - saved > SAVE_EVERY:
            state.save(model, adam, number + 1, curve)
            saved = now
    bar.close()
    state.put_back(model)
    # No kill may leave these weights beside others, or under the card of others.
    for path in (folder / CARD, *trained_files(folder)):
        path.unlink(missing_ok=True)
    (publish or publish_adapter)(model, folder)
    text = "".join(json.dumps(row) + "\n" for row in curve)
    write_whole(folder / CURVE, text)
    return folder


def _height(found: Mapping[str, float], keep: str | None, examples: Sequence[Any]) -> float:
    """Of what was watched, the number that should be low; None: the mean over all examples."""
    if keep is not None:
        return found[keep]
    counts = Counter(e.source for e in examples)
    return sum(found[source] * n for source, n in counts.items()) / counts.total()


def _since_lowest(curve: Sequence[Mapping[str, Any]]) -> int:
    """How many looks at held-out examples there were since their loss was lowest."""
    looks = ["kept" in row for row in curve if "held_out" in row]
    return looks[::-1].index(True) if True in looks else 0


def state_of(plan: Plan, folder: Path) -> State:
    """What a cut run goes on from; to be forgotten when all that is made of a run is written."""
    return State(folder / "state", plan.key)


def backward(
    model: Any, batch: Sequence[Any], optimiser: Optimiser, objective: Objective
) -> tuple[float, int]:
    """Gradients of a step's mean loss, piece by piece; -> summed loss, and over how many."""
    summed, count = 0.0, 0
    for piece in pieces(batch, optimiser.piece_tokens):
        with cast(model, optimiser):
            total, n = objective(model, piece)
        total.backward()
        summed, count = summed + float(total.detach()), count + n
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad /= count
    return summed, count


def pieces(batch: Sequence[Any], budget: int) -> Iterator[Sequence[Any]]:
    """A batch, sorted by length as it is, in parts of at most `budget` padded tokens."""
    start = 0
    for end in range(1, len(batch) + 1):
        if end == len(batch) or (end + 1 - start) * len(batch[end].tokens) > budget:
            yield batch[start:end]
            start = end


def suited(optimiser: Optimiser, device: str) -> Optimiser:
    """The same where the device is fast in bfloat16; else in float32, the same but for rounding."""
    return optimiser if fast_bfloat16(device) else replace(optimiser, autocast=False)


def cast(model: Any, optimiser: Optimiser) -> Any:
    """The precision of a step, as a context."""
    import torch

    return torch.autocast(model.device.type, torch.bfloat16, enabled=optimiser.autocast)


def halved(model: Any, optimiser: Optimiser) -> Any:
    """A base with its frozen linear weights as autocast reads them: not cast at every use.

    The same steps to the last digit. A head that is the embedding as well stays as it is, and
    all of it where nothing is cast.
    """
    import torch

    kinds = torch.nn.Embedding, torch.nn.Linear
    embeddings, linears = ([m for m in model.modules() if isinstance(m, k)] for k in kinds)
    tied = {id(m.weight) for m in embeddings}
    for module in linears if optimiser.autocast else ():
        frozen = module.weight.is_floating_point() and not module.weight.requires_grad
        if frozen and id(module.weight) not in tied:
            module.to(torch.bfloat16)
    return model


def _watched(
    model: Any, examples: Sequence[Any], optimiser: Optimiser, check: Check
) -> dict[str, float]:
    """What `check` says of the model without dropout; it trains on afterwards."""
    import torch

    model.eval()
    with torch.no_grad(), cast(model, optimiser):
        found = check(model, examples)
    model.train()
    return found


def held_out_loss(
    model: Any, examples: Sequence[Any], optimiser: Optimiser, objective: Objective
) -> dict[str, float]:
    sums: dict[str, list[float]] = {}
    for source in sorted({e.source for e in examples}):
        mine = [e for e in examples if e.source == source]
        for numbers in batches([len(e.tokens) for e in mine], 0, 0, optimiser.batch_tokens):
            total, n = objective(model, [mine[i] for i in numbers])
            entry = sums.setdefault(source, [0.0, 0])
            entry[0] += float(total)
            entry[1] += n
    return {source: round(total / n, 4) for source, (total, n) in sums.items()}


def publish_adapter(model: Any, folder: Path) -> None:
    """The adapter in half precision, as peft names things; no path of this machine in it."""
    import torch
    from safetensors.torch import load_file, save_file

    with quiet():
        model.save_pretrained(folder, safe_serialization=True)
    path = folder / "adapter_model.safetensors"
    halved = {n: t.to(torch.float16) for n, t in load_file(path).items()}
    with replacing(path) as part:
        save_file(halved, part, metadata={"format": "pt"})
    # peft names the folder that the base came from; the card names the base.
    config = folder / "adapter_config.json"
    told = json.loads(config.read_text(encoding="utf-8")) | {"base_model_name_or_path": None}
    write_whole(config, json.dumps(told, indent=2, sort_keys=True))
    (folder / "README.md").unlink(missing_ok=True)  # peft's template


class State:
    """Where a cut run goes on: weights, AdamW's moments, the next step, the curve.

    And the weights that were best so far, where some were kept.
    """

    def __init__(self, folder: Path, key: str):
        self.folder, self.key = folder, key
        self._best: dict[str, Any] = {}

    def keep(self, model: Any) -> None:
        self._best = {n: p.detach().clone() for n, p in _trained(model)}

    def put_back(self, model: Any) -> None:
        """Give the model the weights that were kept last, if any."""
        if self._best:
            _give(model, self._best)

    def save(self, model: Any, adam: Any, step: int, curve: Sequence[dict]) -> None:
        """Written beside, then put in place, so that a cut leaves the state before it."""
        import torch

        weights = {n: p.detach() for n, p in _trained(model)}
        state = {"weights": weights, "best": self._best, "adam": adam.state_dict()}
        self.folder.mkdir(exist_ok=True)
        with replacing(self.folder / "state.pt") as part:
            torch.save({"key": self.key, "step": step, "curve": list(curve), **state}, part)

    def load(self, model: Any, adam: Any) -> tuple[int, list[dict]]:
        """The next step and the curve so far; (0, []) where nothing was saved."""
        import torch

        path = self.folder / "state.pt"
        if not path.is_file():
            return 0, []
        state = torch.load(path, map_location="cpu", weights_only=True)
        if state["key"] != self.key:
            raise RecipeError(
                f"{path}: the state of another recipe, seed or base, {state['step']} steps of "
                f"it; delete {self.folder} to lose them and begin anew"
            )
        _give(model, state["weights"])
        adam.load_state_dict(state["adam"])
        self._best = state["best"]
        log.info("%s: going on after step %s", self.folder.parent.name, state["step"])
        return state["step"], state["curve"]

    def forget(self) -> None:
        for path in self.folder.glob("*"):
            path.unlink()
        if self.folder.is_dir():
            self.folder.rmdir()


def _trained(model: Any) -> list[tuple[str, Any]]:
    return [(n, p) for n, p in model.named_parameters() if p.requires_grad]


def _give(model: Any, weights: Mapping[str, Any]) -> None:
    import torch

    with torch.no_grad():
        for name, parameter in _trained(model):
            parameter.copy_(weights[name])
