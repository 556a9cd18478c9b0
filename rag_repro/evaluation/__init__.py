"""Evaluation: `metrics` (what an answer is worth), `intervals` (how sure), `verdicts`."""
