"""Registration: a claim's test is fixed, and has a hash, before the records that decide it.

`results/registration.yaml` holds a test per claim and tier, and the headline claims. Its records
lie in `results/registered/`; their manifests hold the hashes of test and package. A verdict is:

- exploratory: without a registered test, or its records do not count, or not yet;
- registered: the test was fixed before its records, on questions that were looked at before;
- confirmed: registered, on worlds and questions on which nothing was chosen, with no records of
  another test of the claim that was registered before.

A test is registered when the file is committed. From then on it stays in the file: one that another
takes the place of is listed under `withdrawn`.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_repro.data import splits
from rag_repro.data.splits import CHOSEN_ON
from rag_repro.lm import hub, weights
from rag_repro.study import gate, names, papers, records, trainings
from rag_repro.study.conditions import Condition
from rag_repro.study.exhibits import Cell, Exhibit, Grid
from rag_repro.study.judge import pair_cells
from rag_repro.study.papers import Claim, Contrast, Paper
from rag_repro.study.yaml_files import StudyError, build, content

if TYPE_CHECKING:
    from rag_repro.study.services import Workshop

FILE, FOLDER, UNCLEAN = "registration.yaml", "registered", "unclean.txt"
REGISTERED, CONFIRMED = "registered", "confirmed"
FRESH_WORLDS, FRESH_SPLIT = ("world-E", "world-F"), "confirm"
FRESH: Mapping[str, Sequence[str]] = {
    "world-B": FRESH_WORLDS,
    "world-C": (),
    "world-D": (),
    "testbed-reader": ("testbed-reader-2",),
    "selfrag-reader": ("selfrag-reader-2",),
    "complexity-testbed": ("complexity-testbed-2",),
}
"""World or trained part -> what takes its place in a registered test of the testbed. The readers of
the fresh worlds were told facts of these."""
_JUDGING = {
    "study": "gate judge outcomes scores standing trainings",
    "evaluation": "bootstrap_draws heuristics power ratios resampling significance "
    "intervals verdicts",
}
"""The code that judges: its hash is part of a test's, since who rewrites it changes the verdict."""
_PROSE: Mapping[type, str] = {
    Paper: "title short cite folder exhibits claims legend",
    Claim: "place claim paper_numbers support support_note test n_needed scale no_contrast changed "
    "printed registered",
    Contrast: "label",
}
"""Fields that decide nothing, or that `text` has in another form; every other field is fixed."""


class RegistrationError(StudyError):
    """A test that cannot be registered, or a registered record that cannot be made."""


@dataclass(frozen=True)
class Registration:
    """A registered test, as the file has it.

    split: of the questions that decide. questions: "data set/split/n" -> hash of their ids, but
    for what is not released yet. trained: name -> hash of the weights. package, commit, since: when
    it was registered. changed: what the claim said then of changes of its test. until: when another
    took its place. proofs: condition -> hash of its answers, of questions that are chosen on; made
    before, so that nobody tries until they pass. recorded: of one that another took the place of,
    whether it had records.
    """

    claim: str
    tier: str
    split: str = "test"
    questions: Mapping[str, str] = field(default_factory=dict)
    trained: Mapping[str, str] = field(default_factory=dict)
    proofs: Mapping[str, str] = field(default_factory=dict)
    sha256: str = ""
    package: str = ""
    commit: str = ""
    since: str = ""
    changed: str = ""
    until: str = ""
    recorded: bool = False

    @property
    def key(self) -> str:
        """As "drrag.c05/testbed"."""
        return f"{self.claim}/{self.tier}"


def read(root: Path, part: str = "tests") -> list[Registration]:
    """The tests of the file in `root`, a folder `results`; [] without one. Raises StudyError.

    part: "withdrawn", those that another took the place of.
    """
    given = content(root / FILE) if (root / FILE).is_file() else {}
    raw = enumerate(given.get(part) or (), start=1)
    return [build(Registration, one, f"{FILE}, test {number}") for number, one in raw]


def refusals(root: Path) -> Mapping[str, str]:
    """Test -> why it is not registered: what no record could decide."""
    return content(root / FILE).get("refused", {}) if (root / FILE).is_file() else {}


def canonical(value: Any) -> str:
    """Plain data or dataclasses as JSON: the same text for the same content, on any machine."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        kept = [f.name for f in fields(value) if f.name not in _PROSE.get(type(value), "").split()]
        return {name: _plain(getattr(value, name)) for name in kept}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def moved(test: Registration) -> Paper:
    """The paper with the one claim on the test's own ground: on the testbed `FRESH`, and there with
    the paper's `ground`. Its contrasts are those that it keeps for a registered test; of a claim
    with none, those that decide, its controls and what is shown.
    """
    paper = papers.load(test.claim.split(".")[0])
    claim = paper.claim(test.claim)
    kept = tuple(c for c in claim.contrasts if c.role == "primary" or c.control or c.shown)
    made = replace(
        paper,
        claims=(replace(claim, contrasts=claim.registered or kept or claim.contrasts),),
        proofs=(*paper.proofs, *paper.ground.proofs),
    )
    fresh = FRESH if test.tier == "testbed" else {}
    exhibits = {
        key: replace(
            _put(exhibit, fresh),
            grids=tuple(g for grid in exhibit.grids for g in _moved(grid, test, paper, exhibit)),
        )
        for key, exhibit in paper.exhibits.items()
    }
    return replace(_put(made, fresh), exhibits=exhibits)


def _moved(grid: Grid, test: Registration, paper: Paper, exhibit: Exhibit) -> Iterator[Grid]:
    """The grid on the test's ground: one per data set (of a paper with public grounds, of those
    alone), and per fresh world in its place, since settings may name the world."""
    if grid.tier != test.tier:
        yield grid
        return
    if grid.split == "test":
        grid = replace(grid, split=test.split)
    is_gate = paper.gate is not None and exhibit is paper.exhibits[paper.gate.exhibit]
    gate = paper.gate.n if is_gate else None
    made: list[Grid] = []
    for dataset in grid.datasets:
        ground = paper.ground if test.tier == "testbed" else paper.public.get(dataset)
        rows = [replace(grid, datasets=(dataset,))]
        if ground and grid.split == test.split:
            rows = ground.put(rows[0], timed=bool(exhibit.timed), gate=gate)
        elif test.tier == "public" and paper.public and grid.split == test.split:
            rows = []  # nothing was tuned for it
        for row, world in itertools.product(rows, range(len(FRESH_WORLDS))):
            moves = FRESH if test.tier == "testbed" else {}
            each = {old: new[world : world + 1] or new[:1] for old, new in moves.items()}
            made.append(_put(row, each))
    yield from (one for i, one in enumerate(made) if one.datasets and one not in made[:i])


def _put(value: Any, moves: Mapping[str, Sequence[str]]) -> Any:
    """The same with every name that moves replaced; one that becomes several, by their list."""
    if isinstance(value, str):
        several = _names(value, moves)
        return several[0] if len(several) == 1 else list(several)
    if isinstance(value, list | tuple):
        each = [_names(v, moves) if isinstance(v, str) else (_put(v, moves),) for v in value]
        return type(value)(one for several in each for one in several)
    if isinstance(value, Mapping):
        return {key: _put(one, moves) for key, one in value.items()}
    if is_dataclass(value):
        put = {f.name: _put(getattr(value, f.name), moves) for f in fields(value)}
        return replace(value, **put)
    return value


def _names(name: str, moves: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """What takes the name's place; "world-B-10" moves as "world-B" does."""
    for old, new in moves.items():
        rest = name.removeprefix(old)
        if name == old or (old.startswith("world-") and rest != name and rest[0] in "-@~"):
            return tuple(one + rest for one in new)
    return (name,)


def cells(paper: Paper, tier: str) -> list[Cell]:
    """Every condition that a verdict on the paper's claims rests on: of the contrasts (all
    trainings of a row), of the gate and of the proofs of training.
    """
    found: list[Cell] = []
    tried: list[Cell] = []  # those whose readers and trained parts matter
    for claim in paper.claims:
        for contrast in claim.contrasts:
            exhibit = paper.exhibits[claim.exhibit_of(contrast).split(".", 1)[1]]
            sides = [c.keys for pair in pair_cells(exhibit, contrast, tier) for c in pair if c]
            less = (contrast.minus or {}).values()
            sides += [{**keys, **side} for side in less for keys in sides]
            rows = {_row(tier, keys) for keys in sides}
            own = [cell for cell in exhibit.cells(tier) if _row(tier, cell.keys) in rows]
            found += own
            tried += own if gate.asks(contrast) else []
    found += _tried(paper, tier, tried)
    return list({(cell.exhibit, cell.condition.hash): cell for cell in found}.values())


def _row(tier: str, keys: Mapping[str, Any]) -> tuple:
    return trainings.place(tier, {**keys, "metric": None})  # what is read is no key of a cell


def _tried(paper: Paper, tier: str, compared: Sequence[Cell]) -> list[Cell]:
    """The cells in which the readers of these cells, and what else was trained, are tried."""
    found = []
    if own_gate := paper.gate:
        readers = {(c.keys["dataset"], c.condition.reader) for c in compared}
        readers |= {(c.keys["dataset"], c.keys.get("reader")) for c in compared}
        for c in paper.exhibits[own_gate.exhibit].cells(tier):
            if (c.keys["dataset"], c.condition.reader) in readers:
                found += [c] if c.matches(own_gate.given) or c.matches(own_gate.bare) else []
    for cell, proof in itertools.product(compared, paper.proofs):
        if gate.tries(proof, paper.exhibits[proof.exhibit], cell):
            found += itertools.chain(*gate.trials(paper, proof, cell))
    return found


def judging(package: Path = Path(__file__).parents[1]) -> str:
    """The hash of the code that judges."""
    files = [
        package / room / f"{name}.py" for room, held in _JUDGING.items() for name in held.split()
    ]
    return sha256("".join(_code(file.read_text(encoding="utf-8")) for file in files))


@lru_cache(maxsize=64)  # each test asks, of the same files
def _code(source: str) -> str:
    """What runs of it: no comments, docstrings or line breaks."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not _is_text(one)]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def text(test: Registration, own: Paper) -> dict[str, Any]:
    """What the test's hash is of, for `canonical`; own: the paper, `moved`."""
    asked = cells(own, test.tier)
    return {
        "test": [test.claim, test.tier, test.split],
        "claims": list(own.claims),
        "paper": own,
        "printed": {k: [{**row, "note": ""} for row in own.printed(k)] for k in own.exhibits},
        "cells": sorted(
            canonical([c.exhibit, c.keys, c.condition.hash, c.n, c.kinds]) for c in asked
        ),
        "conditions": {c.condition.hash: c.condition.identity for c in asked},
        "data": [test.questions, test.trained, test.proofs],
        "judging": judging(),
    }


def fixed(test: Registration, workshop: Workshop, root: Path) -> Registration:
    """The test with the questions, trained parts, proofs and hash that it has on this machine.

    Raises RegistrationError where nothing can be asked, or something is not trained or tried.
    """
    own = moved(test)
    asked = cells(own, test.tier)
    if not asked:
        raise RegistrationError(f"{test.key}: its contrasts name no condition; choose another tier")
    known = [c for c in asked if c.condition.split != FRESH_SPLIT]
    questions = {place_of(c): sha256("\n".join(_ids(c, workshop))) for c in known}
    chosen_on = [c for c in asked if c.condition.split in CHOSEN_ON]
    made = replace(
        test,
        questions=questions,
        trained=_trained(asked, test.trained),
        proofs={c.condition.path: _answers(c, root) for c in chosen_on},
    )
    return replace(made, sha256=sha256(canonical(text(made, own))))


def _answers(cell: Cell, root: Path) -> str:
    """The hash of a record's answers to the questions that the cell asks."""
    record = records.load(root / "records", cell.condition)
    if record is None:
        raise RegistrationError(
            f"{cell.condition.path} tries what the test rests on, and is tried before it is "
            f"registered: rag-repro run {cell.exhibit} --condition {cell.condition.hash} --record"
        )
    return answers_hash(record.lines[: cell.asked])


def answers_hash(lines: Sequence[Mapping[str, Any]]) -> str:
    """Of whole lines: some metrics are reckoned from what a line holds beside its scores."""
    return sha256(canonical([dict(line) for line in lines]))


def place_of(cell: Cell) -> str:
    kinds = "".join(f"/{kind}" for kind in cell.kinds)
    return f"{cell.condition.label}/{cell.condition.split}/{cell.n}{kinds}"


def _ids(cell: Cell, workshop: Workshop) -> Sequence[str]:
    """The cell's first n questions of its kinds, or all: from the split file, or of the world."""
    condition, ids = cell.condition, None
    if not cell.kinds:
        with suppress(splits.SplitError):
            ids = splits.ids(condition.label, condition.split)
    if ids is None:
        dataset = workshop.dataset(condition.dataset, condition.split)
        ids = [q.id for q in dataset.first(None, cell.kinds).questions]
    if cell.asked is None:
        raise RegistrationError(
            f"{cell.exhibit} asks no fixed number of questions of {condition.label}; give its grid "
            "an n"
        )
    return ids[: cell.asked]


def _trained(asked: Iterable[Cell], known: Mapping[str, str]) -> dict[str, str]:
    """Name -> hash of the weights of each trained part; known: of those that are not here."""
    lacking, here, found = {}, hub.artifacts(), {}
    for reader, needs in ((c.condition.reader, c.condition.configured.needs) for c in asked):
        named = {names.scorer_name(name)[0] for name in (reader, *needs) if name}
        found |= {name: weights.sha256_of_folder(here[name]) for name in named & here.keys()}
        lacking |= names.untrained(reader, needs)
    for name, command in lacking.items():
        if name not in known:
            raise RegistrationError(f"{name} is not trained on this machine: {command}")
    return found | {name: known[name] for name in lacking}


def folder_of(root: Path, cell: Cell) -> Path:
    made = root / FOLDER / "records"
    return records.times_beside(made, cell.exhibit) if cell.timed else made


def deciding(test: Registration) -> list[Cell]:
    """The conditions of the test that are to be recorded for it."""
    made = cells(moved(test), test.tier)
    return [cell for cell in made if cell.condition.split not in CHOSEN_ON]


def tests_of(root: Path) -> Mapping[str, list[Registration]]:
    """Condition's hash -> the registered tests that its record decides; [] of any other."""
    made: dict[str, list[Registration]] = defaultdict(list)
    for test in read(root):
        for name in {cell.condition.hash for cell in deciding(test)}:
            made[name].append(test)
    return made


def destination(
    results: Path, condition: Condition, tests: Mapping[str, Sequence[Registration]]
) -> Path:
    """Where a run into the folder `results/records` records it: if registered, a folder beside.

    tests: what `tests_of` says of the folder above, asked once for all conditions.
    """
    return results.parent / FOLDER / "records" if tests.get(condition.hash) else results
