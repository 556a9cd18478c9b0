"""A chapter's parameters: declared once, in its tagged cell, and guarded.

The cell holds literals, one a line, a comment each. `chapter` is called in
the cell after it. It compares what the kernel was really told with what the
source declares, so that a misspelt name is refused under plain papermill too,
which only warns of it and runs on.
"""

from __future__ import annotations

import ast
import io
import json
import math
import os
import re
import tokenize
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any

from rag_repro.arguments import path as as_path
from rag_repro.book_folders import BookFolders, here
from rag_repro.methods.base import one_of
from rag_repro.plain import shortened
from rag_repro.words import nearest


class ParameterError(ValueError):
    """A parameter that a chapter does not know, lacks, or cannot take."""


# What a value must be: choices, a type, a range of integers, a pattern.
Rule = tuple | type | range | re.Pattern

HOUSE_RULES: Mapping[str, Rule] = {
    "tier": ("all", "testbed", "public"),
    "dataset": str,
    "reader": str,
    "retriever": str,
    "n_questions": range(1, 10_000_001),
    "threshold": float,
    "k": range(1, 1001),
    "top_n": range(1, 1001),
    "queries": range(1, 101),
    "tau": float,
    "live_calls": range(0, 1_000_001),
    "seed": range(0, 2**32),
    "device": re.compile(r"auto|cpu|mps|cuda(:\d+)?"),
    "batch_size": range(1, 4097),
}


@dataclass(frozen=True, slots=True)
class Declared:
    """One parameter as the source states it."""

    name: str
    default: Any
    comment: str


# ------------------------------------------------------------- the declaration


def parameters(name: str, places: BookFolders | None = None) -> dict[str, Declared]:
    """The parameters that chapter `name` declares, in order.

    Raises ParameterError where its source has not exactly one cell tagged
    `parameters`, or where that cell holds anything but commented literals.
    """
    from rag_repro.publish.notebook_pairs import read_source

    source = (places or here()).source(name)
    cells = [
        cell for cell in read_source(source).cells if "parameters" in cell.metadata.get("tags", [])
    ]
    if len(cells) != 1:
        raise ParameterError(f"{source.name}: {len(cells)} cells tagged `parameters`, expected 1")
    try:
        return {one.name: one for one in _declared(cells[0].source, source.name)}
    except ParameterError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError) as error:
        # What Python's own parser makes of a cell that is no Python.
        raise ParameterError(
            f"{source.name}: the parameters cell is no Python ({shortened(error)})"
        ) from error


def _declared(text: str, place: str) -> Iterator[Declared]:
    comments = _comments(text)
    seen = set()
    for statement in ast.parse(text).body:
        name, value = _assignment(statement, place)
        if name in seen:
            raise ParameterError(f"{place}: parameter {name!r} is declared twice")
        if name == "changed" or name.startswith("_"):
            raise ParameterError(f"{place}: {name!r} cannot be the name of a parameter")
        # The comment stands at the end of the statement, or on the line above it.
        comment = comments.get((statement.end_lineno, False)) or comments.get(
            (statement.lineno - 1, True)
        )
        if not comment:
            raise ParameterError(f"{place}: parameter {name!r} has no comment that explains it")
        seen.add(name)
        yield Declared(name, value, comment)


def _assignment(statement: ast.stmt, place: str) -> tuple[str, Any]:
    if isinstance(statement, ast.AnnAssign):
        targets, value = [statement.target], statement.value
    elif isinstance(statement, ast.Assign):
        targets, value = statement.targets, statement.value
    else:
        targets, value = [], None
    if len(targets) == 1 and isinstance(targets[0], ast.Name) and value is not None:
        try:
            return targets[0].id, ast.literal_eval(value)
        except (ValueError, TypeError):
            pass  # falls through to the refusal below, as every other statement
    raise ParameterError(
        f"{place}: line {statement.lineno} of the parameters cell is not `name = literal`: "
        f"{ast.unparse(statement)}"
    )


def _comments(text: str) -> dict[tuple[int, bool], str]:
    """(line, whether the line is nothing else) -> comment."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {
        (t.start[0], t.line.lstrip().startswith("#")): t.string.lstrip("# ")
        for t in tokens
        if t.type == tokenize.COMMENT
    }


# ------------------------------------------------------------------- the guard


def chapter(
    name: str,
    namespace: MutableMapping[str, Any],
    paper: str | None = None,
    /,
    *,
    exhibits: Sequence[str] = (),
    elsewhere: Sequence[str] = (),
    folded: Sequence[str] = (),
    **rules: Rule,
) -> Any:
    """The chapter's parameters, checked and frozen; with a paper also what it shows of it.

    Call it in the cell after them:
    `run = chapter("11_drrag_recall", globals(), "drrag", exhibits=("table5", "roles"))`.
    `namespace` is the notebook's `globals()`. `rules` add to the house's rules
    and to the type of each default: a tuple of choices, a type, a range, or a
    compiled pattern; where the default is a list they hold for its items. The
    result has an attribute per parameter, and `changed`: the names of those that differ from their
    defaults, in order. With a paper it is a `show.chapter.Chapter`, which takes `exhibits`,
    `elsewhere` and `folded`. Raises ParameterError.
    """
    declared = parameters(name)
    for rule in rules:
        if rule not in declared:
            raise ParameterError(f"{name}: there is a rule for {_unknown(rule, declared)}")
    for told in _injected(namespace.get("In", [])):
        if told not in declared:
            raise ParameterError(f"{name}: {_unknown(told, declared)}")
    values = {}
    for one in declared.values():
        if one.name not in namespace:
            raise ParameterError(f"{name}: {one.name!r} is not set; run the parameters cell first")
        rule = rules.get(one.name, HOUSE_RULES.get(one.name, type(one.default)))
        values[one.name] = _checked(one, namespace[one.name], rule, name)
    run = _freeze(values, declared)
    if paper is None:
        return run
    from rag_repro.show.chapter import Chapter

    return Chapter(paper, run, here().root, exhibits=exhibits, elsewhere=elsewhere, folded=folded)


def override(
    name: str, given: Mapping[str, Any], places: BookFolders | None = None
) -> dict[str, Any]:
    """`given` for papermill: what `chapter` would refuse is refused before a kernel starts, and so
    is a name that no data set, reader, retriever, paper, prompt or device has. A path is that of
    the caller's folder, and becomes one that the kernel finds as well."""
    places = places or here()
    declared, guard = parameters(name, places), _guard(places.source(name))
    rules = {one.arg: _rule(one.value) for one in guard.keywords} if guard else {}
    given = {one: _full_path(one, value) for one, value in given.items()}
    for one, value in given.items():
        if one not in declared:
            raise ParameterError(f"{name}: {_unknown(one, declared)}")
        try:  # papermill writes it into a cell, and we into the executed copy
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError):
            raise ParameterError(
                f"{name}: {one} = {_cut(value)} cannot be passed on; give text, a finite number, "
                "true, false, null or a list of these"
            ) from None
        rule = rules.get(one, HOUSE_RULES.get(one, type(declared[one].default)))
        if rule is not None:
            _checked(declared[one], value, rule, name)
        if value != declared[one].default:
            try:
                _check_name(one, value)
            except ValueError as error:
                raise ParameterError(f"{name}: {one} = {_cut(value)}: {error}") from error
    # The kernel has another folder than who gave the path.
    from rag_repro.data import absolute

    if isinstance(given.get("dataset"), str):
        given["dataset"] = absolute(given["dataset"])
    # Kernels start in notebooks/. A page of what lies in the checkout names no place of this disk.
    inside, above = f"{places.root}{os.sep}", f"..{os.sep}"
    return {k: v.replace(inside, above) if isinstance(v, str) else v for k, v in given.items()}


def _guard(source: Path) -> ast.Call | None:
    """The source's call of `chapter`; None where there is none that Python can read."""
    from rag_repro.publish.notebook_pairs import read_source

    text = "\n".join(c.source for c in read_source(source).cells if "chapter(" in c.source)
    try:
        nodes = [*ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # the kernel will say what is wrong
    calls = (node for node in nodes if isinstance(node, ast.Call))
    return next((c for c in calls if getattr(c.func, "id", None) == "chapter"), None)


def _rule(node: ast.expr) -> Rule | None:
    """What stands in the source, if it is `range` of numbers or a tuple of literals."""
    try:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return range(*map(ast.literal_eval, node.args)) if node.func.id == "range" else None
        value = ast.literal_eval(node)
    except (TypeError, ValueError):
        return None
    return value if isinstance(value, tuple) else None


def _full_path(kind: str, value: Any) -> Any:
    """Of a value that names a folder by a relative path, the one from the root of the disk."""
    if kind == "folder" and isinstance(value, str) and value:
        return str(as_path(value).absolute())
    if kind in ("reader", "retriever") and "/" in str(value):
        head, path = re.fullmatch(r"(dense:)?(.*)", str(value), re.DOTALL).groups("")
        return f"{head}{as_path(path).absolute()}" if as_path(path).is_dir() else value
    return value


def _check_name(kind: str, value: str) -> None:
    """A ValueError, with the nearest name, for what nothing of the kind is called."""
    from rag_repro import data
    from rag_repro.data import own_files
    from rag_repro.methods import reading
    from rag_repro.study import names, papers

    if kind == "folder" or (kind == "dataset" and value.startswith(data.FOLDER)):
        own_files.existing(as_path(value.removeprefix(data.FOLDER)))
    elif kind == "dataset":
        data.check_name(value)
        data.check_at_hand(value)
    elif kind == "reader":
        names.check_reader(value)
        if Path(value).is_absolute() and not Path(value).is_dir():
            raise ValueError("there is no such folder")
    elif kind == "paper":
        one_of("paper", value, ["all", *(p for p in papers.names() if papers.load(p).claims)])
    elif kind == "prompt":
        one_of("prompt", value, reading.PROMPTS)
    elif kind == "retriever":
        names.check_retriever(value)
    elif kind == "device" and value != "cpu":
        from rag_repro.lm.load import device_of

        device_of(value)


def _unknown(name: str, declared: Mapping[str, Declared]) -> str:
    known = ", ".join(declared)
    return f"unknown parameter {name!r}{nearest(name, declared)} (this chapter knows {known})"


def parse_value(text: str) -> Any:
    """A value from the command line: a Python literal, true, false, null, or text."""
    words = {"true": True, "false": False, "null": None, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text  # no literal, or one that Python itself cannot make: {[]: 1}


def _injected(history: Sequence[str]) -> list[str]:
    """The names that papermill's cell assigns, which begins with the comment "# Parameters"."""
    cells = [text for text in history if text.startswith("# Parameters\n")]
    statements = ast.parse(cells[-1]).body if cells else []
    return [one.targets[0].id for one in statements if isinstance(one, ast.Assign)]


def _checked(one: Declared, value: Any, rule: Rule, place: str) -> Any:
    if type(value) is type(one.default) and value == one.default:
        return tuple(value) if isinstance(value, list) else value
    if isinstance(one.default, list | tuple):
        if not isinstance(value, list | tuple):
            raise ParameterError(f"{place}: {one.name} = {_cut(value)} must be a list")
        if isinstance(rule, type) and issubclass(rule, list | tuple):
            rule = type(one.default[0]) if one.default else str
        for item in value:
            _obey(one.name, item, rule, place)
        return tuple(value)
    _obey(one.name, value, rule, place)
    return value


def _obey(name: str, value: Any, rule: Rule, place: str) -> None:
    """Raise ParameterError where `value` breaks `rule`; says what would do."""
    if isinstance(rule, tuple):
        wanted, holds = "", value in rule
        if not holds:
            wanted = f"one of {', '.join(map(repr, rule))}{nearest(value, rule)}"
    elif isinstance(rule, range):
        steps = f" in steps of {rule.step}" if rule.step > 1 else ""
        wanted = f"a whole number from {rule[0]} to {rule[-1]}{steps}"
        holds = type(value) is int and value in rule
    elif isinstance(rule, re.Pattern):
        wanted = f"text like {rule.pattern}"
        holds = isinstance(value, str) and rule.fullmatch(value) is not None
    else:
        wanted = f"of type {rule.__name__}"
        # True is an int to Python; a number of questions it is not.
        if rule is float:
            wanted = "a finite number"
            holds = type(value) in (int, float) and abs(value) < 2**63 and math.isfinite(value)
        elif rule in (int, bool):
            holds = type(value) is rule and abs(value) < 2**63
        else:
            holds = rule is type(None) or isinstance(value, rule)
    if not holds:
        raise ParameterError(f"{place}: {name} = {_cut(value)} must be {wanted}")


def _cut(value: Any) -> str:
    return shortened(repr(value), 60)


def _freeze(values: dict[str, Any], declared: Mapping[str, Declared]) -> Any:
    def same(one: Declared) -> bool:
        default = tuple(one.default) if isinstance(one.default, list) else one.default
        return values[one.name] == default and type(values[one.name]) is type(default)

    changed = tuple(one.name for one in declared.values() if not same(one))
    fields = [(name, Any) for name in values]
    fields.append(("changed", tuple, field(default=changed)))
    namespace = {"_repr_html_": lambda self: _table(self, declared)}
    return make_dataclass("Parameters", fields, frozen=True, namespace=namespace)(**values)


def _table(run: Any, declared: Mapping[str, Declared]) -> str:
    """Name, value and meaning of each parameter; changed ones in bold."""
    from rag_repro.show.escape import html

    rows = [[one.name, repr(getattr(run, one.name)), one.comment] for one in declared.values()]
    return html("run_parameters", rows=rows, changed=run.changed)


def guarded_name(source: Path) -> str | None:
    """The name under which a chapter calls `chapter`; None where it does not."""
    match _guard(source):
        case ast.Call(args=[ast.Constant(value=name), ast.Call(func=ast.Name(id="globals")), *_]):
            return name
    return None
