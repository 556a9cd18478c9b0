"""What can be wrong with a paper's files beyond their form: names that nothing bears.

A misspelt name would otherwise show only as a claim that is never judged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rag_repro import data
from rag_repro.evaluation import metrics
from rag_repro.study import names
from rag_repro.words import nearest

if TYPE_CHECKING:
    from rag_repro.study.exhibits import Exhibit
    from rag_repro.study.papers import Claim, Contrast, Paper, Proof


CHECKS = {
    "scorer": names.check_scorer,
    "reader": names.check_reader,
    "encoder": names.check_encoder,
}
"""What refuses a name, by the kind of service that a method needs besides."""


def problems(paper: Paper) -> Iterator[str]:
    """Every problem of the paper's files, each with its place."""
    for key, exhibit in paper.exhibits.items():
        for problem in _of_exhibit(paper, key, exhibit):
            yield f"{paper.name}/paper.yaml, exhibit {key}: {problem}"
    for problem in _of_gate(paper):
        yield f"{paper.name}/paper.yaml, gate: {problem}"
    rows = {name for exhibit in paper.exhibits.values() for name in exhibit.methods}
    sets = {cell.keys["dataset"] for exhibit in paper.exhibits.values() for cell in exhibit.cells()}
    for problem in _unknown("data set", paper.public, sets):
        yield f"{paper.name}/paper.yaml, public: {problem}"
    for ground in (paper.ground, *paper.public.values()):
        for problem in _unknown("row", ground.settings, rows):
            yield f"{paper.name}/paper.yaml, ground: {problem}"
    for number, proof in enumerate((*paper.proofs, *paper.ground.proofs), start=1):
        for problem in _of_proof(paper, proof):
            yield f"{paper.name}/paper.yaml, proof {number}: {problem}"
    seen: set[str] = set()
    for claim in paper.claims:
        for problem in _of_claim(paper, claim, seen):
            yield f"{paper.name}/claims.yaml, claim {claim.id}: {problem}"
        seen.add(claim.id)


def _of_exhibit(paper: Paper, key: str, exhibit: Exhibit) -> Iterator[str]:
    yield from _unknown("metric", exhibit.metrics, metrics.METRICS)
    if exhibit.values is not None and not os.path.isfile(paper.folder / exhibit.values):
        yield f"there is no file {exhibit.values!r} beside it"
    elif exhibit.values is not None:
        try:
            paper.printed(key)
        except ValueError as error:
            yield str(error)
    for name, row in exhibit.methods.items():
        if (row.run is None) == (row.waits is None):
            yield f"method {name}: it has either `run`, or `waits` with the reason"
        if row.retriever is not None:
            yield from _refused(f"method {name}", names.check_retriever, row.retriever)
        if row.baseline is not None:
            yield from _unknown(f"method {name}: baseline", [row.baseline], exhibit.methods)
    for number, grid in enumerate(exhibit.grids, start=1):
        for dataset in grid.datasets:
            yield from _refused(f"grid {number}", data.check_name, dataset)
        if grid.reader is not None:
            yield from _refused(f"grid {number}", names.check_reader, grid.reader)
        # Grids of several exhibits share one list, so it may name rows that are elsewhere.
        rows = {name for other in paper.exhibits.values() for name in other.methods}
        yield from _unknown(f"grid {number}, trained: method", grid.trained, rows)
        for _, reader in (pair for name in grid.trained for pair in grid.readers(name)):
            yield from _refused(f"grid {number}, trained", names.check_reader, reader)
    try:
        cells = exhibit.cells()
    except ValueError as error:  # a method or setting that the methods refuse
        yield str(error)
        return
    # By name, as methods call them: a setting's default counts as well as what the files say.
    needed = {need: cell for cell in cells for need in cell.condition.configured.needs.items()}
    for (name, kind), cell in needed.items():
        if kind in CHECKS:
            yield from _refused(f"method {cell.keys['method']}", CHECKS[kind], name)


def _of_claim(paper: Paper, claim: Claim, seen: set[str]) -> Iterator[str]:
    if claim.id in seen:
        yield "its id occurs twice"
    for number, compared in enumerate(claim.printed, start=1):
        unknown = list(_unknown("exhibit", [compared.exhibit], paper.exhibits))
        yield from (f"printed {number}: {problem}" for problem in unknown)
        if not unknown:
            yield from _refused(f"printed {number}", compared.values, paper)
    if claim.exhibit is None:
        if claim.contrasts:
            yield "it has contrasts, so it needs the exhibit whose cells they compare"
        return
    known = {exhibit.name: exhibit for exhibit in paper.exhibits.values()}
    contrasts = (*claim.contrasts, *claim.registered)
    named = dict.fromkeys([claim.exhibit, *map(claim.exhibit_of, contrasts)])
    unknown = list(_unknown("exhibit", named, known))
    yield from unknown
    if not unknown:
        for contrast in contrasts:
            known_metric = metrics.METRICS.get(contrast.metric)
            if paper.gate is None and known_metric and known_metric.of_answers:
                yield f"it is about answers ({contrast.metric}), so {paper.name} needs a `gate`"
            yield from _of_contrast(known[claim.exhibit_of(contrast)], contrast)
            if contrast.printed:
                yield from _refused(f"{contrast.label}, printed", contrast.printed.amounts, paper)


def _of_gate(paper: Paper) -> Iterator[str]:
    if paper.gate is None:
        return
    unknown = list(_unknown("exhibit", [paper.gate.exhibit], paper.exhibits))
    yield from unknown or _unknown("metric", [paper.gate.metric], metrics.METRICS)
    if not unknown:
        for side in (paper.gate.given, paper.gate.bare):
            yield from _of_side(paper.exhibits[paper.gate.exhibit], side)


def _of_proof(paper: Paper, proof: Proof) -> Iterator[str]:
    unknown = list(_unknown("exhibit", [proof.exhibit], paper.exhibits))
    named = [*proof.metrics, *([proof.against] if proof.against else [])]
    yield from unknown or _unknown("metric", named, metrics.METRICS)
    cells = [cell for exhibit in paper.exhibits.values() for cell in exhibit.cells()]
    if not any(proof.part(cell) for cell in cells):
        yield f"no condition has the setting {proof.setting!r}"
    if unknown:
        return
    exhibit = paper.exhibits[proof.exhibit]
    for side in (proof.more, proof.less):
        yield from _of_side(exhibit, side)
    tried = {cell.keys["dataset"] for cell in exhibit.cells()}
    yield from _unknown("data set", proof.serves, tried)
    served = [name for each in proof.serves.values() for name in each]
    yield from _unknown("data set", served, {cell.keys["dataset"] for cell in cells})


def _of_contrast(exhibit: Exhibit, contrast: Contrast) -> Iterator[str]:
    yield from _unknown("metric", [contrast.metric, *contrast.among], metrics.METRICS)
    for side in (contrast.more, contrast.less, *(contrast.minus or {}).values()):
        if side is not None:
            yield from _of_side(exhibit, {**contrast.where, **side})


def _of_side(exhibit: Exhibit, wanted: Mapping[str, Any]) -> Iterator[str]:
    if "metric" in wanted:
        yield from _unknown("metric", [wanted["metric"]], metrics.METRICS)
    keys = {key: value for key, value in wanted.items() if key != "metric"}
    named = keys.get("method", [])
    named = named if isinstance(named, list) else [named]
    unknown = list(_unknown("method", named, exhibit.methods))
    yield from unknown
    if unknown or not exhibit.grids or any(exhibit.methods[name].waits for name in named):
        return
    varied = {"dataset", "method", "reader"}.union(*(grid.settings for grid in exhibit.grids))
    unknown = list(_unknown("key", keys, varied))
    yield from unknown
    if not unknown and not any(cell.matches(keys) for cell in exhibit.whole.cells()):
        yield f"no condition of {exhibit.name} has " + ", ".join(
            f"{k} {v}" for k, v in keys.items()
        )


def _refused(place: str, check: Callable[[Any], Any], given: Any) -> Iterator[str]:
    try:
        check(given)
    except (KeyError, ValueError) as error:
        yield f"{place}: {error}"


def _unknown(what: str, names, known) -> Iterator[str]:
    for name in names:
        if not isinstance(name, str) or name not in known:
            yield f"{what} {name!r} is unknown{nearest(name, known)}"
