"""Tables and figures in one grammar: what a column reads off a cell, and who is shown."""

from rag_repro.show.columns import (
    Column,
    answered_by_all,
    beyond,
    change,
    compared,
    entries,
    expand,
    gain,
    group,
    grouped,
    key,
    label,
    level,
    mean,
    pair_score,
    paper,
    paper_gain,
    part,
    percent,
    setting,
    share,
    table,
    trainings,
)
from rag_repro.show.figures import bars, curve, forest, frontier, heat
from rag_repro.show.passage_list import passage_list
