"""The workflow for GitHub: the two commands and the pages, and no more rights than that."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from rag_repro.book_folders import BookFolders

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / ".github" / "workflows" / "book.yml"
TEXT = FILE.read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


class Loader(yaml.SafeLoader):
    """YAML as GitHub reads it: `on` is a word, not a truth value."""


Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:bool"]
    for letter, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
FLOW = yaml.load(TEXT, Loader)
BUILD, PUBLISH = FLOW["jobs"]["build"], FLOW["jobs"]["publish"]
STEPS = [step for job in FLOW["jobs"].values() for step in job["steps"]]


def step(job, action):
    [found] = [one for one in job["steps"] if one.get("uses", "").startswith(f"actions/{action}@")]
    return found


def test_it_runs_the_two_commands_of_the_makefile_and_nothing_else():
    run = [shlex.split(one["run"]) for one in STEPS if "run" in one]
    assert run == [["make", "test"], ["make", "book"]]
    [targets] = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.M)
    for _, target in run:
        assert target in targets.split()
        assert re.search(rf"^{target}:", MAKEFILE, flags=re.M)
        assert f"make {target} " in (ROOT / "README.md").read_text(encoding="utf-8")


def test_torch_is_the_makefiles_without_cuda():
    [pin] = re.findall(r"^TORCH \?= (\S+)$", MAKEFILE, flags=re.M)  # ?=: the environment's wins
    asked, option, index = FLOW["env"]["TORCH"].split()
    assert (asked, option) == (pin, "--index-url")
    assert index == "https://download.pytorch.org/whl/cpu"
    assert FLOW["env"]["TORCH"] in (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_is_the_oldest_that_the_package_allows_and_pips_files_are_kept():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    given = step(BUILD, "setup-python")["with"]
    # The newest patch of the oldest minor version that the project takes.
    oldest = project["requires-python"].removeprefix(">=")
    assert given["python-version"] == oldest.rsplit(".", 1)[0]
    assert given["cache"] == "pip"
    for name in given["cache-dependency-path"].split():
        assert (ROOT / name).is_file()


def test_what_is_published_is_the_built_book_from_the_main_branch_alone():
    places = BookFolders(ROOT)
    assert ROOT / step(BUILD, "upload-pages-artifact")["with"]["path"] == places.html
    assert set(FLOW["on"]) == {"push", "pull_request"}
    assert FLOW["on"]["push"]["branches"] == ["main"]
    assert PUBLISH["needs"] == "build"
    condition = "github.event_name == 'push' && github.ref == 'refs/heads/main'"
    assert PUBLISH["if"] == condition
    deployed = step(PUBLISH, "deploy-pages")
    assert PUBLISH["environment"]["url"] == f"${{{{ steps.{deployed['id']}.outputs.page_url }}}}"
    assert PUBLISH["steps"].index(step(PUBLISH, "configure-pages")) == 0


def test_it_asks_for_no_more_than_it_needs():
    assert FLOW["permissions"] == {"contents": "read"}
    assert "permissions" not in BUILD
    assert PUBLISH["permissions"] == {"pages": "write", "id-token": "write"}
    assert step(BUILD, "checkout")["with"]["persist-credentials"] == "false"
    assert not re.search(r"secrets\.|pull_request_target|github\.token", TEXT)
    # What a pull request names (title, branch, author) never reaches a shell.
    assert not any("${{" in one.get("run", "") for one in STEPS)


@pytest.mark.parametrize("uses", re.findall(r"uses:(.*)", TEXT))
def test_every_action_is_githubs_own_and_pinned_by_commit_with_its_version(uses):
    """Whoever owns an action can move its tags; nobody can move a commit."""
    assert re.fullmatch(r" actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", uses)


def test_no_other_workflow_is_there_whose_actions_nobody_checks():
    """Also of other folders of .github, as composite actions."""
    assert [*(ROOT / ".github").rglob("*.y*ml")] == [FILE]


def test_one_run_a_branch_at_a_time_and_no_publishing_is_cut_off():
    assert FLOW["concurrency"]["group"] == "book-${{ github.ref }}"
    cancel = FLOW["concurrency"]["cancel-in-progress"]
    assert cancel == "${{ github.event_name == 'pull_request' }}"
    assert all(job["timeout-minutes"] for job in FLOW["jobs"].values())
