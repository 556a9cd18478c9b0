"""Rows of tables in files: JSON Lines, a JSON array, Parquet, and folders that Hugging Face's
`datasets` reads (`save_to_disk`, or Parquet files as the Hub keeps them)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_repro.data.public.opened_files import AGAIN, document, lines, opening, records
from rag_repro.data.public.record import DataError, MissingFile, Row
from rag_repro.plain import shortened
from rag_repro.words import nearest

PARQUET, ARROW = ".parquet", ".arrow"
_SHARD = re.compile(r"(.+?)-\d+-of-\d+(-\w+)?")
_TEST_LIKE = ("test", "validation", "dev")


def rows(path: Path, fields: Sequence[str] = ()) -> Iterator[Row]:
    """Each row of a file; of Parquet and Arrow only those of `fields` (all: ()).

    Raises DataError for what is not such a file.
    """
    if path.suffix.lower() in (PARQUET, ARROW):
        return _columns(path, fields)
    return records(path) if opening(path) == "[" else lines(path)


def _columns(path: Path, fields: Sequence[str]) -> Iterator[Row]:
    import pyarrow
    from pyarrow import parquet

    if not path.is_file():
        raise MissingFile(path, "", "there is no such file", "give the path of the file")
    kind, number = path.suffix.lower().removeprefix(".").capitalize(), 0
    try:
        with pyarrow.memory_map(str(path)) as file:
            if kind == "Parquet":
                table = parquet.ParquetFile(file)
                names = table.schema_arrow.names
            else:
                table = pyarrow.ipc.open_stream(file)
                names = table.schema.names
            kept = [name for name in names if name in fields] or names
            read = table.iter_batches(1024, columns=kept) if kind == "Parquet" else table
            for batch in read:
                for row in batch.select(kept).to_pylist():
                    number += 1
                    yield Row(path, f"row {number}", row)
    except (pyarrow.ArrowException, OSError) as error:
        problem = f"no {kind} file that can be read ({shortened(error, 80)})"
        raise DataError(path, f"row {number + 1}" if number else "", problem, AGAIN) from error


def shards(folder: Path, split: str | None, config: str | None) -> list[Path]:
    """The files of one split of a folder that `datasets` reads, in order.

    split, config: needed only where the folder has several; of several splits the default is
    "test", else "validation". Raises DataError, which names what there is.
    """
    if not folder.is_dir():
        raise MissingFile(folder, "", "there is no such folder", "give the path of the folder")
    if (folder / "dataset_dict.json").is_file():
        known = document(folder / "dataset_dict.json", dict).get("splits")
        names = known if isinstance(known, list) else []
        folder /= _chosen(folder, "split", [str(name) for name in names], split)
    elif split is not None and (folder / "state.json").is_file():
        raise DataError(folder, "", "it holds one split alone", "leave split= out")
    if (folder / "state.json").is_file():
        return _stored(folder)
    files: dict[str, dict[str, list[Path]]] = {}
    for path in sorted(folder.rglob(f"*{PARQUET}")):
        *parts, name = path.relative_to(folder).with_suffix("").parts
        found = _SHARD.fullmatch(name)
        own = found[1] if found else name
        if own.isdecimal() and parts:  # as the Hub converts: CONFIG/SPLIT/0000.parquet
            own = parts.pop()
        place = "/".join(part for part in parts if part != "data") or "default"
        files.setdefault(place, {}).setdefault(own, []).append(path)
    if not files:
        problem = "no dataset of Hugging Face (no state.json, dataset_dict.json or .parquet file)"
        raise DataError(folder, "", problem, "save it with dataset.save_to_disk, or copy its files")
    splits = files[_chosen(folder, "config", list(files), config)]
    return splits[_chosen(folder, "split", list(splits), split)]


def _chosen(folder: Path, what: str, known: Sequence[str], wanted: str | None) -> str:
    listed = ", ".join(known)
    if wanted is not None and wanted not in known:
        problem = f"no {what} {wanted!r}{nearest(wanted, known)}"
        raise DataError(folder, "", problem, f"there are: {listed or 'none'}")
    default = [one for one in _TEST_LIKE if what == "split" and one in known]
    if wanted is None and len(known) != 1 and not default:
        raise DataError(folder, "", f"it has {len(known)} {what}s", f"add {what}= ({listed})")
    return wanted or [*default, *known][0]


def _stored(folder: Path) -> list[Path]:
    """The Arrow files that `save_to_disk` names."""
    state = document(folder / "state.json", dict)
    if state.get("_indices_data_files"):
        problem = "its rows are chosen by an index file, which is not read here"
        raise DataError(folder, "", problem, "save it again after dataset.flatten_indices()")
    listed = state.get("_data_files")
    named = [one.get("filename") for one in listed or () if isinstance(one, dict)]
    if not named or not all(isinstance(name, str) for name in named):
        raise DataError(folder / "state.json", "", "it names no data file", AGAIN)
    # A name alone: whatever else it is, it leads to no other folder.
    return [folder / Path(name).name for name in named]
