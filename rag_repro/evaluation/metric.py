"""What a metric is, and what one sees: its function is in code, its words in `metrics.yaml`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

from rag_repro.evaluation import answer_metrics as ans
from rag_repro.evaluation.normalise import answer as normalise_answer
from rag_repro.plain import from_yaml
from rag_repro.schema import Passage, Question

Line = Mapping[str, Any]
"""One line of a record."""


def readings(question: Question) -> tuple[tuple[str, ...], ...]:
    """The accepted answers of each way to understand the question.

    One group for an unambiguous question, one for each interpretation of an
    ambiguous one (interpretations without answers are left out).
    """
    groups = tuple(i.answers for i in question.interpretations if i.answers)
    return groups or ((question.answers,) if question.answers else ())


def accepted(question: Question) -> tuple[str, ...]:
    """All accepted answers, those of every interpretation among them, once each.

    So an ambiguous question is answered by any of its readings, as in AmbigNQ
    and in ERM4's labels; `set_recall` asks for all of them.
    """
    flat = [*question.answers, *(a for i in question.interpretations for a in i.answers)]
    return tuple(dict.fromkeys(flat))


@dataclass(frozen=True, slots=True)
class Scored:
    """What a metric sees: one question with one record's outcome."""

    question: Question
    answers: tuple[str, ...]
    prediction: str | None
    hit_ids: tuple[str, ...]
    passages: tuple[Passage, ...]

    @property
    def closed(self) -> bool:
        return bool(self.answers) and all(normalise_answer(a) in ans.CLOSED for a in self.answers)

    def gold(self, role: str | None = None) -> tuple[str, ...]:
        wanted = [g for g in self.question.gold if role is None or g.role == role]
        return tuple(dict.fromkeys(g.passage_id for g in wanted))


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    unit: "percent" (scores in [0, 1], printed times `scale` = 100) or the
    name of what is counted. needs: "prediction"; "hits" (their ids); "texts"
    (the hits' passages); "line" (of a record, see `line_metrics`). fn takes a
    `Scored`, or the line, and gives None where the score is not defined. where: settings that
    the method must have, if it has them at all, for the score to be defined.
    """

    name: str
    symbol: str
    fn: Callable[[Any], float | None]
    meaning: str
    unit: str = "percent"
    needs: Literal["prediction", "hits", "texts", "line"] = "line"
    higher_is_better: bool | None = True
    where: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scale(self) -> float:
        return 100.0 if self.unit == "percent" else 1.0

    @property
    def of_answers(self) -> bool:
        """Whether it says how good an answer is, so that a reader must be able to read."""
        return self.needs == "prediction" and self.higher_is_better is True

    def defined(self, settings: Any) -> bool:
        """Whether a method with these settings can have a score of it."""
        return all(getattr(settings, name, value) == value for name, value in self.where.items())

    @property
    def span(self) -> float | None:
        """The largest difference two scores can have; None where unbounded."""
        return 1.0 if self.unit == "percent" else None


@cache
def catalogue() -> Mapping[str, Mapping[str, Any]]:
    """What `metrics.yaml` has."""
    return from_yaml(resources.files(__package__).joinpath("metrics.yaml").read_text("utf-8"))


def described(name: str, fn: Callable[[Any], float | None]) -> Metric:
    """The metric of that name as `metrics.yaml` describes it."""
    return Metric(name=name, fn=fn, **catalogue()[name])


def counted(part: str, field: str, line: Line) -> float | None:
    """A count in a part of the line, as its cost: 0 where it is not told; None without the part."""
    return float(line[part].get(field, 0)) if part in line else None
