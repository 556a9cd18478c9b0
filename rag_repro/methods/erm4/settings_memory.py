"""How ERM4's memory is filled, asked and kept: the last group of its settings."""

from __future__ import annotations

from dataclasses import dataclass

from ... import data
from ..base import one_of
from ..compressing import at_least_one, fill_or_refuse

MEMORIES = ("filled", "online")
TRIGGERS = ("popularity", "exact")
SAME = ("title", "folded", "passage")

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

    memory: str | None = None
    fill: str | None = None
    fill_split: str | None = None
    fill_n: int | None = None
    content: str | None = None
    same: str | None = None
    capacity: int | None = None
    trigger: str | None = None
    tau: float | None = None
    theta: int | None = None
    encoder: str | None = None
    recalled: int | None = None
    beside: bool | None = None
    filter_memory: bool | None = None

    def check_remembering(self, filtered: bool) -> None:
        kept = {"content": "raw", "same": "title", "capacity": 10_000}
        popular = {
            "tau": 0.6,
            "theta": 3,
            "encoder": "minilm",
            "recalled": 10,
            "beside": False,
        }
        split = "tune" if self.fill is None else "test"
        filling = {"fill": None, "fill_split": split, "fill_n": 100}
        if self.memory is None:
            every = [*kept, *popular, *filling, "trigger", "filter_memory"]
            fill_or_refuse(self, {}, every, "no memory")
            return
        one_of("memory", self.memory, MEMORIES)
        fill_or_refuse(self, {"trigger": "popularity"}, [], "")
        one_of("trigger", self.trigger, TRIGGERS)
        if self.trigger == "exact":
            if self.memory == "online":
                raise ValueError(
                    "trigger 'exact' goes by queries, which a record that an online run is "
                    "continued from does not hold; take memory: filled"
                )
            fill_or_refuse(self, {}, [*kept, *popular], "trigger 'exact'")
        else:
            fill_or_refuse(self, kept | popular, [], "")
        if self.memory == "filled":
            fill_or_refuse(self, filling, [], "")
        else:
            fill_or_refuse(self, {}, list(filling), "memory 'online'")
        if filtered:
            fill_or_refuse(self, {"filter_memory": True}, [], "")
        else:
            fill_or_refuse(self, {}, ["filter_memory"], "filter 'none'")
        self._check_values(filtered)

    def _check_values(self, filtered: bool) -> None:
        for name, known in (("content", ("raw", "filtered")), ("same", SAME)):
            if getattr(self, name) is not None:
                one_of(name, getattr(self, name), known)
        if self.content == "filtered" and not filtered:
            raise ValueError("content is 'filtered', and filter is 'none'; name a filter")
        at_least_one(self, "fill_n", "capacity", "theta", "recalled")
        if self.fill is not None:
            data.check_name(self.fill)
        if self.tau is not None and not -1 <= self.tau <= 1:
            raise ValueError(f"tau is {self.tau}; a cosine lies between -1 and 1")
