"""Whether a timing rule ever said anything: a threshold that is never reached, or always.

Such a run answers as if nothing was searched for, or as often as there is something to break
off, and looks like any other. The answers' traces tell it, and what came nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_repro.methods.base import Settings
from rag_repro.methods.dragin.dynamic_settings import DynamicSettings
from rag_repro.schema import Answer

ENOUGH = 3
"""Drafts that must all give an alarm before that is worth a word."""


@dataclass
class Alarms:
    """Of some answers, how many drafts could give an alarm, and how many did.

    near: of each draft what came nearest to it: RIND's highest score, FLARE's lowest probability
    (or the sentence's mean), the number of its tokens. RIND's drafts without any score above 0,
    as one cut off at its second token, count only where no other draft does.
    """

    settings: DynamicSettings
    drafts: int = 0
    alarms: int = 0
    near: list[float] = field(default_factory=list)

    def add(self, answer: Answer) -> None:
        fresh = False
        for event in answer.trace:
            # Adaptive methods decide as well, once and without a draft.
            if event.get("stage") != "decide" or not event.get("text") or "keep" not in event:
                continue
            alarm = bool(event["sentence"])
            # What passages were just fetched for gives none.
            judged = not (fresh and self.settings.rewrites)
            near = self._near(event, int(fresh)) if judged else []
            fresh = alarm and self.settings.documents == "until_replaced"
            if near:
                self.drafts += 1
                self.alarms += alarm
                self.near += near

    def _near(self, event: Mapping[str, Any], settled: int) -> list[float]:
        if self.settings.timing == "rind":
            return [max(event["score"][settled:])] if len(event["score"]) > settled else []
        if self.settings.timing == "flare":
            p = event["probability"]
            return [min(p) if self.settings.doubt_of == "token" else sum(p) / len(p)]
        n = len(event["words"])
        return [n] if n > settled or self.settings.timing != "random" else []

    def remark(self) -> str | None:
        """What to say of them at a run's end; None: some drafts gave an alarm, and some none."""
        timing = self.settings.timing
        if timing == "never" or not self.drafts:
            return None
        if not self.alarms:
            drafts = f"{self.drafts} drafts" if self.drafts > 1 else "the only draft"
            return f"no alarm in {drafts}: {self._never()}"
        if timing in ("window", "sentence"):  # which search behind each, as they are meant to
            return None
        could = sum(near > 0 for near in self.near) if timing == "rind" else self.drafts
        if self.alarms == could >= ENOUGH:
            return f"an alarm in each of {could} drafts: {self._always()}"
        return None

    def _never(self) -> str:
        s, most = self.settings, max(self.near)
        if s.timing == "rind":
            told = f"the highest score is {most:.2g}, and threshold is {s.threshold:g}"
            if not most:
                return f"{told}; take a prompt that asks for sentences, as dragin_steps does"
            return f"{told}; take a threshold below the scores"
        if s.timing == "flare":
            told = f"the lowest probability is {min(self.near):.2g}, and doubt is {s.doubt:g}"
            return f"{told}; take a higher doubt"
        if s.timing == "window":
            told = f"the longest has {most} tokens, and window is {s.window}"
            return f"{told}; take a smaller window"
        if s.timing == "random":
            return f"none of their tokens was drawn, and rate is {s.rate:g}; raise rate"
        return (
            "each answer ended with its first sentence; take a prompt that asks for sentences, as "
            "dragin_steps does"
        )

    def _always(self) -> str:
        s = self.settings
        if s.timing == "rind":
            lowest = min(score for score in self.near if score > 0)
            told = f"the lowest of their highest scores is {lowest:.2g}"
            return f"{told}, and threshold is {s.threshold:g}; take a higher threshold"
        if s.timing == "flare":
            told = f"the highest of their lowest probabilities is {max(self.near):.2g}"
            return f"{told}, and doubt is {s.doubt:g}; take a lower doubt"
        return f"rate is {s.rate:g}; lower rate"


def watched(settings: Settings) -> Alarms | None:
    """What counts the alarms of answers with these settings; None: nothing gives one."""
    part = getattr(settings, "parts", {}).get("dragin", settings)
    return Alarms(part) if isinstance(part, DynamicSettings) else None
