"""Sealed records: finished answers as parquet, one file per data set and method.

`root/DATA SET/METHOD.parquet` has one row per answer, condition after condition: the record's name,
the question's id and cluster, each other field of the answer's line as JSON, and a column of floats
per metric: "scores.em" as the line has it, "metrics.retrievals" as it is computed from the line.
`root/conditions.parquet` has one row per condition: its path, header, manifest and a hash of its
answers. A record that lies beside them as JSON lines is newer, and is read in their place.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rag_repro.digest import replacing
from rag_repro.evaluation.metrics import METRICS, of_line
from rag_repro.study import lines as form
from rag_repro.study.files import alone, trouble
from rag_repro.study.lines import Record, RecordError

CONDITIONS, ENDING = "conditions.parquet", ".parquet"
SCORES, COMPUTED = "scores.", "metrics."
COLUMNS = ("condition", "id", "cluster")  # texts as they are; other fields are JSON
ABSENT = object()
KEPT = 400  # files in memory at once; ours are 270
# What a damaged file can raise: its pages have checksums, its footer has none.
BROKEN = (pa.ArrowException, OSError, LookupError, ValueError, AttributeError, TypeError)


class Lines(Sequence[Mapping[str, Any]]):
    """A sealed record's lines: decoded when one is looked at; columns are there without that."""

    def __init__(self, file: SealedFile, rows: np.ndarray):
        self._file, self._rows = file, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self.where(place) if isinstance(place, slice) else self._decoded[place]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._decoded)

    @cached_property
    def _decoded(self) -> list[dict[str, Any]]:
        try:
            return self._file.decoded(self._rows)
        except BROKEN as error:
            raise _damaged(self._file.path, error) from error

    def where(self, chosen: slice | np.ndarray) -> Lines:
        """The lines of a slice, or at which a mask (len(self),) is true."""
        return Lines(self._file, self._rows[chosen])

    def column(self, name: str) -> np.ndarray:
        """(len(self),) of a field, None where a line has none."""
        return self._file.column(name)[self._rows]

    def metric(self, name: str) -> np.ndarray:
        """(len(self),) as `metrics.of_line` has it; NaN: without a score."""
        column = self._file.metric(name)
        if column is not None:
            return column[self._rows]
        return np.array([of_line(name, line) for line in self], float)


def failed(lines: Sequence[Mapping[str, Any]]) -> int:
    """How many of a record's questions failed."""
    if isinstance(lines, Lines):
        return sum(error is not None for error in lines.column("error"))
    return sum("error" in line for line in lines)


class SealedFile:
    """One parquet file of answers; what is asked of it is read when it is asked first."""

    def __init__(self, path: Path):
        self.path = path
        data = pa.BufferReader(path.read_bytes())
        self._parquet = pq.ParquetFile(data, page_checksum_verification=True)
        self.fields = tuple(self._parquet.schema_arrow.names)
        self.computed = (self._parquet.metadata.metadata or {}).get(b"computed", b"").decode()
        self._columns: dict[str, np.ndarray] = {}
        names = self.column("condition")  # whose rows follow one another
        starts = np.flatnonzero(np.r_[True, names[1:] != names[:-1]])
        ends = [*starts[1:], len(names)]
        self.rows = {names[a]: np.arange(a, b) for a, b in zip(starts, ends, strict=True)}

    def metric(self, name: str) -> np.ndarray | None:
        """(answers,) of this metric; None: it is computed from lines, and was not when sealing."""
        if (stored := column_of(name)) in self.fields:
            return self.column(stored)
        if stored.startswith(COMPUTED) and self.computed != registry():
            return None
        return np.full(self._parquet.metadata.num_rows, np.nan)

    def column(self, name: str) -> np.ndarray:
        """(answers,) of a column: floats with NaN, or values with None."""
        if name not in self._columns:
            column = self._read(name)
            if len(column) != self._parquet.metadata.num_rows:
                raise _damaged(self.path, ValueError(f"{name} has {len(column)} rows"))
            self._columns[name] = column
        return self._columns[name]

    def _read(self, name: str) -> np.ndarray:
        if name not in self.fields:
            return np.full(self._parquet.metadata.num_rows, None)
        [column] = self.table([name]).columns
        if "." in name:
            return column.to_numpy()
        coded = column.dictionary_encode().combine_chunks()  # few values, or few for a question
        values = coded.dictionary.to_pylist()
        if name not in COLUMNS:
            values = json.loads(f"[{','.join(values)}]")  # one call each would take longer
        known = np.empty(len(values) + 1, dtype=object)
        known[:-1] = values
        return known[coded.indices.fill_null(len(values)).to_numpy()]

    def table(self, names: Iterable[str]) -> pa.Table:
        """These columns as they are stored. Raises RecordError."""
        try:
            return self._parquet.read([*names], use_threads=False)
        except BROKEN as error:
            raise _damaged(self.path, error) from error

    @cached_property
    def _texts(self) -> pa.Table:
        return self.table(name for name in self.fields if "." not in name)

    def decoded(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """The lines of these rows, as they were written."""
        names = [name for name in METRICS if SCORES + name in self.fields]
        names += [n for f in self.fields if (n := f.removeprefix(SCORES)) != f and n not in METRICS]
        values = [self.column(SCORES + name)[rows].tolist() for name in names]
        columns: dict[str, list[Any]] = {
            "scores": [
                {name: value for name, value in zip(names, row, strict=True) if value == value}
                for row in zip(*values, strict=True)
            ]
            or [{} for _ in rows]
        }
        table = self._texts.take(pa.array(rows))
        for name in table.column_names[1:]:  # all but `condition`
            columns[name] = texts = table.column(name).to_pylist()
            there = [i for i, text in enumerate(texts) if text is not None]
            if name not in COLUMNS:
                loaded = json.loads(f"[{','.join([texts[i] for i in there])}]")
                for i in range(len(texts)):
                    texts[i] = ABSENT
                for i, value in zip(there, loaded, strict=True):
                    texts[i] = value
        order = sorted(columns, key=_place)
        return [
            {name: value for name, value in zip(order, row, strict=True) if value is not ABSENT}
            for row in zip(*(columns[name] for name in order), strict=True)
        ]


def _place(name: str) -> tuple[int, str]:
    """Fields in the order in which a line is written, `condition` before and columns behind."""
    known = ("condition", *form.FIELDS)
    return (known.index(name) if name in known else len(known)), name


def column_of(metric: str) -> str:
    """The column that a metric has in a sealed file."""
    return (COMPUTED if METRICS[metric].needs == "line" else SCORES) + metric


def _damaged(path: Path, error: Exception) -> RecordError:
    if isinstance(error, RecordError):
        return error
    why = " ".join(str(error).split())
    return RecordError(f"{path}: damaged ({why}); restore the file from version control")


def _kept(load: Callable[[Path], Any], size: int) -> Callable[[Path], Any]:
    """The same, once as long as the file stays the same; None where there is no file."""

    @lru_cache(maxsize=size)
    def loaded(path: Path, *stamp: int) -> Any:
        try:
            return load(path)
        except BROKEN as error:
            raise _damaged(path, error) from error

    def current(path: Path) -> Any:
        try:
            stat = path.stat()
        except FileNotFoundError:
            return None
        return loaded(path, stat.st_mtime_ns, stat.st_size)

    return current


def _by_path(path: Path) -> dict[str, dict[str, str | None]]:
    data = pa.BufferReader(path.read_bytes())
    rows = pq.read_table(data, page_checksum_verification=True).to_pylist()
    return {row.pop("path"): row for row in rows}


opened = _kept(SealedFile, KEPT)
_conditions = _kept(_by_path, 64)


def conditions(root: Path) -> Mapping[str, Mapping[str, str | None]]:
    """Path of each sealed record below `root` -> its header and manifest, as JSON."""
    return _conditions(root / CONDITIONS) or {}


def file_of(root: Path, path: str) -> Path:
    """The parquet file of a condition's path: the method is the name's first part."""
    folder, _, name = path.rpartition("/")
    return root / folder / (name.partition("-")[0] + ENDING)


def read(root: Path, path: str) -> Record | None:
    """The sealed record, whose lines are decoded when one is looked at; None: there is none."""
    if (held := conditions(root).get(path)) is None:
        return None
    place, name = file_of(root, path), path.rpartition("/")[2]
    file = opened(place)
    if file is None or name not in file.rows:
        raise RecordError(
            f"{place} lacks {name}, which {root / CONDITIONS} names; restore both files from "
            "version control"
        )
    return Record(place, json.loads(held["header"]), Lines(file, file.rows[name]))


def manifest(root: Path, path: str) -> list[dict[str, Any]]:
    """The entries of a sealed record's manifest; none where it has none."""
    return json.loads(conditions(root).get(path, {}).get("manifest") or "[]")


# ----------------------------------------------------------------------------- writing


def seal(root: Path, report: Callable[[Path, int], None] = lambda file, n: None) -> int:
    """Move the records below `root` into parquet -> how many.

    What a run is at work on is left to the next time; a kill leaves every answer in one of the two
    forms. report: called with each file that was written and its number of new records.
    """
    sealed = 0
    with alone(root / "seal.lock"):
        groups: dict[Path, list[str]] = defaultdict(list)
        for plain in sorted(root.rglob(f"*{form.ENDING}")):
            path = plain.relative_to(root).as_posix().removesuffix(form.ENDING)
            if form.SHARD not in plain.name:
                groups[file_of(root, path)].append(path)
        for file, paths in groups.items():
            with ExitStack() as stack:
                free = [
                    path
                    for path in paths
                    if stack.enter_context(alone(root / f"{path}.lock", wait=False))
                ]
                moved = _move(root, file, free) if free else 0
                if moved:
                    report(file, moved)
                sealed += moved
    return sealed


def _move(root: Path, file: Path, paths: Sequence[str]) -> int:
    """Records of one file into it, their JSON lines away -> how many had an answer."""
    files = {path: root / (path + form.ENDING) for path in paths}
    found = {path: form.read(file) for path, file in files.items()}
    parsed = {path: record for path, record in found.items() if record and record.lines}
    rewrite(root, file, parsed, {path: manifest_text(root, path) for path in parsed})
    for path, record in parsed.items():
        back = read(root, path)
        if back is None or (back.header, tuple(back.lines)) != (record.header, record.lines):
            raise RecordError(f"{file} does not give back {path}; nothing was removed: report this")
    for path in parsed:
        files[path].unlink()
        (root / (path + form.MANIFEST)).unlink(missing_ok=True)
    return len(parsed)


def manifest_text(root: Path, path: str) -> str | None:
    """The record's manifest as it stands beside it, else as it was sealed."""
    beside = root / (path + form.MANIFEST)
    if beside.is_file():
        return json.dumps(json.loads(beside.read_text(encoding="utf-8")), sort_keys=True)
    return conditions(root).get(path, {}).get("manifest")


def rewrite(
    root: Path,
    file: Path,
    changed: Mapping[str, Record | None],
    manifests: Mapping[str, str | None],
) -> None:
    """The file with these records in place of what it has of them; None: without them."""
    names = {path.rpartition("/")[2]: record for path, record in changed.items()}
    tables = [rows_of(name, record.lines) for name, record in names.items() if record]
    if (old := opened(file)) is not None:
        kept = {name: rows for name, rows in old.rows.items() if name not in names}
        if old.computed != registry():  # other metrics than now: computed anew
            tables += [rows_of(name, old.decoded(rows)) for name, rows in kept.items()]
        elif kept:
            tables.append(old.table(old.fields).take(pa.array(np.concatenate([*kept.values()]))))
    _write(file, tables)
    held = {path: dict(row) for path, row in conditions(root).items() if path not in changed}
    held |= {
        path: {
            "header": json.dumps(record.header),
            "manifest": manifests.get(path),
            "digest": digest(record.lines),
        }
        for path, record in changed.items()
        if record
    }
    rows = [{"path": path, **row} for path, row in sorted(held.items())]
    text = pa.schema([(n, pa.string()) for n in ("path", "header", "manifest", "digest")])
    _save(root / CONDITIONS, pa.Table.from_pylist(rows, text))


def digest(lines: Iterable[Mapping[str, Any]]) -> str:
    """Short hash of answers, the same of JSON lines and of what they were sealed to."""
    text = json.dumps([dict(line) for line in lines], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def rows_of(name: str, lines: Sequence[Mapping[str, Any]]) -> pa.Table:
    """One record's rows."""
    made: dict[str, pa.Array] = {"condition": pa.array([name] * len(lines), pa.string())}
    for field in dict.fromkeys(field for line in lines for field in line):
        if field in COLUMNS:
            made[field] = pa.array([line[field] for line in lines], pa.string())
        elif field == "scores":
            for metric in dict.fromkeys(metric for line in lines for metric in line["scores"]):
                values = [line["scores"].get(metric) for line in lines]
                made[SCORES + metric] = pa.array(values, pa.float64())
        else:
            texts = [_json(line[field]) if field in line else None for line in lines]
            made[field] = pa.array(texts, pa.string())
    for metric, values in computed(lines).items():
        made[COMPUTED + metric] = pa.array(values, pa.float64())
    return pa.table(made)


def registry() -> str:
    """Which metrics are computed from lines, as a file says that was written with them."""
    names = [name for name, metric in METRICS.items() if metric.needs == "line"]
    return hashlib.sha256(" ".join(sorted(names)).encode()).hexdigest()[:12]


def computed(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[float | None]]:
    """The metrics that are computed from lines, of these; those without any value are left out."""
    found = {
        name: [metric.fn(line) for line in lines]
        for name, metric in METRICS.items()
        if metric.needs == "line"
    }
    return {name: values for name, values in found.items() if any(v is not None for v in values)}


def _json(value: Any) -> str:
    """Half a character, which an odd reader can write, stays JSON's escape."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace").decode()


def _write(file: Path, tables: Iterable[pa.Table]) -> None:
    """Rows by condition, in one group with one page a column: so they compress best."""
    tables = sorted(tables, key=lambda table: table.column("condition")[0].as_py())
    if not tables:
        file.unlink(missing_ok=True)
        return
    whole = pa.concat_tables(tables, promote_options="default")
    order = np.argsort(whole.column("condition").to_numpy(), kind="stable")
    whole = whole.take(pa.array(order)).select(sorted(whole.column_names, key=_place))
    _save(file, whole, {"computed": registry()})


def _save(file: Path, table: pa.Table, marks: Mapping[str, str] | None = None) -> None:
    try:
        with (
            replacing(file) as part,
            pq.ParquetWriter(
                part,
                table.schema,
                compression="zstd",
                compression_level=19,
                use_dictionary=False,
                store_schema=False,
                data_page_size=1 << 28,
                max_rows_per_page=1 << 30,
                write_statistics=False,
                write_page_checksum=True,
            ) as writer,
        ):
            writer.write_table(table, row_group_size=1 << 24)
            writer.add_key_value_metadata(marks or {})  # a schema's own would not be stored
    except OSError as error:
        raise RecordError(f"{file}: cannot be written ({trouble(error)})") from error
