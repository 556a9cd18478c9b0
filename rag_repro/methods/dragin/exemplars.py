"""DRAGIN's few-shot exemplars: the paper's where they are at hand, ours in the same form.

The paper's (appendix F) are text of others and lie in the data folder; ours are
invented, and none of their names occurs in a testbed world.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache

from rag_repro.arguments import path as as_path

from ...data import ENVIRONMENT
from ...plain import PlainError, from_json, text_of
from ...words import nearest
from ..reading import TEXTS, Template

FILE = "dragin_exemplars.jsonl"
OURS = "own"


def with_exemplars(template: Template, name: str | None) -> Template:
    """The template behind exemplars: a data set's of the paper, "own", or (None) as it is.

    Raises ValueError: an unknown name; no data folder, or no file of exemplars in it.
    """
    if name is None:
        return template
    own = [tuple(one.values()) for one in TEXTS["dragin_exemplars"]]
    pairs = own if name == OURS else _paper(name, os.environ.get(ENVIRONMENT))
    text = "".join(f"Question: {question}\nAnswer: {answer}\n\n" for question, answer in pairs)
    return replace(template, exemplars=text)


@lru_cache(maxsize=8)
def _paper(name: str, folder: str | None) -> tuple[tuple[str, str], ...]:
    if not folder:
        raise ValueError(
            f"exemplars of {name!r} lie in the data folder: set {ENVIRONMENT}, or take "
            f"exemplars: {OURS}"
        )
    path = as_path(folder) / FILE
    try:
        rows = [from_json(line) for line in text_of(path).splitlines() if line.strip()]
        held = [(row["dataset"], row["question"], row["answer"]) for row in rows]
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; take exemplars: {OURS}") from None
    except (PlainError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not a file of exemplars ({error})") from None
    known = dict.fromkeys(dataset for dataset, *_ in held)
    if name not in known:
        raise ValueError(
            f"there are no exemplars of {name!r}{nearest(name, [*known, OURS])}; "
            f"there are: {', '.join([*known, OURS])}"
        )
    return tuple((question, answer) for dataset, question, answer in held if dataset == name)
