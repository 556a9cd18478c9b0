"""A paper in miniature, and records made to order for it."""

from __future__ import annotations

import numpy as np

from rag_repro.study import papers, records
from rag_repro.study.records import open_record

PAPER = """
title: A paper in miniature
short: Mini
cite: mini2026
exhibits:
  table1:
    title: Recall by strategy
    place: table 1
    metrics: [recall, passages]
    values: table1.csv
    methods:
      sm: {label: Similarity, run: single_step, retriever: minilm}
      qdc: {label: Concatenation, run: qdc, retriever: minilm, baseline: sm}
      cfs: {label: Forward selection, waits: needs a classifier}
    grids:
      - tier: public
        datasets: [hotpotqa, musique]
        methods: [sm, qdc, cfs]
        settings: {k: [3, 4]}
      - tier: testbed
        datasets: [world-B]
        methods: [sm, qdc]
        settings: {k: [3, 4]}
"""

CLAIM = """
- id: mini.c01
  place: abstract
  claim: Concatenation finds more.
  exhibit: mini.table1
  paper_numbers: "+4"
  support: yes
  support_note: ""
  test: paired
  n_needed: "100"
  scale: yes
  contrasts:
"""

TABLE = """dataset,k,method,metric,value,note
hotpotqa,3,sm,recall,80.33,
hotpotqa,3,qdc,recall,86.12,
hotpotqa,3,cfs,recall,88.89,
hotpotqa,3,qdc,passages,3.00,suspect
"""


def paper(tmp_path, contrasts: str, table: str = TABLE):
    """A paper folder called `mini` with one claim and these contrasts (YAML items)."""
    folder = tmp_path / "mini"
    folder.mkdir(exist_ok=True)
    (folder / "paper.yaml").write_text(PAPER)
    body = "".join(f"    {line}\n" for line in contrasts.strip().splitlines())
    claim = CLAIM.replace("support: yes", 'support: "yes"').replace("scale: yes", 'scale: "yes"')
    (folder / "claims.yaml").write_text(claim + body if body else claim + "    []\n")
    (folder / "table1.csv").write_text(table)
    return papers.read(folder)


def fill(root, paper, recall, *, n=100, tier="public", kinds=("bridge",), more=lambda i: {}):
    """Records for every cell: recall(method, dataset, k, rng) -> n values in [0, 1].

    more: of the i-th question, what its lines hold besides.
    """
    for cell in paper.exhibits["table1"].cells(tier):
        asks = cell.keys["dataset"]
        rng = np.random.default_rng(5)
        values = recall(cell.keys["method"], cell.keys["dataset"], cell.keys["k"], rng)
        with open_record(root, cell.condition, {}) as record:
            for i, value in enumerate(np.broadcast_to(values, n)):
                record.append(
                    {
                        "id": f"q{i}-{asks}",
                        "kind": kinds[i % len(kinds)],
                        "cluster": f"q{i}-{asks}",
                        "hits": [],
                        "scores": {"recall": float(value), "passages": float(cell.keys["k"])},
                        **more(i),
                    }
                )


def number(line):
    """Which question of its data set a line of `fill` is of, from 0."""
    return int(line["id"].partition("-")[0].removeprefix("q"))


def coin(share, n, rng):
    """n zeros and ones, exactly round(share * n) ones, in random order."""
    ones = np.zeros(n)
    ones[: round(share * n)] = 1
    return rng.permutation(ones)


def rewrite(root, condition, change):
    """The condition's record with each line changed (None: left out)."""
    record = records.load(root, condition)
    records.find(root, condition).unlink()
    with open_record(root, condition, record.header["fingerprint"]) as writer:
        for line in map(change, map(dict, record.lines)):
            if line is not None:
                writer.append(line)
