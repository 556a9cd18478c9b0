"""Does the number of similar titles in memory tell that memory holds a gold passage (ERM4)?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_repro.evaluation import calibration
from rag_repro.evaluation.intervals import Interval, StatisticsError
from rag_repro.evaluation.resampling import new_generator
from rag_repro.study.scores import Scores


def areas(popularity: Mapping[float, Scores], holds: Scores) -> dict[str, Interval | None]:
    """Area under the ROC curve in percent, 95 %, by what tells; None where all questions are alike.

    popularity: threshold τ -> the popularity of each question. holds: above 0 where memory holds
    gold. Questions that one of them lacks are left out. Last comes the largest similarity, to the
    steps of τ: it reaches τ where the popularity at τ is 1 or more.
    """
    by_tau = {tau: popularity[tau].by_id() for tau in sorted(popularity)}
    truth = holds.at([q for q in holds.ids if all(q in by for by in by_tau.values())])
    columns = {f"popularity, τ {tau:g}": [by[q] for q in truth.ids] for tau, by in by_tau.items()}
    columns["largest similarity"] = [
        max([0.0, *(tau for tau, by in by_tau.items() if by[q] >= 1)]) for q in truth.ids
    ]
    return {name: _area(values, truth) for name, values in columns.items()}


def _area(values: Sequence[float], truth: Scores) -> Interval | None:
    try:
        judged = calibration.Judgements.from_labels(values, truth.values > 0, truth.clusters)
    except StatisticsError:
        return None
    return calibration.auc(judged, new_generator()).cut(0, 1).scaled(100)
