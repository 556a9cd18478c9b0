"""What names committed records: identities, and fingerprints of them and of services.

`python -m tests.golden.identities` writes the two files beside this one anew. They change only
where a note names the records that were made anew: a changed line means that the record under it
can no longer be found, continued or compared.
"""

from __future__ import annotations

import csv
import hashlib
import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from rag_repro.cache import CachedEncoder
from rag_repro.study import records, sealed
from rag_repro.study.conditions import Condition
from rag_repro.study.rescoring import condition_of
from rag_repro.study.services import Workshop

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RECORDS, SERVICES = HERE / "records.csv", HERE / "services.json"
FOLDERS = ("records", "times")
ENDING = ".jsonl.xz"


def headers(root: Path = ROOT) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Path below `results` and header of each committed record."""
    for folder in FOLDERS:
        base = root / "results" / folder
        roots = [base] if folder == "records" else sorted(p for p in base.iterdir() if p.is_dir())
        for one in roots:
            for path in records.paths(one):
                if header := _header(one, path):
                    name = (one / path).relative_to(root / "results").as_posix()
                    yield name + ENDING, json.loads(header)


def _header(root: Path, path: str) -> str | bytes | None:
    """Of a record in JSON lines the first one, of a sealed one what is stored of it; None: its run
    is not finished.
    """
    packed = root / (path + ENDING)
    if packed.is_file():
        with lzma.open(packed) as lines:
            return lines.readline()
    return sealed.conditions(root).get(path, {}).get("header")


def digest(facts: Mapping[str, Any]) -> str:
    """Sixteen hex digits of plain data."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def rows(root: Path = ROOT) -> list[dict[str, str]]:
    """One row per record: path, digest of its identity, digest of its fingerprint."""
    return [
        {"path": path, "identity": digest(head["identity"]), "made": digest(head["fingerprint"])}
        for path, head in headers(root)
    ]


def conditions(root: Path = ROOT) -> list[Condition]:
    """Those of the records, each once."""
    made = {
        found.hash: found for _, head in headers(root) for found in [condition_of(head["identity"])]
    }
    return list(made.values())


def services(made: list[Condition], cache: Path) -> dict[str, str]:
    """Fingerprints of all that these conditions name and that needs no file of real data.

    Corpora, questions, retrievers, encoders, readers and classifiers whose weights come with
    packages or lie in `artifacts/`. cache: a folder for indexes. No text is encoded: a
    fingerprint holds an encoder's own, never its vectors.
    """

    def constant(encoder: CachedEncoder, texts: list[str]) -> np.ndarray:
        return np.eye(1, 8, dtype=np.float32).repeat(len(texts), axis=0)

    found: dict[str, str] = {}
    with (
        patch.object(CachedEncoder, "encode", constant),
        patch.object(Workshop, "_indexes", cache / "indexes"),
    ):
        workshop = Workshop()
        for one in made:
            corpus = None
            if one.dataset.startswith("world-"):
                dataset = workshop.dataset(one.dataset, one.split)
                corpus = dataset.corpus
                found[f"corpus of {one.dataset}"] = corpus.sha256
                found[f"questions of {one.dataset}, {one.split}"] = dataset.questions_sha256
            needs = dict(one.configured.needs)
            needs |= {one.retriever: "retriever"} if one.retriever else {}
            needs |= {one.reader: "reader"} if one.reader else {}
            for name, kind in needs.items():
                over = f" over {one.dataset}" if kind == "retriever" or name == "lsa" else ""
                key = f"{kind} {name}{over}"
                if key not in found and _is_here(name, kind) and not (over and corpus is None):
                    found[key] = workshop.over_corpus(kind, name, corpus).fingerprint
    return dict(sorted(found.items()))


def _is_here(name: str, kind: str) -> bool:
    """Whether every checkout can make it with what `make setup` installs."""
    if kind == "reservoir":
        return False  # it holds vectors
    if kind == "retriever":
        return name != "minilm-l3"
    committed = {path.name for path in (ROOT / "artifacts").iterdir()}
    return name in committed | {"smollm2-135m", "minilm", "lsa"}


def main() -> None:
    import tempfile

    with RECORDS.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, ["path", "identity", "made"], lineterminator="\n")
        table.writeheader()
        table.writerows(rows())
    with tempfile.TemporaryDirectory() as cache:
        told = services(conditions(), Path(cache))
    SERVICES.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
