"""All scores as one table: a row per condition and question, a column per metric."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rag_repro.evaluation.metrics import METRICS
from rag_repro.study import manifests, records, sealed

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("dataset", "split", "method", "retriever", "reader", "seed")
QUESTION = ("id", "cluster", "kind", "hops")


def results(folder: Path | None = None) -> pd.DataFrame:
    """The committed records' scores, or those of another folder of records, as a pandas DataFrame.

    A row per condition and question. Columns of the condition: `condition` (its hash), `dataset`,
    `split`, `method`, `retriever`, `reader`, `seed`, `k`, `settings` (all of them, as JSON) and
    `device` ("cpu", or the GPU's name, of the last run). Columns of the question: `id`, `cluster`
    (what is resampled together), `kind`, `hops`. Then one column of floats per metric: percentages
    in points (0 to 100), all else in its own unit, NaN where the question has no such score.

    Mean EM by method and kind: `results().groupby(["method", "kind"], observed=True).em.mean()`.
    Raises RecordError for a damaged record.
    """
    if folder is None:
        from rag_repro.publish.places import here

        folder = here().records
    return load(folder)


def load(root: Path) -> pd.DataFrame:
    """As `results`, of the records below `root`. Parts of a record that are not joined are left
    out; a record in JSON lines is read in place of the sealed one of its name.
    """
    import pandas as pd

    told = {
        path: json.loads(row["header"])["identity"] for path, row in sealed.conditions(root).items()
    }
    tables = [
        file.table(n for n in file.fields if "." in n or n in (*QUESTION, "condition"))
        for path in sorted({sealed.file_of(root, path) for path in told})
        if (file := sealed.opened(path))
    ]
    for path in sorted(records.beside(root)):
        if records.SHARD not in path and (record := records.at(root, path)) is not None:
            name = path.rpartition("/")[2]
            tables = [
                t.filter(pc.field("condition") != name) if path in told else t for t in tables
            ]
            tables.append(sealed.rows_of(name, record.lines))
            told[path] = record.header["identity"]
    if not tables:
        return pd.DataFrame(columns=["condition", *KEYS, "k", "settings", "device", *QUESTION])
    texts = ["condition", *QUESTION]
    frame = pa.concat_tables(tables, promote_options="default").to_pandas(categories=texts)
    names = frame["condition"].cat.categories
    by_name = {path.rpartition("/")[2]: path for path in told}
    facts = pd.DataFrame([_facts(root, by_name[name], told[by_name[name]]) for name in names])
    codes = frame["condition"].cat.codes.to_numpy()
    columns: dict[str, Any] = {
        name: pd.Categorical(facts[name]).take(codes) for name in facts.columns
    }
    columns |= {name: frame[name] for name in ("id", "cluster")}
    for name, kind in (("kind", "category"), ("hops", "Int64")):
        values = [json.loads(text) for text in frame[name].cat.categories]  # -1, the last: None
        columns[name] = pd.array([*values, None], kind).take(frame[name].cat.codes.to_numpy())
    for name, metric in METRICS.items():
        if (stored := sealed.column_of(name)) in frame:
            columns[name] = frame[stored] * metric.scale
    return pd.DataFrame(columns)


def _facts(root: Path, path: str, identity: Mapping[str, Any]) -> dict[str, Any]:
    """What stands in each row of a condition."""
    settings = identity["settings"]
    return {
        "condition": path[-12:],
        **{name: identity[name] for name in KEYS},
        "k": settings.get("k"),
        "settings": json.dumps(settings, sort_keys=True),
        "device": _device(manifests.at(root, path)),
    }


def _device(entries: Sequence[Mapping[str, Any]]) -> str | None:
    """ "cpu" or the GPU's name, of the last run; None: no manifest tells."""
    if not entries:
        return None
    return ", ".join(entries[-1]["machine"].split(", ")[3:]) or "cpu"
