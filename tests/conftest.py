"""Shared fixtures: the real data's folder, and one tiny world."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data; tests that ask for it skip where there is none."""
    folder = os.environ.get("RAG_REPRO_DATA")
    if not folder:
        pytest.skip("RAG_REPRO_DATA names no folder of real data")
    return Path(folder)
