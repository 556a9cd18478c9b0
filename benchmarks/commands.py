"""What commands that only read cost: seconds and most memory, beside those of another commit.

    python -m benchmarks.commands --old 06b1f0d --json

Each command runs in a process of its own, over the records of its own commit. The sides take turns;
medians are printed. `seconds` pass on the clock, `cpu` are the processor's, which a busy machine
disturbs less, `mb` is the most memory held at once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
COMMANDS = {
    "claims": ("claims", "--format", "csv"),
    "status": ("status",),
    "exhibit": ("exhibit", "drrag.table5"),
}
MEASURED = ("seconds", "cpu", "mb")


def once(root: Path, command: Sequence[str]) -> dict[str, float]:
    """One run of the command line of a checkout, its output thrown away."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "rag_repro.cli", *command],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"rag-repro {' '.join(command)} failed in {root}; run it there")
    return {
        "seconds": time.perf_counter() - start,
        "cpu": used.ru_utime + used.ru_stime,
        "mb": used.ru_maxrss / 1024,
    }


def measure(
    roots: dict[str, Path], commands: dict[str, Sequence[str]], repeats: int
) -> dict[str, dict[str, dict[str, float]]]:
    """Command -> side -> median of each of `MEASURED`."""
    made = {}
    for name, command in commands.items():
        runs = [{side: once(root, command) for side, root in roots.items()} for _ in range(repeats)]
        made[name] = {
            side: {of: round(statistics.median(r[side][of] for r in runs), 1) for of in MEASURED}
            for side in roots
        }
    return made


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", help="another commit, which is checked out in a temporary folder")
    parser.add_argument("--command", action="append", choices=COMMANDS, help="only this one")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(argv)
    commands = {name: COMMANDS[name] for name in given.command or COMMANDS}
    with tempfile.TemporaryDirectory() as scratch:
        roots = {"now": HERE}
        git = ["git", "-C", str(HERE), "worktree"]
        if given.old:
            roots["old"] = Path(scratch) / "old"
            subprocess.run([*git, "add", "--detach", roots["old"], given.old], check=True)
        try:
            told = measure(roots, commands, given.repeats)
        finally:
            if given.old:
                subprocess.run([*git, "remove", "--force", roots["old"]], check=True)
    for name, sides in told.items():
        for side, values in sides.items():
            print(f"{name:8} {side:4}", *(f"{values[of]:8.1f} {of}" for of in MEASURED))
    if given.json:
        print(json.dumps(told))


if __name__ == "__main__":
    main()
