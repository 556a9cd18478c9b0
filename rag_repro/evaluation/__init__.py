"""Evaluation: `metrics` (what an answer is worth), `statistics` (how sure), `verdicts`."""
