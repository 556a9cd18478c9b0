"""Shared fixtures: the real data's folder; and which files are slow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Several seconds of one core and more, each file; single tests are marked where they stand.
SLOW = {
    "report/test_audit.py",
    "study/test_claims_turn.py",
    "study/test_committed_pairs.py",
    "study/test_erm4_claims.py",
    "study/test_fuzz.py",
    "study/test_r2ag_claims.py",
    "study/test_record_faults.py",
    "study/test_timing.py",
    "test_bars.py",
    "test_benchmarks_bm25.py",
    "test_benchmarks_dynamic.py",
    "test_benchmarks_pairs.py",
    "test_benchmarks_reader.py",
    "test_cli.py",
    "test_cli_safety.py",
    "test_engine_local.py",
    "test_misspelt.py",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.relative_to(Path(__file__).parent).as_posix() in SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data; tests that ask for it skip where there is none."""
    folder = os.environ.get("RAG_REPRO_DATA")
    if not folder:
        pytest.skip("RAG_REPRO_DATA names no folder of real data")
    return Path(folder)
