"""Training R²AG: lists of passages as the method meets them, and what is learned from them.

The lessons are made by the method's own stages, up to where the reader would be asked,
so that a former is trained on just what it will be told. Their controls (inputs) differ in
the features alone: same lists, prompts, answers, order of steps and, but for free tokens,
same numbers to learn.

Reader and former learn as one model (`Joint`), by R²AG's loss (section 3.5):

    L_QDM = - sum over i of s_i log p_i + (1 - s_i) log(1 - p_i),  p = sigmoid(f(H))    (eq. 7, 8)
    L = L_QDM + L_LM                                                                   (eq. 9)

for each question; a step's loss is the mean over its questions. L_LM is the mean over the
answer's tokens, of which alone logits are made. The paper sums L_QDM over the passages,
its code takes the mean; that changes the balance of the two by k (`reduction`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from rag_repro import engine
from rag_repro.data import candidates
from rag_repro.data.synthworld import world
from rag_repro.data.synthworld.reasoning import thoughts
from rag_repro.engine import Flow
from rag_repro.evaluation.pair_metrics import auc
from rag_repro.evaluation.retrieval_metrics import has_answer
from rag_repro.lm import former as formers
from rag_repro.lm.prompts import Codec
from rag_repro.methods.r2ag.method import SOFT, R2AGSettings, gold_of, inputs, placed
from rag_repro.methods.reading import PROMPTS, Template
from rag_repro.methods.stages import retrieve
from rag_repro.schema import Answer, Hit, Question
from rag_repro.schema.dataset import Dataset
from rag_repro.study.services import Workshop
from rag_repro.training.examples import Example, batches, encode
from rag_repro.training.filtering import public_thoughts
from rag_repro.training.fit import Plan, fit, halved, publish_adapter, targets, wrap
from rag_repro.training.recipes import Former, RecipeError


@dataclass(frozen=True, slots=True)
class Lesson:
    """A list of passages with a question, in the reader's prompt, and its answer.

    Of `tokens` the last `n_target` are the answer; at `places` the former's embeddings stand.
    features: a row a passage; labels: 1 where it is gold. Without a former all three are empty.
    """

    tokens: tuple[int, ...]
    n_target: int
    source: str
    places: tuple[int, ...] = ()
    features: tuple[tuple[float, ...], ...] = ()
    labels: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FormerOutput:
    """What a former makes of a batch's lists, padded to the longest.

    embeddings: (passages, width), list after list. mask: (B, k), where there is a passage.
    labels, logits: (B, k) of equations 7 and 8; logits None: the former has no head.
    """

    embeddings: Tensor
    mask: Tensor
    labels: Tensor
    logits: Tensor | None


class Joint(nn.Module):
    """reader: a causal model, frozen or wrapped by peft; former: None where it reads alone."""

    def __init__(self, reader: Any, former: nn.Module | None):
        super().__init__()
        self.reader, self.former = reader, former

    @property
    def device(self) -> torch.device:
        return self.reader.device

    @property
    def base(self) -> Any:
        """The causal model, whose layers hold low-rank matrices where there are some."""
        # Asked so, peft need not be imported where nothing is trained.
        wrapped = hasattr(self.reader, "get_base_model")
        return self.reader.get_base_model() if wrapped else self.reader

    def tell(self, batch: Sequence[Lesson]) -> FormerOutput | None:
        """Equations 2, 3 and 7 of the batch's lists, padded to the longest; None: no former."""
        if self.former is None:
            return None
        lengths = torch.tensor([len(e.features) for e in batch], device=self.device)
        mask = torch.arange(int(lengths.max()), device=self.device) < lengths[:, None]
        features = torch.zeros(*mask.shape, len(batch[0].features[0]), device=self.device)
        features[mask] = torch.tensor([row for e in batch for row in e.features]).to(features)
        labels = torch.zeros(mask.shape, device=self.device)
        labels[mask] = torch.tensor([float(s) for e in batch for s in e.labels]).to(labels)
        # Cosines of a list differ in their third digit, which bfloat16 has not.
        with torch.autocast(self.device.type, enabled=False):
            if isinstance(self.former, formers.FreeTokens):
                made = [self.former(rows[:n]) for rows, n in zip(features, lengths, strict=True)]
                return FormerOutput(torch.cat(made), mask, labels, None)
            hidden = self.former.attend(features, mask)
            embeddings = self.former.project(hidden)[mask]
            return FormerOutput(embeddings, mask, labels, self.former.relevance(hidden))

    def answering(self, batch: Sequence[Lesson], told: FormerOutput | None) -> Tensor:
        """L_LM of each lesson, (B,)."""

        def embed(ids: Tensor) -> Tensor:
            embeds = self.base.get_input_embeddings()(ids)
            if told is None:
                return embeds
            rows = torch.tensor([row for row, e in enumerate(batch) for _ in e.places])
            columns = torch.tensor([at for e in batch for at in e.places])
            at = rows.to(ids.device), columns.to(ids.device)
            return embeds.index_put(at, told.embeddings.to(embeds))

        logits, wanted, rows = targets(self.base, batch, embed)
        each = cross_entropy(logits, wanted, reduction="none")
        counts = torch.tensor([e.n_target for e in batch], device=each.device)
        return each.new_zeros(len(batch)).index_add(0, rows, each) / counts


def matching(told: FormerOutput, reduction: str = "mean") -> Tensor:
    """L_QDM of each lesson, (B,): over its passages the mean, or equation 8's sum."""
    each = binary_cross_entropy_with_logits(told.logits, told.labels, reduction="none")
    sums = (each * told.mask).sum(1)
    return sums / told.mask.sum(1) if reduction == "mean" else sums


def objective(former: Former | None, answers: bool = True, matches: bool = True) -> Callable:
    """Equation 9, summed over a batch's lessons, with both of its terms or with one."""
    weight = former.qdm if former and matches else 0.0

    def loss(model: Joint, batch: Sequence[Lesson]) -> tuple[Tensor, int]:
        told = model.tell(batch)
        each = torch.zeros(len(batch), device=model.device)
        if weight:
            each = each + weight * matching(told, former.reduction)
        if answers:
            each = each + model.answering(batch, told)
        return each.sum(), len(batch)

    return loss


def check(budget: int, matches: bool) -> Callable:
    """What is watched of held-out lists: both losses, and how well the head knows gold.

    budget: padded tokens at once. matches: whether a head was trained. -> {"answer": L_LM, and
    with a head "matching": L_QDM a passage, "auc": how often a gold passage's logit is above
    another's, over all lists}
    """

    def watch(model: Joint, lessons: Sequence[Lesson]) -> dict[str, float]:
        answer, match, scores = 0.0, 0.0, {0: [], 1: []}
        for numbers in batches([len(e.tokens) for e in lessons], 0, 0, budget):
            batch = [lessons[i] for i in numbers]
            told = model.tell(batch)
            answer += float(model.answering(batch, told).sum())
            if matches:
                match += float(matching(told).sum())
                for label in scores:
                    found = told.logits[told.mask & (told.labels == label)]
                    scores[label] += found.tolist()
        found = {"answer": round(answer / len(lessons), 4)}
        known = auc(scores[1], scores[0])
        if matches:
            found["matching"] = round(match / len(lessons), 4)
        if known is not None:
            found["auc"] = round(known, 4)
        return found

    return watch


def publish(model: Joint, folder: Path) -> None:
    """The former, and the adapter where the reader was trained as well."""
    if model.former is not None:
        formers.save(model.former, folder)
    if model.reader is not model.base:
        publish_adapter(model.reader, folder)


TEN = MappingProxyType({10: 1})

CHECKS = 4
"""How often held-out lists are looked at: each time takes as long as some ten steps."""

MATCHED_AT_ONCE = 16
"""Lists in a step of the head start, which reads nothing."""


def load_lists(
    dataset: str,
    split: str,
    seed: int,
    workshop: Workshop,
    former: Former | None,
    questions: int | None = None,
    held_out: int = 40,
    lengths: Mapping[int, float] = TEN,
    retriever: str = "minilm",
    mined: bool = False,
    words: int | None = None,
) -> Iterator[tuple[Question, list[Hit], Any]]:
    """A split's first questions with passages, by the retriever's score, and features.

    questions: of split train; held_out: of split tune. lengths: passages of a list -> how
    often; drawn for each question by its id and the seed, so that all controls read the same.
    A list has the gold passages and the best others up to its length (of more gold than that,
    the best), and its features are told of no passage besides. mined: the data set hands out no
    distractors (or one list for all), and each question gets the nearest passages of the
    corpus that hold none of its answers, as many as the longest list has. words: of longer
    passages the reader is shown so many, a stretch by chance, of a gold passage one with an
    answer in it; the encoder sees them whole. -> with features None where there is no former.

    RecipeError: a question that the method cannot be asked.
    """
    longest, sizes, weights = max(lengths), list(lengths), list(lengths.values())
    asked = workshop.dataset(dataset, split)
    asked = asked.first(questions if split == "train" else held_out)
    if mined:
        asked = candidates.given(asked, str(longest))
    # Gold may stand anywhere among a question's own passages: `kept` cuts, and not the search.
    widest = max([longest, *(len(question.candidates) for question in asked.questions)])
    settings = settings_of(former, widest, asked)
    made: dict[str, tuple[list[Hit], Any]] = {}

    def listen(question: Question, settings: R2AGSettings) -> Flow:
        hits = yield from retrieve(question, settings)
        if lost := set(question.gold_ids) - {hit.passage.id for hit in hits}:
            raise RecipeError(
                f"the search did not bring its gold passage {min(lost)}; say mined: true, so that "
                "each question has a list with its gold passages"
            )
        [length] = Random(f"length/{seed}/{question.id}").choices(sizes, weights)
        hits = kept(question, hits, length)
        rows = (yield from inputs(question, hits, settings)) if former else None
        made[question.id] = hits, rows
        return Answer(hits=tuple(hits))

    services = {"retriever": workshop.retriever(retriever, asked.corpus)}
    if former:
        services |= {n: workshop.encoder_over(n, asked.corpus) for n in settings.needs}
    tasks = (engine.Task(question, listen, settings) for question in asked.questions)
    for task, answer in engine.run(tasks, services):
        if answer.error:
            raise RecipeError(f"{dataset}: question {task.question.id}: {answer.error}")
    for question in asked.questions:
        hits, rows = made[question.id]
        random = Random(f"stretch/{seed}/{question.id}")
        yield question, shown(question, hits, words, random), rows


def kept(question: Question, hits: Sequence[Hit], length: int) -> list[Hit]:
    """The gold hits and the best others up to the length, in the order of the hits."""
    gold_first = sorted(hits, key=lambda hit: hit.passage.id not in question.gold_ids)
    return sorted(gold_first[:length], key=lambda hit: hit.rank)


def settings_of(former: Former | None, k: int, asked: Dataset) -> R2AGSettings:
    own = all(question.candidates for question in asked.questions)
    if former is None:
        return R2AGSettings(k=k, own_candidates=own, inputs="free")
    told = {name: getattr(former, name) for name in ("encoder", "inputs", "columns", "similarity")}
    return R2AGSettings(k=k, own_candidates=own, **told)


def shown(question: Question, hits: Sequence[Hit], words: int | None, random: Random) -> list[Hit]:
    """The hits with a stretch of at most so many words of each; None: whole."""
    if words is None:
        return list(hits)
    made = []
    for hit in hits:
        said = hit.passage.text.split()
        parts = [
            replace(hit.passage, text=" ".join(said[at : at + words]))
            for at in range(max(1, len(said) - words + 1))
        ]
        if hit.passage.id in question.gold_ids:
            parts = [p for p in parts if has_answer(p, question.answers)] or parts
        made.append(replace(hit, passage=random.choice(parts)))
    return made


def lessons(
    parts: Sequence[Mapping[str, Any]],
    split: str,
    seed: int,
    workshop: Workshop,
    former: Former | None,
    codec: Codec,
    end: int,
) -> list[Lesson]:
    """All parts of a recipe as tokens: prompts of table 5, one accepted answer drawn for each."""
    form = PROMPTS[former.prompt if former else "r2ag_rag"]
    ours = {"split": split, "seed": seed, "workshop": workshop, "former": former}
    made = []
    for part in parts:
        for question, hits, rows in load_lists(**part, **ours):
            random = Random(f"answer/{seed}/{question.id}")
            answer = target(question, hits, form, part["dataset"], random)
            prompt = form.fill(question, hits, placed(rows) if former else ())
            source = f"{split}:{part['dataset']}"
            encoded = encode(Example(prompt, answer, source, question.id), codec, end)
            one = Lesson(encoded.tokens, encoded.n_target, source)
            if former:
                places = tuple(at for at, _ in codec.encode(prompt).soft)
                features = tuple(tuple(map(float, row)) for row in rows)
                one = replace(
                    one, places=places, features=features, labels=tuple(gold_of(question, hits))
                )
            made.append(one)
    return made


def target(
    question: Question, hits: Sequence[Hit], form: Template, dataset: str, random: Random
) -> str:
    """What is written: one accepted answer, drawn; where the form has a marker, behind reasons.

    RecipeError: a form that asks for reasons, and a question that none are known for.
    """
    answer = random.choice(question.answers)
    if form.marker is None:
        return form.lesson_answer(answer)
    if found := re.match(r"world-([A-Z])\b", dataset):
        said = thoughts(world(found[1]), question, random)
    else:
        gold = [hit.passage for hit in hits if hit.passage.id in question.gold_ids]
        said = public_thoughts(question, gold)
    if not said:
        raise RecipeError(
            f"{dataset}: question {question.id}: nothing that came with it leads to its answer, "
            f"which the prompt {form.name!r} asks for; take a prompt without reasons"
        )
    return form.lesson_answer(f"{said} {form.marker} {question.answers[0]}.")


def train(
    reader: Any, plan: Plan, former: Former | None, held_out: Sequence[Lesson], folder: Path
) -> dict[str, Any]:
    """Learn the plan's lessons; -> what the card says of the former beside its recipe.

    The reader stays as it is where the plan has no low-rank matrices. What no loss reaches (the
    head without matching) is not trained.
    """
    table = reader.get_input_embeddings()
    if reader.device.type == "cpu":  # a step takes a fifth less time, and 10 GB
        reader.set_attn_implementation("eager")
    if plan.lora is None:
        reader.requires_grad_(False)
    else:
        reader = wrap(reader, plan.lora, plan.seed)
    reader = halved(reader, plan.optimiser)
    module, facts = None, {}
    if former:
        kind, sizes = sizes_of(former, table.weight.shape[1])
        module = formers.build_module(kind, plan.seed, **sizes)
        module.start_as(formers.met(table))
        module.to(table.weight.device)
        count = formers.count(module)
        told = {"soft": SOFT, "kind": kind, "settings": sizes, "parameters": count}
        facts = {"former": told}
    model = Joint(reader, module)
    if former and (former.stages == "separate" or former.head_start):
        with TemporaryDirectory() as away:
            fit(
                model,
                before(plan, former),
                Path(away) / "matching",
                objective=objective(former, answers=False),
                publish=lambda model, folder: None,
            )
    matches = bool(former and former.qdm)
    joined = matches and former.stages == "joint"
    if former and former.inputs != "free":
        module.head.requires_grad_(joined)
    fit(
        model,
        plan,
        folder,
        objective=objective(former, matches=joined),
        held_out=held_out,
        checks=CHECKS,
        check=check(plan.optimiser.batch_tokens, matches),
        keep="answer",
        publish=publish,
    )
    return facts


def before(plan: Plan, former: Former) -> Plan:
    """The steps of matching alone.

    They read no token, so that a step may have many lists, and they are taken anew where a
    cut run goes on. All are taken: patience is of the answers, which are watched later.
    """
    room = max(len(e.tokens) for e in plan.examples) * MATCHED_AT_ONCE
    optimiser = replace(
        plan.optimiser,
        epochs=max(1, former.head_start),
        batch_rows=MATCHED_AT_ONCE,
        batch_tokens=room,
        piece_tokens=room,
        patience=None,
    )
    return replace(plan, optimiser=optimiser)


def sizes_of(former: Former, width: int) -> tuple[str, dict[str, Any]]:
    """Kind and settings of a former's module before a reader of that width."""
    if former.inputs == "free":
        return "free", {"places": former.places, "width": width}
    sizes = {"n_features": len(former.columns), "width": width}
    told = {name: getattr(former, name) for name in ("dropout", "places", "position_start")}
    return "r2", sizes | told
