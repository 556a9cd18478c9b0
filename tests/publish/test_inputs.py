from __future__ import annotations

from rag_repro.publish.inputs import changed, hash_of


def test_the_listing_of_results_counts_records_and_no_lock(tmp_path):
    (tmp_path / "results/records").mkdir(parents=True)
    (tmp_path / "results/records/one.jsonl.xz").touch()
    before = {"results/": hash_of(tmp_path, "results/")}
    for name in ("results/records/one.lock", "results/local/x", "results/.hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert changed(tmp_path, before, tmp_path / "own") == []
    (tmp_path / "results/records/two.jsonl.xz").touch()
    assert changed(tmp_path, before, tmp_path / "own") == ["results/"]
