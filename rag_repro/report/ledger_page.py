"""The ledger as a page: a row a claim, to be filtered by paper, tier and verdict.

The filter is a set of radio buttons and style rules, made here from the same lists as the
rows: no server and no script. A tier at which no claim has a verdict shows when it is chosen.
Where a viewer drops the style, the whole table stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..evaluation.verdicts import OPEN, UNSAID, WORDS
from ..study import audits, standing
from ..study.audits import Finding
from ..study.conditions import TIERS
from ..study.judge import Judged
from ..study.papers import Claim, Paper
from ..study.scores import Results
from .escape import NO_FORMULAS, as_html
from .ledger import counted, smallest
from .worked import workings

ALL = "all"
LONG = 70  # characters of a cell's text from which it is folded away


@dataclass(frozen=True)
class Entry:
    """A claim with its verdict at each tier, and what the audit found of its numbers."""

    paper: Paper
    claim: Claim
    judged: Mapping[str, Judged]
    findings: Sequence[Finding] = ()

    def words(self) -> dict[str, str]:
        return {tier: self.judged[tier].verdict.word for tier in self.judged}


def entries(papers: Iterable[Paper], results: Results) -> list[Entry]:
    """Every claim of these papers, in the order of their files."""
    made = []
    for paper in papers:
        by_tier = {tier: standing.judged(paper, tier, results) for tier in TIERS}
        found = audits.claim_findings(paper)
        for place, claim in enumerate(paper.claims):
            judged = {tier: held[place] for tier, held in by_tier.items()}
            made.append(Entry(paper, claim, judged, found.get(claim.id, ())))
    return made


class Ledger:
    """The filter and the table; plain text is one line a claim.

    chapters: claim -> the name of the chapter that decides it.
    """

    def __init__(self, entries: Sequence[Entry], chapters: Mapping[str, str]):
        self.entries, self.chapters = list(entries), chapters
        self.papers = list(dict.fromkeys(entry.paper.name for entry in self.entries))
        seen = {word for entry in self.entries for word in entry.words().values()}
        self.words = [word for word in WORDS if word in seen]
        told = {
            tier: {entry.words()[tier] for entry in self.entries} - set(UNSAID) for tier in TIERS
        }
        # Where no tier has a verdict there is nothing to show in place of any.
        self.idle = [tier for tier in TIERS if not told[tier]] if any(told.values()) else []

    def __repr__(self) -> str:
        lines = (
            f"{e.claim.id}: " + "; ".join(f"{tier} {word}" for tier, word in e.words().items())
            for e in self.entries
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = ["claim", "the paper's own numbers", *TIERS]
        cells = "".join(f'<th scope="col">{as_html(name)}</th>' for name in head)
        body = "".join(map(self._row, self.entries))
        return (
            f"<style>{self._rules()}</style>"
            f'<div class="rr-ledger {NO_FORMULAS}">{self._filter()}'
            f'<div class="rr-table"><table><thead><tr>{cells}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>"
            f'<p class="rr-count" aria-live="polite"></p></div>'
        )

    # ------------------------------------------------------------------ the filter

    def _filter(self) -> str:
        short = {entry.paper.name: entry.paper.short for entry in self.entries}
        return (
            '<div class="rr-choices">'
            + "".join(
                (
                    _choice("paper", short),
                    _choice("tier", {tier: tier for tier in TIERS}),
                    _choice("verdict", {_slug(word): word for word in self.words}),
                )
            )
            + "</div>"
        )

    def _rules(self) -> str:
        """What a chosen button hides: rows of other papers, other tiers' cells, other verdicts."""
        rules = [
            f'{_chosen("paper", name)} tbody tr:not([data-paper="{name}"]){{display:none}}'
            for name in self.papers
        ]
        for tier in TIERS:
            rest = ",".join(f".rr-{other}" for other in TIERS if other != tier)
            place = TIERS.index(tier) + 3
            heads = f"thead th:nth-child(n+3):not(:nth-child({place}))"
            rules.append(f"{_chosen('tier', tier)} :is({rest},{heads}){{display:none}}")
            # As a block in place of a cell, what spans all tiers takes one column.
            rules.append(f"{_chosen('tier', tier)} .rr-every{{display:block;border:0}}")
        for tier in self.idle:
            idle = f".rr-{tier},thead th:nth-child({TIERS.index(tier) + 3})"
            rules.append(f"{_chosen('tier', ALL)} :is({idle}){{display:none}}")
        for slug in map(_slug, self.words):
            shown = [tier for tier in TIERS if tier not in self.idle]
            hidden = "".join(f':not([data-at-{tier}="{slug}"])' for tier in shown)
            anywhere = f"{_chosen('tier', ALL)}{_has('verdict', slug)}"
            rules.append(f"{anywhere} tbody tr{hidden}{{display:none}}")
            rules += [
                f"{_chosen('tier', tier)}{_has('verdict', slug)} "
                f'tbody tr:not([data-at-{tier}="{slug}"]){{display:none}}'
                for tier in TIERS
            ]
        return "\n".join(rules)

    # -------------------------------------------------------------------- the rows

    def _row(self, entry: Entry) -> str:
        told = "".join(f' data-at-{tier}="{_slug(word)}"' for tier, word in entry.words().items())
        verdicts = {tier: _told(entry.judged[tier]) for tier in TIERS}
        [first, *others] = verdicts.values()
        if all(other == first for other in others):
            span = len(TIERS) - len(self.idle)
            cells = (
                f'<td class="prose rr-every" data-tier="every tier" colspan="{span}">{first}</td>'
            )
        else:
            cells = "".join(
                f'<td class="prose rr-{tier}" data-tier="{tier}">{said}</td>'
                for tier, said in verdicts.items()
            )
        return (
            f'<tr id="{as_html(entry.claim.id)}" data-paper="{as_html(entry.paper.name)}"{told}>'
            f'<td class="prose">{self._claim(entry)}</td>'
            f'<td class="prose">{_numbers(entry)}</td>{cells}</tr>'
        )

    def _claim(self, entry: Entry) -> str:
        claim, chapter = entry.claim, self.chapters.get(entry.claim.id)
        links = []
        if chapter:
            number = as_html(chapter.split("_")[0])
            links.append(f'<a href="{as_html(chapter)}.html#verdicts">chapter {number}</a>')
        if claim.exhibit:
            key = claim.exhibit.split(".", 1)[1]
            place = entry.paper.exhibits[key].place
            links.append(f"<code>{as_html(claim.exhibit)}</code> ({as_html(place)})")
        where = "; ".join(links)
        return (
            f"<b>{as_html(claim.id)}</b> {as_html(claim.claim)}"
            f"<small>{as_html(claim.place)}{'; ' if where else ''}{where}</small>"
            f"<details><summary><small>how it is tested</small></summary>"
            f"<small>{as_html(claim.test)}</small></details>"
        )


def _told(judged: Judged) -> str:
    """The verdict in bold, its effect, its smallest effect of interest, and why."""
    verdict, part = judged.verdict, judged.headline
    said = [f"<b>{as_html(verdict.word)}</b>"]
    if part is not None and part.interval is not None:
        said.append(f"<span>{as_html(counted(part))}</span>")
        if part.verdict.delta is not None:
            small = f"{'δ ' if part.contrast.margin is None else ''}{smallest(part)}"
            if part.verdict.mde is not None:
                small += f", detectable {part.verdict.mde:.2f}"
            said.append(f"<span>{as_html(small)}</span>")
    if part is not None and part.verdict.working:
        said.append(_small([part.verdict.working], "δ"))
    if verdict.word in {*OPEN, *UNSAID} or len(judged.parts) > 1 or len(said) == 1:
        said.append(_small([verdict.reason], "why"))
    if verdict.word not in UNSAID:
        said.append(f"<small>{as_html(judged.state)}</small>")
    said.append(_small(judged.history, "history of the test"))
    return "".join(said)


def _numbers(entry: Entry) -> str:
    claim = entry.claim
    told = claim.paper_numbers
    numbers = _small([told], "its numbers") if len(told) > LONG else as_html(told)
    why = [claim.support_note] if claim.support_note else []
    why += workings(entry.paper, claim, entry.findings)
    return f"{numbers}<small><b>{as_html(claim.support)}</b></small>{_small(why, 'why')}"


def _small(lines: Sequence[str], summary: str) -> str:
    """Text in small print, a line each; folded behind the summary where it is long."""
    if not lines:
        return ""
    text = f"<small>{'<br>'.join(map(as_html, lines))}</small>"
    if sum(map(len, lines)) <= LONG:
        return text
    return f"<details><summary><small>{summary}</small></summary>{text}</details>"


def _choice(name: str, options: Mapping[str, str]) -> str:
    """One row of buttons, the first of which chooses nothing."""
    buttons = "".join(
        f'<label><input type="radio" name="rr-{name}" value="{as_html(value)}"'
        f"{' checked' if value == ALL else ''}> {as_html(said)}</label>"
        for value, said in {ALL: ALL, **options}.items()
    )
    return f"<fieldset><legend>{name}</legend>{buttons}</fieldset>"


def _chosen(name: str, value: str) -> str:
    return f".rr-ledger{_has(name, value)}"


def _has(name: str, value: str) -> str:
    return f':has(input[name="rr-{name}"][value="{value}"]:checked)'


def _slug(word: str) -> str:
    return word.replace(" ", "-")
