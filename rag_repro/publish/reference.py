"""The reference: a page a room, its text from the docstrings.

`pages` writes the list of modules, `setup` (a Sphinx extension) has Sphinx's autodoc
fill it. Docstrings are plain words with `code` in single backticks; nothing
else in them has a meaning, so that none can break a build.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rag_repro.book_folders import BookFolders
from rag_repro.publish.templating import render
from rag_repro.study.setups import listing

# Room -> (its modules, what it is for), from the ground up, as the house is built.
ROOMS = {
    "library": (
        ("", "quick", "comparison", "plain", "words", "splitter", "places", "logs"),
        "From a question to its answer in a few lines.",
    ),
    "schema": (("schema",), "The words that all rooms share: passages, questions, calls, answers."),
    "evaluation": (("evaluation",), "Metrics, intervals, tests and verdicts."),
    "lm": (("lm",), "Readers and encoders, and the prompts that they are given."),
    "retrieval": (("retrieval",), "What finds passages for a query."),
    "data": (("data",), "Data sets: public ones, the invented worlds, your own."),
    "engine": (
        ("engine", "cache", "post"),
        "Runs methods of one question on many at once.",
    ),
    "methods": (("methods",), "Ways to answer a question, each as short as its paper."),
    "study": (("study",), "Conditions, records and the claims that they decide."),
    "training": (("training",), "What the papers train, trained here."),
    "analysis": (("analysis",), "Statistics of their own: scores in, plain values out."),
    "show": (("show",), "Tables, figures and traces: the grammar that chapters are written in."),
}
FOLDER = "reference"


def pages(places: BookFolders) -> dict[str, str]:
    """Path below book/ -> text, of every page of the reference."""
    package = places.root / "rag_repro"
    made = {f"{FOLDER}/index.md": render("reference_index", rooms=ROOMS)}
    for room, (names, purpose) in ROOMS.items():
        values = {"room": room, "purpose": purpose, "modules": _modules(package, names)}
        made[f"{FOLDER}/{room}.md"] = render("reference_room", methods=listing(), **values)
    return made


def _modules(package: Path, names: Sequence[str]) -> Iterator[str]:
    """The public modules of a room that have a docstring, packages before what is in them."""
    for name in names:
        paths = [package / f"{name or '__init__'}.py", *(package / (name or "-")).rglob("*.py")]
        by_parts = {}
        for path in filter(Path.is_file, paths):
            *folders, stem = path.relative_to(package.parent).with_suffix("").parts
            by_parts[*folders, *([] if stem == "__init__" else [stem])] = path
        for parts, path in sorted(by_parts.items()):
            private = any(part.startswith("_") for part in parts)
            if not private and ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))):
                yield ".".join(parts)


# ------------------------------------------------------------- as a Sphinx extension


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    for extension in ("sphinx.ext.autodoc", "sphinx.ext.viewcode"):
        app.setup_extension(extension)
    app.connect("config-inited", _configure)
    app.connect("autodoc-process-docstring", _docstring)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _configure(app: Any, config: Any) -> None:
    config.autodoc_member_order = "bysource"
    config.autodoc_typehints_format = "short"
    config.autodoc_preserve_defaults = True
    config.python_maximum_signature_line_length = 80
    config.toc_object_entries = False
    config.viewcode_follow_imported_members = False
    # Names in signatures link where they can: types of other packages have no page here.
    config.nitpick_ignore_regex = [*config.nitpick_ignore_regex, ("py:.*", ".*")]


def _docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = to_rst(lines)


_CODE = re.compile(r"(`+)(.+?)\1")
_MARK = re.compile(r"([\\*_|`<>])")
_START = re.compile(r"(\.\.|>>>|[-+=\\]|\w+[.)]|:[^:]+:|[-=~^\"'#:.]{2,})(\s|$|`)")


def to_rst(lines: Sequence[str]) -> list[str]:
    """A docstring's lines as reStructuredText that means just what is written.

    Paragraphs stay, with `code` as code; lines that begin with "- " are a list;
    a paragraph that is set in, or is a table, is shown as it stands.
    """
    made: list[str] = []
    for paragraph in re.split(r"\n[ \t]*\n", "\n".join(lines).strip("\n")):
        block = paragraph.splitlines()
        if not paragraph.strip():
            continue
        if all(line.startswith((" ", "|")) for line in block):
            made += ["::", "", *(f"    {line}" for line in block), ""]
            continue
        for item in re.split(r"\n(?=- )", paragraph):
            said = _escaped(" ".join(item.removeprefix("- ").split()))
            made += [f"- {said}" if item.startswith("- ") else said, ""]
    return made


def _escaped(text: str) -> str:
    """Text whose marks mean nothing, but for those of code."""
    made, at = ["\\ " if _START.match(text) else ""], 0
    for found in _CODE.finditer(text):
        code = found[2].strip()
        if not code or "`" in code:
            continue
        # Code must stand apart from what is around it, which a blank that is not shown does.
        before, after = text[: found.start()][-1:].strip(), text[found.end() :][:1].strip()
        made += [_MARK.sub(r"\\\1", text[at : found.start()]), "\\ " if before else ""]
        made += [f"``{code}``", "\\ " if after else ""]
        at = found.end()
    # Two colons at the end would announce a block of code.
    return re.sub(r"::$", r":\\:", "".join([*made, _MARK.sub(r"\\\1", text[at:])]))
