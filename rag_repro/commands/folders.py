"""Where commands read and write."""

from __future__ import annotations

import argparse
from pathlib import Path


def results_of(arguments: argparse.Namespace) -> Path:
    """The folder of records: the one that is given, or the checkout's."""
    from ..publish.places import here

    return arguments.results or here().records
