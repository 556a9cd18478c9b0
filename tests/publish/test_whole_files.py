"""Every file that replaces another is written whole."""

from __future__ import annotations

import ast
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rag_repro import digest

PACKAGE = Path(digest.__file__).parent
# Who writes in another way, and why that leaves no half file under a name that counts.
OTHERWISE = {
    "digest.py": "the one function itself",
    "cli.py": "the null device",
    "data/archives.py": "a copy that is moved when it is whole",
    "study/files.py": "locks, which are empty",
    "retrieval/interface.py": "into a folder that is renamed when it is whole",
    "retrieval/dense.py": "the same, called by the store",
    "lm/convert.py": "the same",
    "show/picture.py": "into memory",
}
WRITERS = {"write_text", "write_bytes", "savefig", "to_parquet", "save_file"}
WRITERS |= {"copyfile", "copy2", "copytree"}


def writes(tree: ast.AST) -> list[int]:
    """Lines that write a file in place: `write_text`, `open(..., "w")`, and arrays' own writers."""
    found = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        given = [a.value for a in [*call.args, *(k.value for k in call.keywords)]
                 if isinstance(a, ast.Constant) and isinstance(a.value, str)]  # fmt: skip
        opened = name == "open" and any(mode.strip("bt+") in ("w", "x") for mode in given)
        of = getattr(getattr(call.func, "value", None), "id", "")
        arrays = name in {"save", "savez"} and of == "np"
        copies = name == "copy" and of == "shutil"
        # `with replacing(path) as part`: what is written there takes the path's place.
        replaces = any(getattr(a, "id", "") == "part" for a in call.args)
        replaces |= of == "part"
        if (name in WRITERS or opened or arrays or copies) and not replaces:
            found.append(call.lineno)
    return found


def test_nothing_else_writes_over_a_file():
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        lines = writes(ast.parse(path.read_text(encoding="utf-8")))
        if lines and path.relative_to(PACKAGE).as_posix() not in OTHERWISE:
            wrong.append(f"{path.relative_to(PACKAGE)}: {lines}")
    assert wrong == []


def test_the_search_for_writers_finds_each_kind():
    code = """p.write_text('x'); open(p, 'w'); p.open('wb'); np.save(p, a); save_file(a, p)
shutil.copy(a, p); shutil.copyfile(a, p)
open(p); p.open('rb'); save_file(a, part); part.write_bytes(b''); a.copy()"""
    assert sorted(writes(ast.parse(code))) == [1] * 5 + [2] * 2


def test_a_file_is_replaced_whole_or_stays_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    digest.write_whole(path, "né")
    assert path.read_bytes() == "né".encode()

    def cut_off():
        with digest.replacing(path) as part:
            part.write_text("ha")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_off()
    assert path.read_bytes() == "né".encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]
    digest.write_whole(path, b"new")
    assert path.read_bytes() == b"new"


def test_two_that_write_a_file_at_once_do_not_write_into_one_another(tmp_path):
    path, first, second = tmp_path / "a.txt", threading.Event(), threading.Event()

    def other():
        with digest.replacing(path) as part:
            part.write_text("bb")
            first.set()
            assert second.wait(10)
            assert path.read_text() == "a"

    with ThreadPoolExecutor() as pool:
        done = pool.submit(other)
        assert first.wait(10)
        digest.write_whole(path, "a")
        second.set()
        done.result()
    assert path.read_text() == "bb"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_what_a_kill_left_half_is_removed_and_nothing_else(tmp_path):
    for name in ("a[1].7.part", "a[1].part.txt", "a1.7.part", "a[1]", "b.7.part"):
        (tmp_path / name).touch()
    digest.forget_parts(tmp_path / "a[1]")
    left = {entry.name for entry in tmp_path.iterdir()}
    assert left == {"a[1].part.txt", "a1.7.part", "a[1]", "b.7.part"}
