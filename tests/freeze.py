"""Write what the book shows of `results/` as text, and compare two such folders.

    python tests/freeze.py write FOLDER [PART ...]    # of the checkout that PYTHONPATH names
    python tests/freeze.py compare BEFORE AFTER

PART: "claims", "exhibits", "pages" or a chapter's name; none: all. A chapter's cells are executed
here, without a kernel and without a model: a cell that would load one, and those that need what it
would have made, are written as skipped. Whoever changes how results are stored, read or drawn runs
this before and after: the two folders must be equal.
"""

from __future__ import annotations

import ast
import filecmp
import hashlib
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Any

PARTS = ("claims", "exhibits", "pages")


class ModelWantedError(RuntimeError):
    """A cell that would load a model's weights."""


def shown(value: Any) -> str:
    """What a page shows of a value, as text: a table's cells, a figure's data."""
    kind = type(value).__name__
    if hasattr(value, "body") and hasattr(value, "head"):
        lines = [f"# {value.caption}", value.head, *value.body]
        made = "\n".join(
            line if isinstance(line, str) else " | ".join(map(str, line)) for line in lines
        )
        data = value.data.text if value.data else ""
        return f"{kind}\n{made}\n{data}" + (f"\n{shown(value.more)}" if value.more else "")
    if hasattr(value, "svg"):
        data = value.data.text if value.data else ""
        return (
            f"{kind} {hashlib.sha256(value.svg).hexdigest()}\n{value.caption}\n{value.alt}\n{data}"
        )
    for name in ("_repr_markdown_", "_repr_html_"):
        if hasattr(value, name):
            return f"{kind}\n{getattr(value, name)()}"
    return f"{kind}\n{value!r}"


def cells(source: str) -> list[str]:
    """The code cells of a chapter's script."""
    parts = re.split(r"(?m)^# %%(.*)$", source)
    return [
        text
        for head, text in zip(parts[1::2], parts[2::2], strict=True)
        if "[markdown]" not in head
    ]


def chapter(path: Path) -> str:
    """What each cell of a chapter shows."""
    import IPython.display

    told: list[str] = []

    def display(*values: Any, **_: Any) -> None:
        told.extend(map(shown, values))

    IPython.display.display = display
    namespace: dict[str, Any] = {"__name__": "__main__", "display": display}
    for i, text in enumerate(cells(path.read_text(encoding="utf-8"))):
        told.append(f"--- cell {i}")
        tree = ast.parse(text)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        try:
            exec(compile(tree, f"{path.stem} cell {i}", "exec"), namespace)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), path.stem, "eval"), namespace)
                if value is not None:
                    told.append(shown(value))
        except Exception as error:  # a cell without its model; all that it says is compared
            traceback.print_exc(limit=-2)
            told.append(f"skipped: {type(error).__name__}: {str(error).splitlines()[:1]}")
    return "\n".join(told) + "\n"


def without_models() -> None:
    """No weights are loaded, and nothing recorded is asked again."""
    from rag_repro.lm import load
    from rag_repro.show import chapter
    from rag_repro.show.picture import Note

    def refused(*_: Any, **__: Any) -> Any:
        raise ModelWantedError("no model here")

    load.load = load.tokenizer_of = refused
    load.SentenceEncoder._model = property(refused)
    chapter.ask_again = lambda *_: Note("asked again")


def sharing(results: Any) -> None:
    """Chapters read the records once and judge once, not each anew: minutes in place of an hour."""
    from rag_repro.show import chapter, ledger
    from rag_repro.study import judge, scores

    of_folder = scores.Results
    held = {results.folder: results}
    judged: dict[tuple, Any] = {}
    whole = judge.judge

    def once(paper: Any, tier: str, records: Any, **cut: Any) -> Any:
        key = id(paper), tier, id(records), *cut.items()
        if key not in judged:
            judged[key] = (whole(paper, tier, records, **cut), paper)
        return judged[key][0]

    judge.judge = ledger.judge = once
    scores.Results = chapter.Results = lambda folder: held.get(folder) or of_folder(folder)


def write(folder: Path, wanted: list[str]) -> None:
    """Every part as a file of its own."""
    from rag_repro.book_folders import here
    from rag_repro.publish import pages
    from rag_repro.show import exhibit_rows, ledger
    from rag_repro.study import papers
    from rag_repro.study.scores import Results

    places, results = here(), Results(here().records)
    folder.mkdir(parents=True, exist_ok=True)
    without_models()
    sharing(results)

    def save(name: str, text: str) -> None:
        (folder / name).write_text(text, encoding="utf-8")
        print(f"{time.process_time():7.1f} s of CPU  {name}", flush=True)

    for part in wanted or [*PARTS, *places.names()]:
        if part == "claims":
            save("ledger.csv", ledger.text(ledger.rows(results), "csv"))
        elif part == "exhibits":
            for name in papers.names():
                paper = papers.load(name)
                for exhibit in paper.exhibits.values():
                    rows = exhibit_rows.rows(paper, exhibit, results)
                    save(f"exhibit-{exhibit.name}.csv", exhibit_rows.text(rows, "csv"))
        elif part == "pages":
            front, figure = pages.front_page(places)
            made = {"index.md": front, "verdicts.svg": figure, **pages.tier_pages(places)}
            for name, text in made.items():
                save(f"page-{name.replace('/', '-')}", text)
        else:
            save(f"chapter-{part}.txt", chapter(places.source(part)))


def compare(before: Path, after: Path) -> int:
    """Names of the files that differ; -> how many."""
    names = sorted({p.name for folder in (before, after) for p in folder.iterdir()})
    differ = [
        name
        for name in names
        if not all((folder / name).is_file() for folder in (before, after))
        or not filecmp.cmp(before / name, after / name, shallow=False)
    ]
    print("\n".join(differ) if differ else f"{len(names)} files are equal")
    return len(differ)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", to, *parts]:
            write(Path(to), parts)
        case ["compare", one, other]:
            sys.exit(bool(compare(Path(one), Path(other))))
        case _:
            sys.exit(__doc__)
