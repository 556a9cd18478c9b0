"""What the status chapter shows, read from executed chapters and stored records."""

from __future__ import annotations

import json
from numbers import Integral
from typing import Any

from rag_repro.book_folders import BookFolders, here
from rag_repro.publish.inputs import IGNORED
from rag_repro.publish.notebook_pairs import run_of

OWN = "91_status"


def executed(places: BookFolders | None = None) -> dict[str, dict[str, Any]]:
    """Chapter -> what its executed copy tells of its run; this chapter is left out,
    since it cannot tell of a run that has not ended."""
    places = places or here()
    told = {}
    for path in sorted(places.chapters.glob("*.ipynb")):
        if path.stem != OWN and (block := run_of(path)) is not None:
            told[path.stem] = block
    return told


def show(table: Any, caption: str = "", name: str = "") -> Any:
    """A pandas table as the book shows tables: fractions with one decimal, thousands apart."""
    from rag_repro.show.table import Table

    def text(value: Any) -> str:
        if isinstance(value, float):
            return f"{value:,.1f}"
        return f"{value:,}" if isinstance(value, Integral) else str(value)

    body = [[text(v) for v in row] for row in table.to_numpy()]
    return Table(list(table.columns), body, caption, name)


def runs(places: BookFolders | None = None) -> Any:
    """A row a chapter: when it ran, how long, at what most of memory, on what (pandas)."""
    import pandas as pd

    places = places or here()
    rows = [
        (
            name,
            block["started"][:10],
            block["seconds"],
            block["memory_mb"],
            round(places.executed(name).stat().st_size / 1024),
            "changed" if block["parameters"] else "defaults",
            "yes" if block["data"] else "no",
        )
        for name, block in executed(places).items()
    ]
    columns = ["chapter", "run on", "seconds", "memory, MB", "page, kB"]
    columns += ["parameters", "real data at hand"]
    return pd.DataFrame(rows, columns=columns).astype({"seconds": float})


def slowest(table: Any, most: int) -> Any:
    """A figure of the chapters that took longest, from `runs`; a note before any has run."""
    from rag_repro.show.picture import WIDTH, Note, Picture, plots

    held = table.set_index("chapter")["seconds"].nlargest(most).iloc[::-1]
    if held.empty:
        return Note("No chapter has run yet.")
    plt, colours = plots()
    figure, axis = plt.subplots(figsize=(WIDTH, 0.8 + 0.35 * len(held)), layout="constrained")
    axis.barh(held.index, held, color=colours[0])
    axis.set_xlabel("seconds")
    spoken = ", ".join(f"{name} {seconds:.0f}" for name, seconds in held.iloc[::-1].items())
    caption = f"The slowest chapters, {len(held)} of {len(table)}"
    return Picture(figure, f"Seconds a chapter: {spoken}.", caption, "fig-slowest")


def machines(places: BookFolders | None = None) -> Any:
    """A row a machine that executed chapters, with the chapters that it did (pandas)."""
    import pandas as pd

    found: dict[str, list[str]] = {}
    for name, block in executed(places).items():
        machine = {"python": block["python"], **block["machine"]}
        found.setdefault(json.dumps(machine, sort_keys=True), []).append(name)
    rows = [{**json.loads(key), "chapters": ", ".join(names)} for key, names in found.items()]
    columns = ["processor", "cores", "memory_gb", "system", "python", "chapters"]
    if any("gpu" in row for row in rows):
        columns.insert(3, "gpu")
    return pd.DataFrame(rows, columns=columns).rename(columns={"memory_gb": "memory, GB"})


def versions(places: BookFolders | None = None) -> Any:
    """A row a package: the versions under which the chapters ran (pandas)."""
    import pandas as pd

    found: dict[str, set[str]] = {}
    for block in executed(places).values():
        for package, version in block["versions"].items():
            found.setdefault(package, set()).add(version)
    rows = [(name, ", ".join(sorted(found[name]))) for name in sorted(found, key=str.lower)]
    return pd.DataFrame(rows, columns=["package", "version"])


def recorded(places: BookFolders | None = None) -> Any:
    """A row a data set: conditions with records, their answers and hours (pandas).

    Counted as the pages of tiers count. The machines are told where there are several.
    """
    import pandas as pd

    from rag_repro.data.titles import word
    from rag_repro.study import costs, papers

    records = (places or here()).records
    cells = costs.cells(map(papers.load, papers.names()))
    known = costs.sizes(cells, records)
    spent: dict[str, costs.Spent] = {}
    made_on: dict[str, set[str]] = {}
    for cell in cells:
        found = costs.spent(cell, known, records)
        if found.recorded:
            name = word(cell.condition.label)
            spent[name] = spent.get(name, costs.Spent()) + found
            made_on.setdefault(name, set()).update(costs.machines([cell], records))
    rows = [
        (name, of.recorded, of.answers, of.seconds / 3600, "; ".join(sorted(made_on[name])))
        for name, of in sorted(spent.items())
    ]
    table = pd.DataFrame(rows, columns=["data set", "conditions", "answers", "hours", "machine"])
    several = len(set().union(*made_on.values())) > 1
    return table if several else table.drop(columns="machine")


def sizes(places: BookFolders | None = None) -> Any:
    """A row a folder of the checkout: files and kilobytes, caches left out (pandas)."""
    import pandas as pd

    rows = []
    for name in ("notebooks", "book/chapters", "results", "artifacts"):
        folder = (places or here()).root / name
        found = (p for p in folder.rglob("*") if p.is_file() and p.name != f"{OWN}.ipynb")
        kept = [p for p in found if not IGNORED.intersection(p.relative_to(folder).parts)]
        total = sum(p.stat().st_size for p in kept)
        rows.append({"folder": f"{name}/", "files": len(kept), "kB": round(total / 1024)})
    return pd.DataFrame(rows)


def citation(places: BookFolders | None = None) -> str:
    """BibTeX of this book, from CITATION.cff."""
    import yaml

    places = places or here()
    told = yaml.safe_load((places.root / "CITATION.cff").read_text(encoding="utf-8"))
    authors = " and ".join(
        "{" + a["name"] + "}" if "name" in a else f"{a['family-names']}, {a['given-names']}"
        for a in told["authors"]
    )
    lines = [
        f"  title   = {{{told['title']}}},",
        f"  author  = {{{authors}}},",
        f"  version = {{{told['version']}}},",
        f"  note    = {{{told['license']} licence}},",
    ]
    return "\n".join(["@software{rag_repro,", *lines, "}"])
