"""From a recipe to an adapter with its card: what `rag-repro train NAME` does.

A recipe's `task` says what is trained: a "reader" (a causal model that learns
to write), what "r2ag" puts before one, a classifier of "pairs" (by a cross-encoder, or by
"similarities" of single texts), one of single passages by their "relevance" to a question, or
one of questions by their "complexity".
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from rag_repro.digest import write_whole
from rag_repro.lm import hub
from rag_repro.lm.hub import CARD, CURVE, Weights, card_of, sha256_of_folder, write_card
from rag_repro.lm.load import device_of, load
from rag_repro.lm.pair_scorers import CLASSES, Cutter, sequence_classifier
from rag_repro.lm.prompts import Codec, Plain
from rag_repro.study.manifests import environment
from rag_repro.study.services import Workshop
from rag_repro.training import complexity, pair_training, r2ag
from rag_repro.training.examples import encode
from rag_repro.training.fit import Objective, Plan, fit, halved, loss_of, state_of, suited, wrap
from rag_repro.training.lessons import lessons
from rag_repro.training.recipes import Recipe, making

log = logging.getLogger(__name__)

HELD_OUT = 50
"""Of how many questions one is kept out to watch the loss, with all lessons made of it.

Never a fact: those must be learned.
"""

SPEED = {
    "reader": 350,
    "r2ag": 400,
    "pairs": 1300,
    "relevance": 1300,
    "complexity": 1300,
    "similarities": 3000,
}
"""Tokens a second on two cores that do nothing else, with SmolLM2-135M and MiniLM: the
order of a cost, measured over the first steps."""

SLOWER = 3
"""How many times as long it takes in float32, on a processor that is slow in bfloat16."""

FORWARD = 0.4
"""What reading a token takes of learning from it, where the reader is frozen."""


@dataclass(frozen=True)
class Prepared:
    """A recipe's lessons as tokens, and the run over them.

    model: the base, unchanged so far, on `device`. objective: None where the base stays as
    it is, and only a head is learned, in one step.
    """

    recipe: Recipe
    seed: int
    weights: Weights
    model: Any
    plan: Plan
    held_out: tuple[Any, ...]
    digest: str
    objective: Objective | None
    device: str = "cpu"

    @property
    def tokens(self) -> int:
        return sum(len(e.tokens) for e in self.plan.examples) * self.recipe.optimiser.epochs

    @property
    def watched(self) -> int:
        """Tokens that are read to watch held-out lists."""
        if self.recipe.task != "r2ag":
            return 0
        checks = self.recipe.optimiser.checks or r2ag.CHECKS
        return checks * sum(len(e.tokens) for e in self.held_out)

    @property
    def seconds(self) -> float:
        """About how long the run takes on two cores."""
        tokens = self.tokens + FORWARD * self.watched
        return tokens / SPEED[self.recipe.task] * (SLOWER if self.widened else 1)

    @property
    def widened(self) -> bool:
        """Whether it is computed in float32 where the recipe says bfloat16."""
        return self.recipe.optimiser.autocast and not self.plan.optimiser.autocast

    def cost(self) -> str:
        """What the run will take, in tokens, by source of lessons."""
        counts = Counter(e.source for e in self.plan.examples)
        tokens = Counter()
        for e in self.plan.examples:
            tokens[e.source] += len(e.tokens)
        lines = [f"  {s}: {counts[s]:,} lessons, {tokens[s]:,} tokens" for s in sorted(counts)]
        steps = len(self.plan.steps()) if self.objective else 1
        head = f"{self.recipe.name}, seed {self.seed}: {steps:,} steps, {self.tokens:,} tokens"
        if self.recipe.task == "r2ag":
            head += f", and {self.watched:,} read to watch held-out lists"
        if self.widened:
            head += f"; in float32, for bfloat16 is slow on this {self.device}"
        return "\n".join([f"{head}, about {self.seconds / 60:.0f} minutes on two cores", *lines])


def prepare(
    recipe: Recipe,
    seed: int,
    data_dir: Path | None = None,
    results: Path | None = None,
    device: str = "cpu",
) -> Prepared:
    """Load the base, write the recipe's lessons and put them into tokens (up to a minute).

    data_dir: the folder of real data, for recipes that need it; None: RAG_REPRO_DATA's.
    results: the folder of records, for recipes whose labels are outcomes. device: where the
    model computes; the card names it, but it makes no other adapter: a run may go on elsewhere, one
    of R²AG where the encoder makes the same features to the last bit.
    ReaderError: a device that is not here.
    """
    device = device_of(device)
    weights = hub.resolve(recipe.base)
    sources = Sources(data_dir, results, device)
    model, encoded, held_out, objective = TASKS[recipe.task](recipe, seed, weights, sources)
    digest = _digest(encoded)
    facts = [recipe.makes, seed, weights.sha256, digest]
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    # Four bits are computed in bfloat16 whatever the device is, and a head alone in float32.
    as_told = recipe.dtype == "nf4" or objective is None
    optimiser = recipe.optimiser if as_told else suited(recipe.optimiser, device)
    plan = Plan(encoded, recipe.lora, optimiser, seed, key)
    return Prepared(recipe, seed, weights, model, plan, tuple(held_out), digest, objective, device)


@dataclass(frozen=True)
class Sources:
    """What a recipe finds here: folders of real data and of records, and where models compute."""

    data: Path | None
    records: Path | None
    device: str


def _reader(recipe: Recipe, seed: int, weights: Weights, sources: Sources):
    loaded = load(weights, sources.device, recipe.dtype)
    codec = Codec(loaded.tokenizer)
    end = loaded.tokenizer.eos_token_id
    made = list(lessons(recipe.lessons, seed, sources.data))
    # By question: another lesson of the same question would give its answer away.
    asked = list(dict.fromkeys(e.question for e in made if e.question is not None))
    apart = set(asked[::HELD_OUT])
    learned = [encode(e, codec, end) for e in made if e.question not in apart]
    held_out = [encode(e, codec, end) for e in made if e.question in apart]
    return loaded.model, learned, held_out, loss_of


def _r2ag(recipe: Recipe, seed: int, weights: Weights, sources: Sources):
    loaded = load(weights, sources.device)
    codec, end = Codec(loaded.tokenizer), loaded.tokenizer.eos_token_id
    workshop = Workshop(sources.data, device=sources.device)
    learned, held_out = (
        r2ag.lessons(recipe.lessons, split, seed, workshop, recipe.former, codec, end)
        for split in ("train", "tune")
    )
    return loaded.model, learned, held_out, loss_of


def _pairs(recipe: Recipe, seed: int, weights: Weights, sources: Sources):
    model, tokenizer = sequence_classifier(weights, sources.device)
    cutter = Cutter.for_model(tokenizer, model)
    kind = pair_training.pairs if recipe.task == "pairs" else pair_training.relevance
    learned, held_out = (
        [
            encoded
            for part in recipe.lessons
            for encoded in pair_training.encode(_asked(part, split, seed, sources, kind), cutter)
        ]
        for split in ("train", "tune")
    )
    return model, learned, held_out, pair_training.objective(tokenizer.pad_token_id)


def _asked(
    part: Mapping[str, Any],
    split: str,
    seed: int,
    sources: Sources,
    made: Callable[..., Iterable[pair_training.Pair]] = pair_training.pairs,
) -> list[pair_training.Pair]:
    return list(made(**part, split=split, seed=seed, data_dir=sources.data))


def _complexity(recipe: Recipe, seed: int, weights: Weights, sources: Sources):
    model, tokenizer = sequence_classifier(weights, sources.device, labels=len(CLASSES))
    cutter = Cutter.for_model(tokenizer, model)
    made = complexity.labelled(recipe.lessons, sources.records, sources.data)
    learned, held_out = (
        complexity.encode(part, cutter.plain, cutter.room) for part in complexity.split(made)
    )
    return model, learned, held_out, pair_training.objective(tokenizer.pad_token_id)


def _similarities(recipe: Recipe, seed: int, weights: Weights, sources: Sources):
    from transformers import AutoTokenizer

    plain = Plain(AutoTokenizer.from_pretrained(weights.path, local_files_only=True))
    made = {
        split: [
            pair_training.in_both_orders(_asked(part, split, seed, sources), plain)
            for part in recipe.lessons
        ]
        for split in ("train", "tune")
    }
    learned, held_out = (list(chain(*parts)) for parts in made.values())
    return Workshop(device=sources.device).encoder(recipe.base), learned, held_out, None


TASKS = {
    "reader": _reader,
    "r2ag": _r2ag,
    "pairs": _pairs,
    "relevance": _pairs,
    "complexity": _complexity,
    "similarities": _similarities,
}


def train(prepared: Prepared, folder: Path) -> Path:
    """Train, or go on with, an adapter; -> its folder, with card and curve."""
    log.info(prepared.cost())
    began = environment()  # a commit while it learns is not what it learned by
    plan, more = prepared.plan, {}
    if prepared.recipe.task == "r2ag":
        former = prepared.recipe.former
        more = r2ag.train(prepared.model, plan, former, prepared.held_out, folder)
    elif prepared.objective is None:
        pair_training.fit(prepared.model, plan.examples, prepared.held_out, folder)
    else:
        kind = "CAUSAL_LM" if prepared.recipe.task == "reader" else "SEQ_CLS"  # peft's names
        model = wrap(prepared.model, plan.lora, plan.seed, kind)
        model = halved(model, plan.optimiser)
        watched = {"held_out": prepared.held_out}
        if prepared.recipe.task == "pairs":
            pad, budget = prepared.model.config.pad_token_id, plan.optimiser.batch_tokens
            watched |= {"check": pair_training.check(pad, budget), "keep": "swapped_hard"}
        fit(model, plan, folder, objective=prepared.objective, **watched)
    write_card(folder, prepared.weights, card(prepared, folder, began) | more)
    state_of(plan, folder).forget()
    if folder.parent == hub.local_artifacts_folder():
        keep_card(folder)
    return folder


def keep_card(folder: Path) -> None:
    """Put card and curve where they are committed, for these weights are not."""
    kept = hub.cards_folder() / folder.name
    kept.mkdir(parents=True, exist_ok=True)
    for name in (CARD, CURVE):
        write_whole(kept / name, (folder / name).read_bytes())


def card(prepared: Prepared, folder: Path, made_on: Mapping[str, Any]) -> dict[str, Any]:
    """How an adapter came to be, as plain data; made_on: `environment` where its run began."""
    recipe, curve = prepared.recipe, read_curve(folder)
    checked = [row for row in curve if "held_out" in row]
    kept = [row for row in checked if "kept" in row] or checked
    return {
        "name": recipe.name,
        "about": recipe.about,
        "recipe": recipe.facts,
        "seed": prepared.seed,
        "lessons": dict(sorted(Counter(e.source for e in prepared.plan.examples).items())),
        "lessons_sha256": prepared.digest,
        "steps": len(curve),
        "tokens": sum(row["tokens"] for row in curve),
        "seconds": round(sum(row["seconds"] for row in curve)),
        "held_out_loss": kept[-1]["held_out"] if kept else {},
        "weights_sha256": sha256_of_folder(folder),
        "numbers": hub.numbers_in(folder),
        "device": prepared.device,
        "computed_in": " and ".join(
            sorted({r["computed_in"] for r in curve if "computed_in" in r})
        ),
        "made_on": dict(made_on),
    } | ({"kept_after_step": kept[-1]["step"]} if kept and "kept" in kept[-1] else {})


def read_curve(folder: Path) -> list[dict[str, Any]]:
    text = (folder / CURVE).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def folder_of(recipe: Recipe, seed: int) -> Path:
    """Where an adapter is kept: committed for the headline seed, local for the others."""
    if seed != recipe.seeds[0]:
        return hub.local_artifacts_folder() / f"{recipe.name}-{seed}"
    return (hub.local_artifacts_folder() if recipe.local else hub.artifacts_folder()) / recipe.name


def is_made(prepared: Prepared, folder: Path) -> bool:
    """Whether the folder holds the adapter of just this recipe, seed, base and lessons."""
    if not (folder / CARD).is_file():
        return False
    have = card_of(folder)
    wanted = (prepared.recipe.makes, prepared.seed, prepared.digest, prepared.weights.sha256)
    found = (making(have.get("recipe", {})), have.get("seed"), have.get("lessons_sha256"))
    return (*found, have["base"]["sha256"]) == wanted


def _digest(encoded: Sequence[Any]) -> str:
    """One hash of all lessons, in order."""
    digest = hashlib.sha256()
    for example in encoded:
        digest.update(repr(dataclasses.astuple(example)).encode())
    return digest.hexdigest()
