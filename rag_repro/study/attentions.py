"""What a record keeps of where a prompt's last token looks: small whole numbers."""

from __future__ import annotations

from typing import Any

from ..evaluation.attention_metrics import UNIT
from ..plain import shortened
from ..schema import Answer, Question
from .shapes import every, is_count, row, whole

_is_part = whole(0, UNIT)
_is_layer = every(_is_part)
_is_pair = row(is_count, is_count)


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


def fault(line: dict[str, Any]) -> str:
    """What of this field is not as it must be; "" where all is, or it is not there."""
    entry = line.get("attention")
    if entry is None or _is_entry(entry, len(line["hits"])):
        return ""
    return f"the attention is {shortened(repr(entry))}"


def _is_entry(entry: Any, n_hits: int) -> bool:
    needed = {"tokens", "marks", "words"}
    if not isinstance(entry, dict) or not needed <= set(entry) <= needed | {"embeddings"}:
        return False
    marks, words = entry["marks"], entry["words"]
    if not (_is_layer(marks) and marks):
        return False
    is_table = every(every(_is_part, n_hits), len(marks))
    right = is_table(words) and is_table(entry.get("embeddings", words))
    return right and every(_is_pair, n_hits)(entry["tokens"])
