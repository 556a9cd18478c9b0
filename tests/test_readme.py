"""README.md: its commands run as they are written, in a clone without data."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rag_repro import cli

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.S)


def commands() -> list[str]:
    """Each line of a shell block, and each inline command that has no place to fill."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    inline = re.findall(r"`(rag-repro [^`]+)`", TEXT)
    every = [re.sub(r"\s+#.*", "", line).strip() for line in (*lines, *inline)]
    return [c for c in dict.fromkeys(every) if c and not re.search(r"\b[A-Z]{4,}\b|\.\.\.", c)]


def test_it_says_what_was_found_as_the_front_page_does():
    front = (ROOT / "book/index.md").read_text(encoding="utf-8")
    [found] = re.findall(r"\*\*Found so far\.\*\* (.*?) \{numref\}", front, re.S)
    assert " ".join(found.split()) in " ".join(TEXT.split())


def test_its_parts_stand_in_the_order_of_who_reads_them():
    heads = re.findall(r"^## (.*)$", TEXT, re.M)
    assert heads == [
        "What was found",
        "Two commands",
        "Use the methods",
        "Read",
        "Run it again",
        "GPU and clusters",
        "Cite",
    ]


def test_the_quick_starts_are_eight_lines_at_most():
    for code in blocks("python"):
        assert len([line for line in code.splitlines() if line.strip()]) <= 8


@pytest.mark.slow
def test_the_quick_start_runs_as_written_and_prints_what_is_shown():
    code, printed = blocks("python")[0], blocks("text")[0]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


LONG = {"rag-repro data fetch hotpotqa", "rag-repro chapter 92"}
"""One needs a network; chapter 92 is executed by the tests of the book."""


@pytest.mark.slow
@pytest.mark.parametrize("command", commands())
def test_a_command_runs_word_for_word(command, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("RAG_REPRO_DATA", raising=False)
    monkeypatch.chdir(ROOT)
    first, *words = shlex.split(command)
    if first == "make":
        target = re.compile(rf"^{words[0]}:", re.M)
        assert target.search((ROOT / "Makefile").read_text(encoding="utf-8"))
        return
    assert first == "rag-repro"
    if command in LONG:
        words.append("--help")
    if words[0] == "compare-methods":  # its records go where it is called
        for name in ("notebooks", "artifacts"):
            os.symlink(ROOT / name, tmp_path / name)
        monkeypatch.chdir(tmp_path)
    try:
        status = cli.main(words)
    except SystemExit as ended:  # --help
        status = ended.code
    assert status == 0, capsys.readouterr().err
