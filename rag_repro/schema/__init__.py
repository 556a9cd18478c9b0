"""The project's words as types: what every floor of the house speaks in.

Plain frozen data, no behaviour beyond small derived views, and no heavy
import. The *calls* are what a method may ask for; `engine.run` answers them.
"""

from rag_repro.schema.answers import Answer, Cost
from rag_repro.schema.calls import (
    Call,
    Encode,
    Generate,
    Generation,
    Kept,
    Marker,
    Prefix,
    Prompt,
    Read,
    Recall,
    Remember,
    Reply,
    Retrieve,
    Sampling,
    Score,
    Segment,
    Soft,
    Trace,
    Until,
    pieces_of,
)
from rag_repro.schema.texts import Gold, Hit, Interpretation, Passage, Question, Step
