"""Sealed records: finished answers as parquet, one file per data set and method.

`root/DATA SET/METHOD.parquet` has one row per answer, condition after condition: the record's name,
the question's id and cluster, each other field of the answer's line as JSON, and a column of floats
per metric: "scores.em" as the line has it, "metrics.retrievals" as it is computed from the line.
`root/conditions.parquet` has one row per condition: its path, header and manifest. A record that
lies beside them as JSON lines is newer, and is read in their place.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rag_repro.digest import replacing
from rag_repro.evaluation.metrics import METRICS, of_line
from rag_repro.study import lines as form
from rag_repro.study.files import alone, trouble
from rag_repro.study.lines import RecordError

CONDITIONS, ENDING = "conditions.parquet", ".parquet"
SCORES, COMPUTED = "scores.", "metrics."
COLUMNS = ("condition", "id", "cluster")
GROUPED = ("kind", "hops")  # JSON of few values
KEPT = 400  # files in memory at once; ours are 270
# What a damaged file can raise: its pages have checksums, its footer has none.
BROKEN = (pa.ArrowException, OSError, LookupError, ValueError, AttributeError, TypeError)


class Lines(Sequence[Mapping[str, Any]]):
    """A sealed record's lines: decoded when one is looked at; columns are there without that."""

    def __init__(self, file: SealedFile, rows: np.ndarray):
        self._file, self._rows = file, rows
        self._decoded: list[dict[str, Any]] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return Lines(self._file, self._rows[place])
        return self._all[place]

    def __iter__(self):
        return iter(self._all)

    def where(self, mask: np.ndarray) -> Lines:
        """The lines at which the mask (len(self),) is true."""
        return Lines(self._file, self._rows[mask])

    def column(self, name: str) -> np.ndarray:
        """(len(self),) of "id", "cluster", "kind" or "hops"."""
        return self._file.column(name)[self._rows]

    def metric(self, name: str) -> np.ndarray:
        """(len(self),) as `metrics.of_line` has it; NaN: without a score."""
        column = self._file.metric(name)
        if column is not None:
            return column[self._rows]
        return np.array([of_line(name, line) for line in self], float)

    def failed(self) -> int:
        """How many lines have an error."""
        there = "error" in self._file.fields
        return int(self._file.present("error")[self._rows].sum()) if there else 0

    @property
    def _all(self) -> list[dict[str, Any]]:
        if self._decoded is None:
            self._decoded = self._file.decoded(self._rows)
        return self._decoded


def failed(lines: Sequence[Mapping[str, Any]]) -> int:
    """How many of a record's questions failed."""
    return lines.failed() if isinstance(lines, Lines) else sum("error" in one for one in lines)


class SealedFile:
    """One parquet file of answers; what is asked of it is read when it is asked first."""

    def __init__(self, path: Path):
        self.path = path
        self._parquet = pq.ParquetFile(
            pa.BufferReader(path.read_bytes()),
            read_dictionary=[*COLUMNS, *GROUPED],
            page_checksum_verification=True,
        )
        schema = self._parquet.schema_arrow
        self.fields = frozenset(schema.names)
        self.computed = frozenset(json.loads((schema.metadata or {}).get(b"computed", b"[]")))
        self._columns: dict[str, np.ndarray] = {}
        self._texts: pa.Table | None = None
        self.rows = _runs(self.column("condition"))

    def metric(self, name: str) -> np.ndarray | None:
        """(answers,) of this metric; None: it is computed from lines, and was not when sealing."""
        if (stored := column_of(name)) in self.fields:
            return self.column(stored)
        if stored.startswith(COMPUTED) and name not in self.computed:
            return None
        return np.full(self._parquet.metadata.num_rows, np.nan)

    def column(self, name: str) -> np.ndarray:
        """(answers,) of a column of this name."""
        if name not in self._columns:
            try:
                self._columns[name] = self._read(name)
            except BROKEN as error:
                raise _damaged(self.path, error) from error
        return self._columns[name]

    def _read(self, name: str) -> np.ndarray:
        [column] = self._table([name]).columns
        if name not in (*COLUMNS, *GROUPED):
            return column.to_numpy()
        coded = column.unify_dictionaries().combine_chunks()
        values = coded.dictionary.to_pylist()
        if name in GROUPED:
            values = [json.loads(value) for value in values]
        known = np.array([*values, None], dtype=object)
        return known[coded.indices.fill_null(len(values)).to_numpy()]

    def present(self, name: str) -> np.ndarray:
        """(answers,) whether the field stands in the line."""
        [column] = self._table([name]).columns
        return column.is_valid().to_numpy()

    def _table(self, names: Sequence[str]) -> pa.Table:
        try:
            return self._parquet.read(list(names), use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(self.path, error) from error

    def decoded(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """The lines of these rows, as they were written."""
        if self._texts is None:
            self._texts = self._table([n for n in self._order() if "." not in n])
        made: list[dict[str, Any]] = [{} for _ in rows]
        table = self._texts.take(pa.array(rows))
        for name in self._order():
            if name == "scores":
                self._put_scores(made, rows)
                continue
            texts = table.column(name).to_pylist()
            there = [i for i, text in enumerate(texts) if text is not None]
            values = [texts[i] for i in there]
            if name not in COLUMNS:  # all at once: one call each would take longer
                values = json.loads(f"[{','.join(values)}]")
            for i, value in zip(there, values, strict=True):
                made[i][name] = value
        return made

    def _order(self) -> list[str]:
        """The fields of a line, in the order in which it is written; "scores" at its place."""
        names = [n for n in self.fields if "." not in n and n != "condition"]
        order = {name: place for place, name in enumerate(form.FIELDS)}
        return sorted([*names, "scores"], key=lambda name: (order.get(name, len(order)), name))

    def _put_scores(self, made: list[dict[str, Any]], rows: np.ndarray) -> None:
        for line in made:
            line["scores"] = {}
        for name in sorted(self.fields, key=_place):
            if name.startswith(SCORES):
                metric = name.removeprefix(SCORES)
                for line, value in zip(made, self.column(name)[rows].tolist(), strict=True):
                    if value == value:
                        line["scores"][metric] = value


def _place(name: str) -> tuple[int, str]:
    """Metrics in the order of their registry."""
    known = list(METRICS)
    metric = name.partition(".")[2]
    return (known.index(metric) if metric in known else len(known)), name


def _runs(names: np.ndarray) -> dict[str, np.ndarray]:
    """Condition -> its rows, which follow one another."""
    if not len(names):
        return {}
    starts = np.flatnonzero(np.r_[True, names[1:] != names[:-1]])
    ends = np.r_[starts[1:], len(names)]
    return {names[a]: np.arange(a, b) for a, b in zip(starts, ends, strict=True)}


def _damaged(path: Path, error: Exception) -> RecordError:
    why = " ".join(str(error).split())
    return RecordError(f"{path}: damaged ({why}); restore the file from version control")


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size


def opened(path: Path) -> SealedFile | None:
    """The file, read once while it stays the same; None: there is none."""
    stamp = _stamp(path)
    return None if stamp is None else _opened(path, stamp)


@lru_cache(maxsize=KEPT)
def _opened(path: Path, stamp: tuple[int, int]) -> SealedFile:
    try:
        return SealedFile(path)
    except BROKEN as error:
        raise _damaged(path, error) from error


def conditions(root: Path) -> Mapping[str, Mapping[str, str | None]]:
    """Path of each sealed record below `root` -> its header and manifest, as JSON."""
    path = root / CONDITIONS
    stamp = _stamp(path)
    return {} if stamp is None else _conditions(path, stamp)


@lru_cache(maxsize=64)
def _conditions(path: Path, stamp: tuple[int, int]) -> Mapping[str, Mapping[str, str | None]]:
    try:
        rows = pq.read_table(
            pa.BufferReader(path.read_bytes()), page_checksum_verification=True
        ).to_pylist()
    except BROKEN as error:
        raise _damaged(path, error) from error
    return {row.pop("path"): row for row in rows}


def file_of(root: Path, path: str) -> Path:
    """The parquet file of a condition's path: the method is the name's first part."""
    folder, _, name = path.rpartition("/")
    return root / folder / (name.partition("-")[0] + ENDING)


def read(root: Path, path: str) -> tuple[Path, dict[str, Any], Lines] | None:
    """File, header and lines of a sealed record; None where there is none."""
    if (held := conditions(root).get(path)) is None:
        return None
    file = opened(place := file_of(root, path))
    name = path.rpartition("/")[2]
    if file is None or name not in file.rows:
        raise RecordError(
            f"{place} lacks {name}, which {root / CONDITIONS} names; restore both files from "
            "version control"
        )
    return place, json.loads(held["header"]), Lines(file, file.rows[name])


def scores(file: Path, without: Collection[str] = ()) -> pa.Table:
    """A sealed file's columns, but for those of text; without: records that are left out."""
    held = opened(file)
    texts = held.fields.difference((*COLUMNS, *GROUPED))
    table = held._table(sorted(held.fields.difference(n for n in texts if "." not in n)))
    gone = [rows for name, rows in held.rows.items() if name in without]
    if not gone:
        return table
    kept = np.setdiff1d(np.arange(len(table)), np.concatenate(gone))
    return table.take(pa.array(kept))


def scores_of(path: str, lines: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The same columns of a record in JSON lines."""
    table = _table(path.rpartition("/")[2], lines)
    coded = pa.dictionary(pa.int32(), pa.string())
    for name in (*COLUMNS, *GROUPED):
        if name in table.column_names:
            place = table.column_names.index(name)
            table = table.set_column(place, name, table.column(name).cast(coded))
    return table.select([n for n in table.column_names if "." in n or n in (*COLUMNS, *GROUPED)])


def column_of(metric: str) -> str:
    """The column that a metric has in a sealed file."""
    return (COMPUTED if METRICS[metric].needs == "line" else SCORES) + metric


def manifest(root: Path, path: str) -> list[dict[str, Any]]:
    """The entries of a sealed record's manifest; none where it has none."""
    return json.loads(conditions(root).get(path, {}).get("manifest") or "[]")


# ----------------------------------------------------------------------------- writing


def seal(root: Path, report: Callable[[Path, int], None] = lambda file, n: None) -> int:
    """Move the finished records below `root` into parquet -> how many.

    What a run is at work on is left to the next time; a kill leaves every answer in one of the two
    forms. report: called with each file that was written and its number of new records.
    """
    sealed = 0
    with alone(root / "seal.lock"):
        groups: dict[Path, list[str]] = defaultdict(list)
        for packed in sorted(root.rglob(f"*{form.PACKED}")):
            path = packed.relative_to(root).as_posix().removesuffix(form.PACKED)
            if form.SHARD not in packed.name:
                groups[file_of(root, path)].append(path)
        for file, paths in groups.items():
            with ExitStack() as stack:
                free = [
                    path
                    for path in paths
                    if stack.enter_context(alone(root / f"{path}.lock", wait=False))
                    and not (root / (path + form.PLAIN)).exists()
                ]
                moved = _move(root, file, free) if free else 0
                if moved:
                    report(file, moved)
                sealed += moved
    return sealed


def _move(root: Path, file: Path, paths: Sequence[str]) -> int:
    """Records of one file into it, their JSON lines away -> how many had an answer."""
    parsed = {path: form.read_whole(root / (path + form.PACKED)) for path in paths}
    parsed = {path: record for path, record in parsed.items() if record.lines}
    rewrite(root, file, parsed, {path: _manifest_text(root, path) for path in parsed})
    for path, record in parsed.items():
        found = read(root, path)
        if found is None or (found[1], list(found[2])) != (record.header, record.lines):
            raise RecordError(f"{file} does not give back {path}; nothing was removed: report this")
    for path in parsed:
        (root / (path + form.PACKED)).unlink()
        (root / (path + form.MANIFEST)).unlink(missing_ok=True)
    return len(parsed)


def _manifest_text(root: Path, path: str) -> str | None:
    """The record's manifest as it stands beside it, else as it was sealed."""
    beside = root / (path + form.MANIFEST)
    if beside.is_file():
        return json.dumps(json.loads(beside.read_text(encoding="utf-8")), sort_keys=True)
    return conditions(root).get(path, {}).get("manifest")


def rewrite(
    root: Path,
    file: Path,
    changed: Mapping[str, form.Parsed | None],
    manifests: Mapping[str, str | None],
) -> None:
    """The file with these records in place of what it has of them; None: without them."""
    names = {path.rpartition("/")[2]: record for path, record in changed.items()}
    tables = [_table(name, record.lines) for name, record in names.items() if record]
    if (old := opened(file)) is not None:
        kept = {name: rows for name, rows in old.rows.items() if name not in names}
        if old.computed != _computed_names():  # other metrics than now: computed anew
            tables += [_table(name, old.decoded(rows)) for name, rows in kept.items()]
        elif kept:
            whole = _plain(old._table(sorted(old.fields)))
            tables.append(whole.take(pa.array(np.concatenate([*kept.values()]))))
    _write(file, tables)
    held = {path: dict(row) for path, row in conditions(root).items() if path not in changed}
    held |= {
        path: {"header": json.dumps(record.header), "manifest": manifests.get(path)}
        for path, record in changed.items()
        if record
    }
    rows = [{"path": path, **row} for path, row in sorted(held.items())]
    text = pa.schema([(name, pa.string()) for name in ("path", "header", "manifest")])
    _save(root / CONDITIONS, pa.Table.from_pylist(rows, text))


def _plain(table: pa.Table) -> pa.Table:
    """Texts as texts, where reading made them codes."""
    for place, name in enumerate(table.column_names):
        if pa.types.is_dictionary(table.schema.field(name).type):
            table = table.set_column(place, name, table.column(name).cast(pa.string()))
    return table


def _table(name: str, lines: Sequence[Mapping[str, Any]]) -> pa.Table:
    """One record's rows."""
    made: dict[str, pa.Array] = {"condition": pa.array([name] * len(lines), pa.string())}
    for field in dict.fromkeys([*GROUPED, *(field for line in lines for field in line)]):
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


def _computed_names() -> frozenset[str]:
    return frozenset(name for name, metric in METRICS.items() if metric.needs == "line")


def computed(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[float | None]]:
    """The metrics that are computed from lines, of these; those without any value are left out."""
    names = sorted(_computed_names())
    found = {name: [METRICS[name].fn(line) for line in lines] for name in names}
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
    whole = whole.take(pa.array(order)).select(sorted(whole.column_names))
    told = {"computed": json.dumps(sorted(_computed_names()))}
    _save(file, whole.replace_schema_metadata(told))


def _save(file: Path, table: pa.Table) -> None:
    try:
        with replacing(file) as part:
            pq.write_table(
                table,
                part,
                compression="zstd",
                compression_level=15,
                row_group_size=1 << 24,
                data_page_size=1 << 28,
                max_rows_per_page=1 << 30,
                dictionary_pagesize_limit=1 << 26,
                write_statistics=False,
                write_page_checksum=True,
            )
    except OSError as error:
        raise RecordError(f"{file}: cannot be written ({trouble(error)})") from error
