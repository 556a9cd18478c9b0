"""What a record keeps of where a prompt's last token looks: small whole numbers."""

from __future__ import annotations

from math import inf
from typing import Any

from ..evaluation.attention_metrics import UNIT
from ..plain import shortened
from ..schema import Answer, Question


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
    return (
        _is_row(marks, UNIT)
        and len(marks) > 0
        and _is_table(entry["tokens"], n_hits, 2)
        and _is_table(words, len(marks), n_hits, UNIT)
        and _is_table(entry.get("embeddings", words), len(marks), n_hits, UNIT)
    )


def _is_table(rows: Any, n: int, width: int, most: float = inf) -> bool:
    right = isinstance(rows, list) and len(rows) == n
    return right and all(_is_row(row, most) and len(row) == width for row in rows)


def _is_row(row: Any, most: float) -> bool:
    """Whether it is a list of whole numbers from 0 to the most."""
    return isinstance(row, list) and all(type(x) is int and 0 <= x <= most for x in row)
