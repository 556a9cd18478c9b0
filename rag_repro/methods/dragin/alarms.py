"""Whether a timing rule ever said anything: a threshold that is never reached.

Such a run answers as if nothing was searched for, and looks like any other. The answers' traces
tell it, and what came nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from rag_repro.methods.base import Settings
from rag_repro.methods.dragin.dynamic_settings import DynamicSettings
from rag_repro.schema import Answer


@dataclass
class Alarms:
    """Of some answers, how many drafts gave an alarm.

    near: of each draft what came nearest to it: RIND's highest score, FLARE's lowest probability
    (or the sentence's mean), the number of its tokens.
    """

    settings: DynamicSettings
    alarms: int = 0
    near: list[float] = field(default_factory=list)

    def add(self, answer: Answer) -> None:
        for event in answer.trace:
            # Adaptive methods decide as well, once and without a draft.
            if event.get("stage") == "decide" and event.get("text") and "keep" in event:
                self.alarms += bool(event["sentence"])
                self.near.append(self._near(event))

    def _near(self, event: Mapping[str, Any]) -> float:
        if self.settings.timing == "rind":
            return max(event["score"], default=0.0)
        if self.settings.timing == "flare":
            p = event["probability"] or [1.0]
            return min(p) if self.settings.doubt_of == "token" else fmean(p)
        return len(event["words"])

    def remark(self) -> str | None:
        """What to say of them at a run's end; None: some drafts gave an alarm, or none could."""
        s = self.settings
        if s.timing == "never" or not self.near or self.alarms:
            return None
        # About half of such drafts would give an alarm at what is advised.
        most, half = max(self.near), median(self.near)
        prompt = "take a prompt that asks for sentences, as dragin_steps does"
        if s.timing == "rind":
            advice = f"try threshold {0.9 * (half or most):.2g}" if most else prompt
            told = f"the highest score is {most:.2g}, and threshold is {s.threshold:g}; {advice}"
        elif s.timing == "flare":
            least = f"the lowest probability is {min(self.near):.2g}"
            told = f"{least}, and doubt is {s.doubt:g}; try doubt {min(1.0, half + 0.05):.2g}"
        elif s.timing == "window":
            longest = f"the longest has {most} tokens"
            told = f"{longest}, and window is {s.window}; try window {max(1, int(half) // 2)}"
        elif s.timing in ("random", "random_early"):
            told = f"none of their tokens was drawn, and rate is {s.rate:g}; raise rate"
        else:
            told = f"each answer ended with its first sentence; {prompt}"
        drafts = f"{len(self.near)} drafts" if len(self.near) > 1 else "the only draft"
        return f"no alarm in {drafts}: {told}"


def watched(settings: Settings) -> Alarms | None:
    """What counts the alarms of answers with these settings; None: nothing gives one."""
    part = getattr(settings, "parts", {}).get("dragin", settings)
    return Alarms(part) if isinstance(part, DynamicSettings) else None
