"""What the benchmarks share: sides that take turns, and how their times are shown.

A machine's speed drifts, and other programs take part of it. So two sides are
never timed one after the other but in turns (A B A B), and what is compared is
the median of each. Beside the wall time stands the processor time of the whole
process, which other programs disturb less.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from statistics import median
from typing import TYPE_CHECKING, Any

from rag_repro.study import manifests

if TYPE_CHECKING:
    from rag_repro.lm.load import Loaded
    from rag_repro.schema import Question
    from rag_repro.schema.dataset import Dataset


@dataclass(frozen=True)
class Times:
    """One side's seconds, a value for each repeat: by the clock, and of the processor."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]

    def __add__(self, other: Times) -> Times:
        """Both one after the other, turn by turn."""
        return Times(
            tuple(a + b for a, b in zip(self.wall, other.wall, strict=True)),
            tuple(a + b for a, b in zip(self.cpu, other.cpu, strict=True)),
        )

    @property
    def facts(self) -> dict[str, float]:
        """Median, least and most, rounded: what goes into a line of JSON."""
        return {
            "seconds": round(median(self.wall), 4),
            "seconds_min": round(min(self.wall), 4),
            "seconds_max": round(max(self.wall), 4),
            "cpu_seconds": round(median(self.cpu), 4),
            "cpu_seconds_min": round(min(self.cpu), 4),
        }


def interleave(
    sides: Mapping[str, Callable[[], Any]], repeats: int, *, warm: int = 1
) -> tuple[dict[str, Times], dict[str, Any]]:
    """Call the sides in turns, `repeats` times each, after `warm` rounds that do not count.

    -> times by side, and what each side returned in its last turn.
    """
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}; at least 1 is needed")
    wall: dict[str, list[float]] = {name: [] for name in sides}
    cpu: dict[str, list[float]] = {name: [] for name in sides}
    results: dict[str, Any] = {}
    for turn in range(-warm, repeats):
        for name, side in sides.items():
            logging.getLogger(__name__).info("turn %d of %d: %s", turn + 1, repeats, name)
            started, spent = time.perf_counter(), time.process_time()
            results[name] = side()
            seconds, used = time.perf_counter() - started, time.process_time() - spent
            if turn >= 0:
                wall[name].append(seconds)
                cpu[name].append(used)
    return {name: Times(tuple(wall[name]), tuple(cpu[name])) for name in sides}, results


def ratio(slow: Times, fast: Times) -> dict[str, float]:
    """How many times longer `slow` takes -> of medians by the clock, its range, and of processor.

    The range is that of the turns: each turn's two sides ran next to each other.
    """
    turns = [a / b for a, b in zip(slow.wall, fast.wall, strict=True)]
    return {
        "ratio": round(median(slow.wall) / median(fast.wall), 3),
        "ratio_min": round(min(turns), 3),
        "ratio_max": round(max(turns), 3),
        "ratio_cpu": round(median(slow.cpu) / median(fast.cpu), 3),
    }


def machine(*packages: str) -> dict[str, Any]:
    """The processor, the cores that we may use, Python's version and those of packages."""
    return {
        "machine": manifests.processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in packages},
        },
    }


def weights(name: str, device: str) -> Loaded:
    """A reader's weights in memory, by the name that `lm.hub` knows."""
    from rag_repro.lm import hub
    from rag_repro.lm.load import load

    return load(hub.resolve(name), device)


def setting(loaded: Loaded) -> dict[str, Any]:
    """What a reader computes with: weights, dtype, threads, and the machine."""
    import torch

    return {
        "reader": loaded.weights.name,
        "dtype": loaded.dtype,
        "device": str(loaded.model.device),
        "threads": torch.get_num_threads(),
        **machine("torch", "transformers"),
    }


def first(dataset: Dataset, n: int) -> Sequence[Question]:
    """The data set's first n questions; a world's are of all its kinds in turn."""
    questions = dataset.questions
    if not 1 <= n <= len(questions):
        raise ValueError(f"questions is {n}; {dataset.name} has from 1 to {len(questions)}")
    return questions[:n]


def parser(
    description: str,
    *,
    questions: int,
    repeats: int,
    reads: bool = True,
    k: int | None = None,
    new_tokens: int | None = None,
) -> argparse.ArgumentParser:
    """The options that all benchmarks have, those of a reader, and others by their default."""
    made = argparse.ArgumentParser(description=description)
    if reads:
        made.add_argument("--reader", default="smollm2-135m", help="default: %(default)s")
        made.add_argument("--device", default="cpu", help="default: %(default)s")
    for name, default, words in (
        ("--k", k, "passages"),
        ("--new-tokens", new_tokens, "of an answer at most"),
    ):
        if default is not None:
            made.add_argument(
                name, type=int, default=default, help=f"{words} (default: %(default)s)"
            )
    made.add_argument("--questions", type=int, default=questions, help="default: %(default)s")
    made.add_argument("--repeats", type=int, default=repeats, help="turns that count (%(default)s)")
    made.add_argument("--json", action="store_true", help="end with one line of JSON")
    return made


def show(
    title: str,
    facts: Mapping[str, Any],
    rows: Mapping[str, Times],
    *,
    as_json: bool,
    goals: Sequence[str] = (),
) -> None:
    """Print one line of JSON with all facts and times, or a small table that ends in the goals."""
    if as_json:
        print(json.dumps({**facts, "sides": {name: t.facts for name, t in rows.items()}}))
        return
    print(title)
    width = max(len(name) for name in rows)
    print(f"{'':{width}}  {'seconds':>9}  {'least':>9}  {'most':>9}  {'processor':>9}")
    for name, times in rows.items():
        f = times.facts
        columns = (f["seconds"], f["seconds_min"], f["seconds_max"], f["cpu_seconds"])
        print(f"{name:{width}}  " + "  ".join(f"{value:9.3f}" for value in columns))
    for line in goals:
        print(line)
