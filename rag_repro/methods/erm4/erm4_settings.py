"""How ERM4's four modules are used: every choice of its tables, and the controls beside them.

The rows of section 4.3 and table 3 in these words (k and prompt as one likes):

    Direct                                method no_retrieval
    Rewriter-Retriever-Reader             rewrite: query
    Rewriter+-Retriever-Reader            {}                 (rewrite: plus is the default)
    Rewriter+-Retriever-Filter-Reader     filter: nli
    original question, no knowledge       method no_retrieval
    rewritten question, no knowledge      search: false
    original question, all knowledge      asked: original
    original question, filtered           asked: original, filter: nli
    table 2                               filter: nli, per_query: 5, memory: filled, tau: ...

Controls that the paper lacks:

    the question itself as the query      rewrite: none, per_query: 30
    one query, as many snippets           rewrite: query, per_query: 30
    one of the several, as many           matched: true
    one of the several                    queries: 1
    several queries, original question    asked: original
    filtered by chance at the same rate   filter: nli, keep: random
    a plain query cache                   memory: filled, trigger: exact
    gold passages and so much noise       rewrite: none, noise: 10

A setting that would do nothing is refused, so that no two conditions are the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal

from rag_repro import data
from rag_repro.methods.base import Count, Settings, Within, fill_or_refuse

RESERVOIR = "reservoir"
"""The service that is the memory."""


@dataclass(frozen=True)
class Remembering:
    """Memory Knowledge Reservoir and Retrieval Trigger (sections 3.3 and 3.4).

    memory: None: none. "filled": a reservoir filled from other questions by the same pipeline
        (same retriever, reader and settings), then frozen; its hash stands in the record.
        "online": it begins empty, and each question leaves in it what it fetched from
        outside, so that questions are asked one after another.
    fill, fill_split, fill_n: of "filled": the data set whose questions fill it (None: the
        condition's own), of which split ("tune", of a named one "test"; "all" of it) the first
        so many (100).
        Its corpus must be the condition's, and none of its questions one of the condition's.
    content: "raw": all that was fetched is remembered (the paper); "filtered": what the filter
        kept (the released code reads such files).
    same: which pairs replace an older one: of the same "title", exactly (paper and code); of
        the same title in any case ("folded"); of the same title and content ("passage").
    capacity: most pairs (10,000); those written longest ago leave first.
    trigger: "popularity": a query is within the knowledge where the titles of at least `theta`
        pairs have a cosine of at least `tau` with it (of the same title one pair is kept, unless
        `same` is "passage"); "exact" (control): where the very same query was
        asked before, and then it brings what it found then.
    tau, theta: 0.6 (the fastest of table 2) and 3 (section 6). tau 1.0 is met by an
        equal text alone.
    encoder: whose vectors are compared ("minilm"; the paper does not say, its code has
        all-mpnet-base-v2 commented out).
    recalled: most pairs that a query brings from memory (10), the most similar first; the
        popularity counts all.
    beside: a query outside the knowledge, which is searched for, brings its similar pairs as
        well, behind what the search found; off: memory instead of a search, or a search.
    filter_memory: what comes from memory is filtered as what comes from outside (table 2's
        "irrelevant" falls with tau, which suggests it).
    """

    memory: Literal["filled", "online"] | None = None
    fill: str | None = None
    fill_split: str | None = None
    fill_n: Count | None = None
    content: Literal["raw", "filtered"] | None = None
    same: Literal["title", "folded", "passage"] | None = None
    capacity: Count | None = None
    trigger: Literal["popularity", "exact"] | None = None
    tau: Annotated[float, Within(-1, 1)] | None = None
    theta: Count | None = None
    encoder: str | None = None
    recalled: Count | None = None
    beside: bool | None = None
    filter_memory: bool | None = None

    def check_remembering(self, filtered: bool) -> None:
        kept = {"content": "raw", "same": "title", "capacity": 10_000}
        kept |= {"tau": 0.6, "theta": 3, "encoder": "minilm", "recalled": 10, "beside": False}
        split = "tune" if self.fill is None else "test"
        filling = {"fill": None, "fill_split": split, "fill_n": 100}
        if self.memory is None:
            every = kept | filling | {"trigger": None, "filter_memory": None}
            fill_or_refuse(self, False, every, "no memory")
            return
        fill_or_refuse(self, True, {"trigger": "popularity"}, "")
        if self.trigger == "exact" and self.memory == "online":
            raise ValueError(
                "trigger 'exact' goes by queries, which a record that an online run is "
                "continued from does not hold; take memory: filled"
            )
        fill_or_refuse(self, self.trigger != "exact", kept, "trigger 'exact'")
        fill_or_refuse(self, self.memory == "filled", filling, "memory 'online'")
        fill_or_refuse(self, filtered, {"filter_memory": True}, "filter 'none'")
        if self.content == "filtered" and not filtered:
            raise ValueError("content is 'filtered', and filter is 'none'; name a filter")
        if self.fill is not None:
            data.check_name(self.fill)


MOST_CALLS = 180
"""Of the filter, for one query: so many passages are more than any reader is shown."""


@dataclass(frozen=True)
class Rewriting:
    """Query Rewriter and Query Rewriter+ (section 3.1).

    rewrite: "none": the question is the query. "query": Query Rewriter, one query. "plus":
        Query Rewriter+, a rewritten question and several queries in one generation. "apart"
        (c27, not in the paper): the same by two generations, one for each.
    rewriter: the reader that rewrites, by name, as one that a recipe trained for it; None:
        the condition's own reader.
    rewriter_shots: our invented exemplars stand before the question; None: they do for the
        condition's own reader, and do not for one named by `rewriter`, which was taught.
    rewriter_tokens: longest output, 100 as in the released code. One that reaches it is cut
        short and does not follow the format.
    queries: the most that are sent, 3 (figure 2's three; of 10 snippets each they make the
        30 of section 4.1). Those that an output has beyond are left out, and so is a query
        said twice. Of "plus" and "apart".
    asked: which question the reader answers, and the filter judges for: "rewritten" (the
        paper's, default of "plus" and "apart") or "original" (the only one of the others).

    An output that does not follow the format is replaced by the question itself, as its own
    rewriting and only query; the count `unfollowed` tells of it.
    """

    rewrite: Literal["none", "query", "plus", "apart"] = "plus"
    rewriter: str | None = None
    rewriter_shots: bool | None = None
    rewriter_tokens: Count | None = None
    queries: Count | None = None
    asked: Literal["original", "rewritten"] | None = None

    @property
    def several(self) -> bool:
        """Whether there is a rewritten question and more than one query."""
        return self.rewrite in ("plus", "apart")

    def check_rewriting(self) -> None:
        by, shots = f"rewrite {self.rewrite!r}", self.rewriter is None
        made = {"rewriter": None, "rewriter_shots": shots, "rewriter_tokens": 100}
        fill_or_refuse(self, self.rewrite != "none", made, by)
        fill_or_refuse(self, self.several, {"queries": 3, "asked": "rewritten"}, by)


@dataclass(frozen=True)
class Searching:
    """The Knowledge Retriever, and how what it finds is put in order (sections 2 and 4.1).

    search: off: no knowledge at all (table 3's "\\"); the reader is asked alone.
    per_query: n, passages that one query brings from outside (10; table 2: 5).
    order: "mixed": the queries' best in turn; "sequential": query after query. A passage
        found twice stands where it is found first. The first k stay.
    matched: a control (c02, c12): all queries are sent, and then the first query alone brings
        as many passages as all of them brought together.
    noise: a control (c41): in place of what is found, the gold passages and so many that are
        not gold, the nearest to the question, in an order drawn by its id. The question is the
        only query, and k does not cut them.
    """

    search: bool = True
    per_query: Count | None = None
    order: Literal["mixed", "sequential"] | None = None
    matched: bool | None = None
    noise: Annotated[int, Within(0)] | None = None

    def check_searching(self) -> None:
        used = {"per_query": 10, "order": "mixed", "matched": False}
        by = "noise" if self.search else "search off"
        fill_or_refuse(self, self.search and self.noise is None, used, by)
        fill_or_refuse(self, self.search, {"noise": None}, by)


@dataclass(frozen=True)
class Filtering:
    """The Knowledge Filter (section 3.2). Up to k passages are judged, those that stay are read.

    filter: "none". "nli": is "the passage holds (or helps to) an answer" entailed by the
        passage? "ask" (control): the same asked directly, yes or no. "gold" (control, needs
        labels): gold passages stay, the most that a filter could do.
    judge: the reader that judges, by name; None: the condition's own.
    judge_shots: as `rewriter_shots`.
    hypothesis: "strong": the passage holds the answer itself (single-hop); "weak": it may help
        to find it (multi-hop); "by_hops": by each question's own number of hops, strong where
        it is 1 or unknown.
    label: "scored": the most probable of the labels (`Read`); "written": what the judge
        writes. A written one that is no label is neutral (for "ask": no), and counted as
        `unlabelled`, as is an explanation that is cut at its longest.
    explain: the judge first writes an explanation, as the paper's, and `**` behind it.
    explanation_tokens: longest explanation (60).
    titled: the passage is judged with its title (the released code leaves it out).
    keep: "entailed"; "random" (control): as many as are entailed, drawn by chance.
    seed: of "random", for each question apart.
    back_off: where nothing is entailed: "nothing" is read (the paper's), or "all" that was
        judged, or the "top" one (c28).
    """

    filter: Literal["none", "nli", "ask", "gold"] = "none"
    judge: str | None = None
    judge_shots: bool | None = None
    hypothesis: Literal["strong", "weak", "by_hops"] | None = None
    label: Literal["scored", "written"] | None = None
    explain: bool | None = None
    explanation_tokens: Count | None = None
    titled: bool | None = None
    keep: Literal["entailed", "random"] | None = None
    seed: int | None = None
    back_off: Literal["nothing", "all", "top"] | None = None

    @property
    def asks_judge(self) -> bool:
        return self.filter in ("nli", "ask")

    @property
    def calls_a_passage(self) -> int:
        """What the filter asks of one passage."""
        if not self.asks_judge or self.label == "written":
            return int(self.asks_judge)
        return (3 if self.filter == "nli" else 2) + self.explain

    def check_filtering(self) -> None:
        by = f"filter {self.filter!r}"
        judging = {"judge": None, "judge_shots": self.judge is None, "hypothesis": "strong"}
        judging |= {"label": "scored", "explain": False, "titled": True}
        fill_or_refuse(self, self.asks_judge, judging, by)
        keeping = {"keep": "entailed", "back_off": "nothing"}
        fill_or_refuse(self, self.filter != "none", keeping, by)
        fill_or_refuse(self, bool(self.explain), {"explanation_tokens": 60}, "explain off")
        fill_or_refuse(self, self.keep == "random", {"seed": 0}, f"keep {self.keep!r}")


@dataclass(frozen=True)
class ERM4Settings(Settings, Rewriting, Searching, Filtering, Remembering):
    """ERM4's pipelines: what the groups above say, and of all methods:

    k: passages that reach the filter, or without one the reader, at most (section 4.1: 30;
        this book's grids: 5; 10 where a filter is judged, 15 for table 2, 30 for figure 2).
    """

    k: Count = 30

    def __post_init__(self):
        super().__post_init__()
        self.check_rewriting()
        self.check_searching()
        self.check_filtering()
        self.check_remembering(self.filter != "none")
        if self.k * self.calls_a_passage > MOST_CALLS:
            raise ValueError(
                f"k is {self.k}, and this filter asks {self.calls_a_passage} calls a passage, of "
                f"{MOST_CALLS} in all at most; take k up to {MOST_CALLS // self.calls_a_passage}"
            )
        for name in ("rewriter", "judge"):
            if getattr(self, name) == RESERVOIR:
                raise ValueError(f"{name} is {RESERVOIR!r}, and {RESERVOIR!r} is the memory")
        if not self.search:
            given = {"filter": self.filter != "none", "memory": self.memory is not None}
            given["own_candidates"] = self.own_candidates
            for name in (name for name, on in given.items() if on):
                raise ValueError(f"{name} would do nothing with search off; leave it out")
            if not self.several:
                raise ValueError(
                    f"rewrite {self.rewrite!r} would do nothing with search off; the reader "
                    "alone is the method no_retrieval"
                )
        elif self.noise is not None:
            if self.rewrite != "none" or self.memory is not None or self.k != ERM4Settings.k:
                raise ValueError(
                    "noise gives the passages without query, memory or cut; take rewrite: none, "
                    "no memory, and leave k out"
                )
        elif self.matched and (not self.several or self.memory is not None):
            raise ValueError(
                "matched compares one query with several, without memory; take rewrite: plus "
                "and no memory"
            )

    @property
    def answers(self) -> bool:
        return self.prompt is not None

    @property
    def needs(self) -> Mapping[str, str]:
        readers = {name: "reader" for name in (self.rewriter, self.judge) if name}
        encoder = {self.encoder: "encoder"} if self.encoder else {}
        memory = {RESERVOIR: RESERVOIR} if self.memory else {}
        return {**super().needs, **readers, **encoder, **memory}

    @property
    def asks_reader(self) -> bool:
        """Whether rewriting or filtering asks the condition's own reader."""
        rewrites = self.rewrite != "none" and self.rewriter is None
        return rewrites or (self.asks_judge and self.judge is None)

    def filling(self) -> ERM4Settings:
        """How questions that fill the memory are treated: the same, without memory or reading.

        For raw content without a filter, too. What then changes nothing has its default, so
        that one filling serves all conditions that it can.
        """
        changed = dict.fromkeys(f.name for f in fields(Remembering))
        changed |= {"prompt": None, "max_new_tokens": Settings.max_new_tokens}
        if self.content != "filtered":
            changed |= dict.fromkeys(f.name for f in fields(Filtering)) | {"filter": "none"}
            changed |= {"k": ERM4Settings.k, "asked": None}
        return replace(self, **changed)
