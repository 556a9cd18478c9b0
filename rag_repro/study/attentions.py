"""What a record keeps of where a prompt's last token looks: small whole numbers."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from annotated_types import Ge, Le, MinLen
from pydantic import Strict
from typing_extensions import TypedDict

from ..evaluation.attention_metrics import UNIT
from ..schema import Answer, Question
from .shapes import EXACT, Count

Part = Annotated[int, Strict(), Ge(0), Le(UNIT)]
PerLayer = Annotated[list[list[Part]], MinLen(1)]


class Attention(TypedDict):
    """A line's `attention`, as `of` says."""

    __pydantic_config__ = EXACT
    tokens: list[tuple[Count, Count]]
    marks: Annotated[list[Part], MinLen(1)]
    words: PerLayer
    embeddings: NotRequired[PerLayer]


class AttentionFields(TypedDict, total=False):
    """What `of` gives."""

    attention: Attention


def of(question: Question, answer: Answer) -> dict[str, Any]:
    """The line's field `attention`, where the trace has such an event.

    tokens: [marks, words] of each of the line's hits. marks: of each layer, from the first, what
    goes to the marks of all passages; words: of each layer what goes to each passage's title and
    text; embeddings: likewise to its embedding, where the prompt has them. All in
    ten-thousandths of the layer's attention.
    """
    event = next((e for e in answer.trace if e.get("stage") == "attention"), None)
    if event is None:
        return {}
    made = {name: _small(event[name]) for name in ("marks", "words", "embeddings") if name in event}
    return {"attention": {"tokens": event["tokens"], **made}}


def _small(value: Any) -> Any:
    return [_small(v) for v in value] if isinstance(value, list) else round(value * UNIT)
