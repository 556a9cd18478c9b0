"""Claims as tables: what is claimed, what records say of it, contrast by contrast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rag_repro.data.titles import word
from rag_repro.evaluation.heuristics import GUESSED
from rag_repro.evaluation.verdicts import OPEN
from rag_repro.show import ledger
from rag_repro.show.table import Table
from rag_repro.show.values import within
from rag_repro.show.worked import working
from rag_repro.study import judge, papers
from rag_repro.study.outcomes import of_answers
from rag_repro.study.papers import Paper
from rag_repro.study.scores import Results, resampled

GUESSES = "drrag.guessable"  # where answers are guessed by rules without a reader


def statements(paper: Paper, ids: Sequence[str]) -> Table:
    """What the paper claims, and whether its own printed numbers bear it out."""
    head = ["claim", "the paper's numbers", "do they support it?"]
    body = []
    for name in ids:
        claim = paper.claim(name)
        support = f"{claim.support}: {working(paper, claim)}".rstrip(": ")
        said = f"{claim.id} ({claim.place}): {claim.claim}"
        body.append([said, claim.paper_numbers, support])
    caption = f"Claims of {paper.short}, and its own numbers"
    if paper.legend:
        caption += f" ({paper.legend})"
    return Table(head, body, caption, "tab-claims", stacked=True)


def changed(paper: Paper, ids: Sequence[str], name: str = "") -> Table | None:
    """Claims whose test is another than at first, since records were seen; None where none is."""
    told: dict[str, list[str]] = {}  # reason -> claims, since several share one
    for claim in map(paper.claim, ids):
        for reason in claim.changed:
            told.setdefault(reason, []).append(claim.id)
    body = [[", ".join(claims), reason] for reason, claims in told.items()]
    caption = "Tests that were changed after records had been seen, and so are weaker"
    head = ["claim", "what was changed, and why"]
    return Table(head, body, caption, name, stacked=True) if body else None


def verdicts(paper: Paper, judgements: Iterable[judge.Judged]) -> Table:
    """One line a claim and tier; of one claim below one another, its words once."""
    head = ["claim", "tier", "verdict", "state", "effect [95 %], n", "smallest effect", "why"]
    caption = f"Verdicts on claims of {paper.short}; effects in the direction that is claimed"
    by: dict[str, list[judge.Judged]] = {}
    for judged in judgements:
        by.setdefault(judged.claim.id, []).append(judged)
    body = []
    for held in by.values():
        claim = held[0].claim
        said = [f"{claim.id}: {claim.claim}", *[""] * (len(held) - 1)]
        body += [[words, *_verdict_line(one)] for words, one in zip(said, held, strict=True)]
    return Table(head, body, caption, "tab-verdicts", stacked=True)


def contrasts(
    judgements: Iterable[judge.Judged],
    roles: Sequence[str],
    caption: str,
    name: str = "",
    beside: Sequence[list[str]] = (),
) -> Table | None:
    """One line a contrast of these roles that has records; None where none has. beside: further
    lines, behind them.
    """
    body = [
        _aside_line(judged, part)
        for judged in judgements
        for part in judged.parts
        if part.contrast.role in roles and part.interval
    ]
    head = ["claim", "tier", "contrast", "verdict of it alone", "effect [95 % or more], n"]
    return Table(head, [*body, *beside], caption, name) if body else None


def guessable(paper: Paper, ids: Sequence[str]) -> Paper:
    """The paper with these claims' contrasts of answers alone, over what can be guessed."""
    over = {"role": "secondary", "rule": "mean", "premise": False, "kinds": tuple(sorted(GUESSED))}
    made = []
    for claim in map(paper.claim, ids):
        asked = [c for c in claim.contrasts if c.role == "primary" and of_answers(c)]
        labels = [f"{c.label or c.metric}, where it can be guessed" for c in asked]
        parts = (replace(c, **over, label=label) for c, label in zip(asked, labels, strict=True))
        made.append(replace(claim, contrasts=tuple(parts)))
    return replace(paper, claims=tuple(made))


def guesses(results: Results, tier: str) -> list[list[str]]:
    """What guessing gets right of these questions: a line a data set and rule with records."""
    exhibit, lines = papers.exhibit(GUESSES)[1], []
    for cell in (c for c in exhibit.cells(tier) if c.condition.method == "guess"):
        scores = results.scores(cell, "acc", lambda line: line.get("kind") in GUESSED)
        if scores is not None:
            label = f"{word(cell.keys['dataset'])}: {exhibit.methods[cell.keys['method']].label}"
            level = within(resampled(scores, "acc").interval(), n=True)
            lines.append(["", tier, label, "", f"{level} % right"])
    return lines


def _verdict_line(judged: judge.Judged) -> list[str]:
    part = judged.headline
    verdict = part.verdict if part else judged.verdict
    effect = ledger.counted(part) if part else ""
    small = ledger.smallest(part) if part else ""
    if judged.verdict.word in OPEN and verdict.mde is not None:
        small += f" (detectable: {verdict.mde:.1f})"
    word, reason = judged.verdict.word, judged.verdict.reason
    state = judged.state + (", test changed" if judged.claim.changed else "")
    if verdict.working:
        reason += f"; {verdict.working}"
    return [judged.tier, word, state, effect, small, reason]


def _aside_line(judged: judge.Judged, part: judge.Part) -> list[str]:
    label, word = part.contrast.label, part.verdict.word
    return [judged.claim.id, judged.tier, label, word, ledger.counted(part)]
