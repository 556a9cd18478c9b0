"""The four papers' ideas in one method, each on or off: what no paper did.

They act at different stages, so that they fit into one another without a line of theirs
being written twice:

    q_1 .. , asked  = rewrite(q)            ERM4, sections 3.1, 3.4       (off: q)
    D_i             = search(q_i)           DR-RAG, section 2.2           (off: one plain search)
    D               = filter(D_1, ..)       ERM4, section 3.2             (off: all)
    e_1 .. e_k      = former(asked, D)      R²AG, equations 10 to 12      (off: none)
    answer          = read(asked, e, D)     or, by DRAGIN's section 3.3, written and broken off,
                                            each of its queries taking q's place in all of the above

With all of them off this is `single_step`; with one of them on it is that paper's method,
call for call. What the combinations leave open, and what we take. A dynamic reader makes queries
while it writes: rewriter, selection, filter and former then work on its query as if that were
the question, while the reader goes on answering the question itself. Where there are several
queries, each has up to k passages selected for it, and they take turns to fill the k places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

from rag_repro.engine import Flow
from rag_repro.methods.base import Settings, builtin, get
from rag_repro.methods.dragin.loop import dynamic
from rag_repro.methods.drrag.selection import two_stages_selected
from rag_repro.methods.erm4.pipeline import counts, knowledge
from rag_repro.methods.r2ag.method import informed
from rag_repro.methods.reading import PROMPTS
from rag_repro.methods.stages import Retrieved, read, retrieve
from rag_repro.schema import Question

PARTS = {"erm4": "erm4", "drrag": "cfs", "dragin": "dynamic", "r2ag": "r2ag"}
"""Our name of a paper -> the method whose settings its part takes."""
COMMON = tuple(field.name for field in fields(Settings))


@dataclass(frozen=True)
class ComposedSettings(Settings):
    """Of each paper the settings of its method, by name; None: it takes no part.

    k, own_candidates, prompt and max_new_tokens are those of the whole, and no part's. With
    `r2ag` the prompt must have places for embeddings.
    """

    erm4: Mapping[str, Any] | None = None
    drrag: Mapping[str, Any] | None = None
    dragin: Mapping[str, Any] | None = None
    r2ag: Mapping[str, Any] | None = None

    def __post_init__(self):
        super().__post_init__()
        off = self.r2ag is None
        if self.prompt is not None and PROMPTS[self.prompt].informed is off:
            raise ValueError(
                f"prompt is {self.prompt!r}, which has {'a' if off else 'no'} place for an "
                f"embedding before each passage, and r2ag is {'off' if off else 'on'}"
            )
        for name, part in self.parts.items():
            # Spelt out, so that it is the same condition however much of it was written.
            own = {key: value for key, value in asdict(part).items() if key not in COMMON}
            object.__setattr__(self, name, own)
        if self.erm4 and (self.erm4["memory"] is not None or not self.erm4["search"]):
            raise ValueError("erm4: what takes part searches, and has no memory; leave these out")

    @cached_property
    def parts(self) -> dict[str, Settings]:
        """Paper -> the settings of its method, of those that take part."""
        return {name: self._part(name) for name in PARTS if getattr(self, name) is not None}

    def _part(self, name: str) -> Settings:
        given = dict(getattr(self, name))
        for shared in COMMON:
            if shared in given:
                raise ValueError(f"{name}: {shared} is the whole method's; give it beside {name}")
        given |= {shared: getattr(self, shared) for shared in COMMON}
        # Files have lists where settings have tuples.
        return get(PARTS[name]).configure(
            {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
        )

    @property
    def needs(self) -> Mapping[str, str]:
        return {k: v for part in self.parts.values() for k, v in part.needs.items()}


def since(settings: ComposedSettings) -> int:
    """2: a query of DRAGIN's takes no words of a chat template."""
    dragin = settings.parts.get("dragin")
    return 2 if dragin and dragin.meets_template else 1


@builtin(
    "composed", 2, ComposedSettings, "this book: ERM4, DR-RAG, DRAGIN and R²AG composed", since
)
def composed(question: Question, settings: ComposedSettings) -> Flow:
    """All stages, of which the settings name some."""
    if dragin := settings.parts.get("dragin"):

        def below(asked: Question):
            _, found = yield from stages(asked, settings)
            return found

        return (yield from dynamic(question, dragin, below=below))
    asked, found = yield from stages(question, settings)
    answer = yield from read(asked, found.hits, settings, soft=found.soft)
    return replace(answer, trace=(*found.events, *answer.trace))


def stages(question: Question, settings: ComposedSettings):
    """All before the reading -> the question that is to be answered, and what was Found for it."""
    parts, chosen = settings.parts, []

    def selected(query: str):
        asked = replace(question, text=query)
        return (yield from two_stages_selected(asked, parts["drrag"], chosen))

    asked, events = question, ()
    if erm4 := parts.get("erm4"):
        find = selected if "drrag" in parts else None
        made, gathered, kept = yield from knowledge(question, erm4, find)
        asked, hits = made.asked, kept.kept
        events = (*made.events, *gathered.events, *kept.events, counts(made, gathered, kept))
    elif "drrag" in parts:
        hits = yield from selected(question.text)
    else:
        hits = yield from retrieve(question, settings)
    soft, told = (), ()
    if r2ag := parts.get("r2ag"):
        soft, told = yield from informed(asked, hits, r2ag)
    return asked, Retrieved(tuple(hits), tuple(soft), (*chosen, *events, *told))
