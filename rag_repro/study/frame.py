"""All scores as one table: a row per condition and question, a column per metric."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_repro.arguments import path as as_path
from rag_repro.evaluation.metrics import METRICS, get
from rag_repro.study import manifests, records, sealed
from rag_repro.study.lines import READ, RecordError

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("dataset", "split", "method", "retriever", "reader", "seed")
NUMBERS = ("seed", "k")
QUESTION = ("id", "cluster", "kind", "hops")
STORED = tuple(name for name, metric in METRICS.items() if metric.needs != "line")


def results(folder: Path | str | None = None, metrics: Sequence[str] = STORED) -> pd.DataFrame:
    """The committed records' scores, or those of another folder of records, as a pandas DataFrame.

    A row per condition and question. Columns of the condition: `condition` (its hash), `dataset`,
    `split`, `method`, `retriever`, `reader`, `seed`, `k` (both whole numbers, NA where it has
    none), `settings` (all of them, as JSON) and `device` ("cpu", or the GPU's name, of the last
    run). Columns of the question: `id`, `cluster` (what is resampled together), `kind`, `hops`,
    `failed` (an error ended it, and it has the scores of no answer). Then one column of floats per
    metric: percentages in points (0 to 100), all else in its own unit, NaN where the question has
    no such score.
    metrics: by default those of answers and hits; others, as ["em", "retrievals"], by name, and all
    by `evaluation.metrics.METRICS` (400 MB).

    Mean EM by method and kind: `results().groupby(["method", "kind"], observed=True).em.mean()`.
    Parts of a record that are not joined are left out; a record in JSON lines is read in place of
    the sealed one of its name. Raises RecordError for a damaged record, and for no folder.
    """
    import pandas as pd

    from rag_repro.book_folders import here

    root = here().records if folder is None else as_path(folder)
    if not root.is_dir():
        raise RecordError(f"there is no folder {root}; name one with records, as results/records")
    sys.audit(READ, f"{root}/")
    told = {
        path: json.loads(row["header"])["identity"] for path, row in sealed.conditions(root).items()
    }
    texts = ["condition", *QUESTION]
    wanted = {sealed.column_of(get(name).name): get(name) for name in metrics}
    tables = [
        file.table(name for name in file.fields if name in (*wanted, *texts, "error"))
        for path in sorted({sealed.file_of(root, path) for path in told})
        if (file := sealed.opened(path))
    ]
    for path in sorted(records.unsealed_records(root)):
        if records.SHARD not in path and (record := records.at(root, path)) is not None:
            name = path.rpartition("/")[2]
            tables = [
                t.filter(pc.field("condition") != name) if path in told else t for t in tables
            ]
            tables.append(sealed.rows_of(name, record.lines))
            told[path] = record.header["identity"]
    if not tables:
        of_condition = ("condition", *KEYS, "k", "settings", "device")
        return pd.DataFrame(columns=[*of_condition, *QUESTION, "failed", *metrics])
    frame = pa.concat_tables(tables, promote_options="default").to_pandas(categories=texts)
    names = frame["condition"].cat.categories
    by_name = {path.rpartition("/")[2]: path for path in told}
    facts = pd.DataFrame([_facts(root, by_name[name], told[by_name[name]]) for name in names])
    codes = frame["condition"].cat.codes.to_numpy()
    columns: dict[str, Any] = {
        name: pd.array(facts[name], "Int64" if name in NUMBERS else "category").take(codes)
        for name in facts.columns
    }
    columns |= {name: frame[name] for name in ("id", "cluster")}
    for name, kind in (("kind", "category"), ("hops", "Int64")):
        values = [json.loads(text) for text in frame[name].cat.categories]  # -1, the last: None
        columns[name] = pd.array([*values, None], kind).take(frame[name].cat.codes.to_numpy())
    columns["failed"] = frame["error"].notna() if "error" in frame else False
    for stored, metric in wanted.items():
        there = stored in frame
        columns[metric.name] = frame[stored].to_numpy() * metric.scale if there else np.nan
    return pd.DataFrame(columns, copy=False)


def _facts(root: Path, path: str, identity: Mapping[str, Any]) -> dict[str, Any]:
    """What stands in each row of a condition."""
    settings, entries = identity["settings"], manifests.at(root, path)
    device = ", ".join(entries[-1]["machine"].split(", ")[3:]) or "cpu" if entries else None
    return {
        "condition": path[-12:],
        **{name: identity[name] for name in KEYS},
        "k": settings.get("k"),
        "settings": json.dumps(settings, sort_keys=True),
        "device": device,  # of the last run; None: no manifest tells
    }
