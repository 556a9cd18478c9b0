"""Statistics of the house: the front door to intervals, tests and power."""

from .intervals import Interval, Resampled, StatisticsError
from .power import (
    Needed,
    mde_of,
    minimum_detectable_effect,
    questions_needed,
    variance_of_mean,
)
from .ratios import percent_interval, resample_ratio
from .resampling import (
    DRAWS,
    combine,
    interaction_interval,
    mean_interval,
    paired_interval,
    resample,
    resample_difference,
)
from .significance import McNemar, holm, holm_intervals, mcnemar, sign_flip_p

__all__ = [
    "DRAWS",
    "Interval",
    "McNemar",
    "Needed",
    "Resampled",
    "StatisticsError",
    "combine",
    "holm",
    "holm_intervals",
    "interaction_interval",
    "mcnemar",
    "mde_of",
    "mean_interval",
    "minimum_detectable_effect",
    "paired_interval",
    "percent_interval",
    "questions_needed",
    "resample",
    "resample_difference",
    "resample_ratio",
    "sign_flip_p",
    "variance_of_mean",
]
