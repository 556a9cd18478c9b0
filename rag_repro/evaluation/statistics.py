"""Statistics of the house: the front door to intervals, tests and power."""

from rag_repro.evaluation.intervals import Interval, Resampled, StatisticsError
from rag_repro.evaluation.power import mde_of
from rag_repro.evaluation.ratios import percent_interval, resample_ratio
from rag_repro.evaluation.resampling import DRAWS, combine, resample, resample_difference
from rag_repro.evaluation.significance import McNemar, holm_intervals, mcnemar

__all__ = [
    "DRAWS",
    "Interval",
    "McNemar",
    "Resampled",
    "StatisticsError",
    "combine",
    "holm_intervals",
    "mcnemar",
    "mde_of",
    "percent_interval",
    "resample",
    "resample_difference",
    "resample_ratio",
]
