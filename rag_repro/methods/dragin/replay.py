"""Each difference between DRAGIN's equations and its released code, on the same draft.

The reader writes once, without passages, as the first round of either does. On this
draft the released code decides, then with one of its differences at a time put back to the
equations, then the equations themselves with their own threshold. Nothing is searched
for, so what differs is the decision alone. A control of this book.

The trace, one entry a variant, in the order of `VARIANTS`:

    {"stage": "variant", "name": text, "triggered": bool, "keep": tokens that stay,
     "query": text}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...engine import Flow
from ...schema import Answer, Generate, Kept, Question, Read
from ..base import MethodSpec
from ..language import ENGLISH, Language
from ..reading import PROMPTS, one_line
from .draft import Draft
from .exemplars import with_exemplars
from .qfs import context_of, qfs, reread
from .queries import Situation
from .rind import Moment, rind
from .settings import DynamicSettings, ReleasedSettings

DIFFERENCES = {
    "D1": "normalise",
    "D2": "own_row",
    "D3": "heads",
    "D4": "alone",
    "D5": "unit",
    "D6": "gate",
    "D7": "meaning",
    "D8": "cut",
    "D9": "pooled",
    "D10": "row",
    "D11": "candidates",
    "D12": "context",
}
"""Those that a decision on one draft can show, by their settings."""
RELEASED, EQUATIONS = "released", "equations"
VARIANTS = (RELEASED, *DIFFERENCES, EQUATIONS)


@dataclass(frozen=True)
class ReplaySettings(ReleasedSettings):
    """The released code's settings, and the equations' own threshold beside them.

    theta: of the equations; their scores are of another size than the released code's.
    """

    theta: float = 0.2


def variants(settings: ReplaySettings) -> dict[str, DynamicSettings]:
    """What each variant decides by."""
    plain = DynamicSettings(prompt=settings.prompt, top_n=settings.top_n, threshold=settings.theta)
    one_back = {
        name: replace(settings, **{field: getattr(plain, field)})
        for name, field in DIFFERENCES.items()
    }
    return {RELEASED: settings, **one_back, EQUATIONS: plain}


def replay(question: Question, settings: ReplaySettings, language: Language = ENGLISH) -> Flow:
    """One draft, a decision and a query by each variant."""
    template = with_exemplars(PROMPTS[settings.prompt], settings.exemplars)
    made = yield Generate(
        template.fill(question, ()),
        max_new_tokens=settings.max_new_tokens,
        stop=template.stop,
        trace=True,
    )
    draft = Draft.of(made)
    if not len(draft):
        return Answer(text=made.text)
    read = yield Read(None, Kept(made, len(draft)), layers=(-1,))
    alone = replace(draft, attention=read.trace.attention[-1])
    rules = variants(settings)
    moments = {
        name: rind(alone if own.alone else draft, own, language)[0] for name, own in rules.items()
    }
    broken = {
        name: Situation(one_line(question.text), "", draft, moment)
        for name, moment in moments.items()
        if moment is not None
    }
    wanted = {name: reread(now) for name, now in broken.items() if rules[name].context == "again"}
    asked = list(dict.fromkeys(wanted.values()))
    results = yield asked
    second = dict(zip(asked, map(Draft.of, results), strict=True))
    trace = []
    for name, own in rules.items():
        query = ""
        if name in broken:
            again = second[wanted[name]] if name in wanted else None
            query = qfs(*context_of(broken[name], own, again), own, language)
        trace.append(_event(name, draft, moments[name], query))
    return Answer(text=made.text, trace=tuple(trace))


def _event(name: str, draft: Draft, moment: Moment | None, query: str) -> dict[str, Any]:
    keep = len(draft) if moment is None else moment.keep
    return {
        "stage": "variant",
        "name": name,
        "triggered": moment is not None,
        "keep": keep,
        "query": query,
    }


def since(settings: ReplaySettings) -> int:
    """3: a query takes no words of a chat template."""
    return 3 if any(own.meets_template for own in variants(settings).values()) else 2


REPLAY = MethodSpec(
    "dragin_replay",
    3,
    replay,
    ReplaySettings,
    "this book: DRAGIN's differences on one draft",
    since,
)
