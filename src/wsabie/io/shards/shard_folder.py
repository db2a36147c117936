"""Rows in shards: a folder that training reads a block at a time, whatever its size.

    DIR/manifest.json                what the rows are, how many, and every file with its size and SHA-256; written last
    DIR/rows-00000-of-00150.safetensors
                                     rows 0, 1, ... as columns (`wsabie.storage.column_files`)
    DIR/statistics.safetensors       of the features and labels: what scaling needs
    DIR/names.json                   {"label_names", "feature_names"}
    DIR/rejected.json                {"counts", "rejected"}: what of the source was left out

Rows lie in a random order that does not depend on how the source had them (`wsabie.workflows.shard_writer`), and
shards are cut out of it: rows have numbers from 0, which do not depend on how large a shard is. Columns of a shard:

    x/indices, x/values              sparse features: uint16 or uint32, uint8 to float32; or
    features                         dense ones, (n, d)
    y/labels, y/signs                uint16 or uint32; int8: 1, or -1 for an explicit negative (none there: all are 1)
    id, or id/text                   numbers, or words in UTF-8
    group/text, fold                 the group where there are groups, and 16 bits of its hash
    time/text

Parquet and zarr decode a whole group for a few rows at random: 16 times as long (`docs/decisions/rows-and-files.md`).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Csr, Float32, Int64
from wsabie.core.errors import InputError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.input_files import open_input, read_input
from wsabie.core.json_conversion import JsonObject
from wsabie.storage import column_files, schema_validation
from wsabie.storage.atomic_files import explain_read_errors, write_bytes
from wsabie.storage.column_files import ColumnFileCache, ColumnTable, ListColumn
from wsabie.storage.schema_validation import Count, Number, Sha256

FORMAT, VERSION = "wsabie-shards", 1
MANIFEST, STATISTICS, NAMES = "manifest.json", "statistics.safetensors", "names.json"
REJECTED = "rejected.json"
"""Not among the files of the manifest: nothing reads it but the command that wrote it, when it is run again."""
PARTS, WORK = "unfinished", "work.json"
"""The folder in the folder where work is kept until the manifest is there, and the file that says of what it is."""
LABEL_TYPES = {"labels": np.int32, "signs": np.int8}
"""Types of the parts of labels in memory."""
MAX_OPEN_SHARDS = 192
"""Shards that are mapped at once: each holds an open file, of which some systems allow 256."""
MAKE_AGAIN = "delete the folder and make the shards again with `shards()`"
"""Advice for damaged shards without a copy."""
_REMEDY = f"restore it from a copy, or {MAKE_AGAIN}"


@dataclass(frozen=True)
class ShardFacts:
    """Part of the manifest about all rows."""

    rows: Count
    features: Number
    labels: Number
    nonzeros: Count
    pairs: Count
    dense: bool
    least: float
    counts: bool
    augment: Count
    extractor_fingerprint: str | None
    values: str
    indices: str | None = None
    denied: Count = 0
    open_width: bool = False


@dataclass(frozen=True)
class FileEntry:
    """Entry of a file in the manifest."""

    bytes: Count
    sha256: Sha256


@dataclass(frozen=True)
class ShardEntry(FileEntry):
    """Entry of a shard in the manifest."""

    file: str
    rows: Count
    nonzeros: Count


@dataclass(frozen=True)
class ShardManifest:
    """Manifest without its checksum."""

    origin: str
    facts: ShardFacts
    shards: list[ShardEntry]
    other_files: dict[str, FileEntry]


@dataclass(frozen=True)
class ShardNames:
    """Names of labels, and of features where they have some."""

    label_names: list[str]
    feature_names: list[str] | None


class ShardSlice(NamedTuple):
    """Rows lo..hi - 1 of one shard."""

    shard: int
    lo: int
    hi: int


class ShardBlock(NamedTuple):
    """Decoded rows.

    Attributes
    ----------
    X : Csr or (n, d) float32
    Y : ListColumn
        With the parts "labels", int32, and "signs", int8.
    """

    X: Csr | Float32
    Y: ListColumn


@dataclass(frozen=True)
class ShardFolder:
    """Folder of shards.

    Attributes
    ----------
    path : Path
    facts : dict
        Facts of the manifest about all rows: rows, nonzeros, pairs, features, labels, dense, counts, augment,
        extractor_fingerprint, source, least (value), indices and values (types of numbers).
    files : list of dict
        file, rows, nonzeros, bytes and sha256 of each shard; `other_files` those of the other files.
    starts : (n_shards + 1,) int64
        Number of the first row of each shard.
    """

    path: Path
    facts: JsonObject
    files: list[JsonObject]
    other_files: dict[str, JsonObject]
    starts: Int64
    origin: str = ""
    _sound: set[int] = field(default_factory=set, repr=False, compare=False)

    @cached_property
    def shard(self) -> ColumnFileCache:
        """Return a cache that maps shards by number; the first opening checks all but the features."""
        return lru_cache(MAX_OPEN_SHARDS)(self._map_shard)

    def __getstate__(self) -> JsonObject:
        """Return the state for other processes, which map the files themselves and skip checks made here."""
        state = {name: value for name, value in self.__dict__.items() if name != "shard"}
        return {**state, "path": self.path.absolute(), "_sound": set(self._sound)}

    def __len__(self) -> int:
        return int(self.facts["rows"])

    @property
    def is_dense(self) -> bool:
        return bool(self.facts["dense"])

    @property
    def fingerprint(self) -> str:
        """Return 16 hex digits of the content."""
        content = json.dumps([self.facts, self.files, self.other_files], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def summarise(self) -> JsonObject:
        """Return the facts with the number of shards, the bytes and the fingerprint."""
        n_bytes = sum(entry["bytes"] for entry in (*self.files, *self.other_files.values()))
        return {**self.facts, "shards": len(self.files), "bytes": n_bytes, "fingerprint": self.fingerprint}

    def list_slices(self, lo: int, hi: int) -> list[ShardSlice]:
        """Return the rows lo..hi - 1, by the shards in which they lie."""
        slices = []
        for number in range(int(np.searchsorted(self.starts, lo, side="right")) - 1, len(self.files)):
            first, end = (int(n) for n in self.starts[number : number + 2])
            if first >= hi:
                break
            if max(lo, first) < min(hi, end):
                slices.append(ShardSlice(number, max(lo, first) - first, min(hi, end) - first))
        return slices

    def read_spans(self, spans: Sequence[tuple[int, int]]) -> ShardBlock:
        """Return the rows of some spans lo..hi - 1, one span after the other."""
        pieces = [piece for lo, hi in spans for piece in self.list_slices(lo, hi)]
        Y = self.gather_lists(pieces, "y", LABEL_TYPES)
        if self.is_dense:
            X = np.empty((sum(piece.hi - piece.lo for piece in pieces), int(self.facts["features"])), np.float32)
            start = 0
            slices = ([self.shard(number).numbers["features"][lo:hi]] for number, lo, hi in pieces)
            for (rows,) in column_files.prefetch_slices(slices):
                X[start : start + len(rows)] = rows
                start += len(rows)
            return ShardBlock(X, Y)
        sparse = self.gather_lists(pieces, "x", {"indices": np.int32, "values": np.float32})
        if (bad_row := _find_misplaced(sparse, int(self.facts["features"]))) is not None:
            ends = accumulate(piece.hi - piece.lo for piece in pieces)
            shard = next(piece.shard for piece, end in zip(pieces, ends, strict=True) if bad_row < end)
            raise _damaged(self.path / self.files[shard]["file"])
        return ShardBlock(Csr(sparse.starts, sparse.parts["indices"], sparse.parts["values"]), Y)

    def gather_lists(self, pieces: Sequence[ShardSlice], name: str, dtypes: Mapping[str, Any]) -> ListColumn:
        """Gather a column of lists of several pieces, as other types; missing signs are 1.

        There are no copies in between.
        """

        def stored(piece: ShardSlice) -> ListColumn:
            return self.shard(piece.shard).lists[name]

        def slices(piece: ShardSlice, lo: int, hi: int) -> list[Array]:
            flats = stored(piece).parts
            return [flats[key][lo:hi] if key in flats else np.broadcast_to(dtypes[key](1), hi - lo) for key in dtypes]

        starting = column_files.prefetch_slices([stored(piece).starts[piece.lo : piece.hi + 1]] for piece in pieces)
        ends = [chunk.astype(np.int64) for (chunk,) in starting]
        starts = column_files.compute_offsets(np.concatenate([np.zeros(0, np.int64), *map(np.diff, ends)]))
        parts = {key: np.empty(int(starts[-1]), dtype) for key, dtype in dtypes.items()}
        start = 0
        for chunk in column_files.prefetch_slices(
            slices(piece, int(bounds[0]), int(bounds[-1])) for piece, bounds in zip(pieces, ends, strict=True)
        ):
            for out, flat in zip(parts.values(), chunk, strict=True):
                out[start : start + len(flat)] = flat
            start += len(chunk[0])
        return ListColumn(starts, parts)

    def read_statistics(self) -> JsonObject:
        """Return `rows_above_0` of sparse features, `mean` and `deviation` of dense ones, `rows_of_label`.

        Shapes are (d,), and (labels,) for the last.
        """
        file = self.path / STATISTICS
        with explain_read_errors(file):
            try:
                columns, _ = column_files.map_columns(file)
            except ValueError as error:
                raise _damaged(file) from error
        arrays = {name: flat for column in columns.lists.values() for name, flat in column.parts.items()}
        of_features = ("mean", "deviation") if self.is_dense else ("rows_above_0",)
        lengths = dict.fromkeys(of_features, self.facts["features"]) | {"rows_of_label": self.facts["labels"]}
        if {name: len(flat) for name, flat in arrays.items()} != lengths:
            raise _damaged(file)
        return arrays

    def read_names(self) -> ShardNames:
        """Return the names of labels and features."""
        file = self.path / NAMES
        with explain_read_errors(file):
            content = read_input(file)
        if hashlib.sha256(content).hexdigest() != self.other_files[NAMES]["sha256"]:
            raise _damaged(file)
        names = schema_validation.parse_json(ShardNames, content, file, _REMEDY)
        features = self.facts["features"] if names.feature_names is None else len(names.feature_names)
        if (len(names.label_names), features) != (self.facts["labels"], self.facts["features"]):
            raise _damaged(file)
        return names

    def verify(self, progress: Progress = SILENT) -> None:
        """Read everything and compare it with its checksums.

        Raises
        ------
        InputError
            A file is not what was written.
        """
        files = [*((entry["file"], entry) for entry in self.files), *self.other_files.items()]
        with progress.stage(f"verifying {self.path.name}", len(files), "files") as stage:
            for name, entry in files:
                file = self.path / name
                with explain_read_errors(file), open_input(file) as stream:
                    if hashlib.file_digest(stream, "sha256").hexdigest() != entry["sha256"]:
                        raise _damaged(file)
                stage.advance()

    def _map_shard(self, number: int) -> ColumnTable:
        entry = self.files[number]
        file = self.path / entry["file"]
        with explain_read_errors(file), self.refuse_damaged(number):
            if number not in self._sound:
                self._check(column_files.map_columns(file)[0], entry)
                self._sound.add(number)
            return column_files.map_columns(file, scattered=True, check=False)[0]

    @contextmanager
    def refuse_damaged(self, number: int) -> Iterator[None]:
        """Turn errors of reading a shard into an InputError that names its file."""
        try:
            yield
        except (ValueError, LookupError) as error:
            if isinstance(error, InputError):
                raise
            raise _damaged(self.path / self.files[number]["file"]) from error

    def _check(self, columns: ColumnTable, entry: JsonObject) -> None:
        """Refuse label numbers out of range: kernels follow these, and features, unchecked."""
        width = int(self.facts["features"])
        if len(columns) != entry["rows"] or not _is_below(columns.lists["y"].parts["labels"], self.facts["labels"]):
            raise ValueError("labels out of range")
        if self.is_dense:
            if columns.numbers["features"].shape != (len(columns), width):
                raise ValueError("another width")
            return
        x = columns.lists["x"].parts
        if len(x["values"]) != entry["nonzeros"] or x["indices"].dtype.kind != "u":
            raise ValueError("other features")


def _find_misplaced(x: ListColumn, width: int) -> int | None:
    """Return the first row with a feature out of range, or below the one before it."""
    # rows are checked whenever they are read: that costs less than to read a whole shard for its first rows
    indices = x.parts["indices"]
    is_misplaced = indices.view(np.uint32) >= width
    is_falling = indices[1:] < indices[:-1]
    is_falling[x.starts[(x.starts > 0) & (x.starts < len(indices))] - 1] = False  # another row
    is_misplaced[1:] |= is_falling
    return int(np.searchsorted(x.starts, np.argmax(is_misplaced), side="right")) - 1 if is_misplaced.any() else None


def _is_below(numbers: Array, n: int) -> bool:
    return numbers.dtype.kind == "u" and (not len(numbers) or int(numbers.max()) < n)


# ---- the manifest


def is_shard_folder(path: Path) -> bool:
    """Return True if a folder holds shards, finished or not."""
    with explain_read_errors(path):
        has_manifest = all((path / name).is_file() for name in (MANIFEST, STATISTICS))  # the rows may be missing
        return has_manifest or any(path.glob("rows-*-of-*.safetensors")) or (path / PARTS / WORK).is_file()


def open_shard_folder(path: Path) -> ShardFolder:
    """Read the manifest, and check the size of every file.

    Raises
    ------
    InputError
        There is none, it is damaged or of another version, or a file is missing or has another size.
    """
    with explain_read_errors(path):
        manifest = _read_manifest(path)
        files, other_files = manifest["shards"], manifest["other_files"]
        for name, entry in [*((entry["file"], entry) for entry in files), *other_files.items()]:
            if Path(name).name != name:
                raise _damaged(path / MANIFEST)  # what lies elsewhere is not read
            file = path / name
            require(file.is_file(), f"{file} is missing; {_REMEDY}")
            if file.stat().st_size != entry["bytes"]:
                raise InputError(
                    f"{file} has {file.stat().st_size:,} bytes where {entry['bytes']:,} were written; {_REMEDY}"
                )
    starts = column_files.compute_offsets([entry["rows"] for entry in files])
    return ShardFolder(path, manifest["facts"], files, other_files, starts, str(manifest["origin"]))


def _read_manifest(path: Path) -> JsonObject:
    file = path / MANIFEST
    if not file.is_file():
        if (path / PARTS / WORK).is_file():
            raise InputError(f"the shards in {path} are not finished; run `shards()` again in the same way")
        require(not is_shard_folder(path), f"{file} is missing; {_REMEDY}")
        raise InputError(f"{path} holds no shards: it has no {MANIFEST}; give a folder that `shards()` wrote")
    foreign = "is not a list of shards; give a folder that `shards()` wrote"
    document = schema_validation.read_json_with_checksum(file, (FORMAT, VERSION), foreign, _REMEDY, MAKE_AGAIN)
    manifest = schema_validation.check_schema(ShardManifest, document, file, _REMEDY)
    facts, statistics, names = manifest.facts, *(manifest.other_files.get(name) for name in (STATISTICS, NAMES))
    sums = sum(shard.rows for shard in manifest.shards), sum(shard.nonzeros for shard in manifest.shards)
    if sums != (facts.rows, facts.nonzeros):
        raise InputError(f"{file} is damaged: its shards do not add up to facts.rows and facts.nonzeros; {_REMEDY}")
    if statistics is None or names is None or statistics.bytes < 8 * max(facts.features, facts.labels):
        raise InputError(f"{file} is damaged: other_files does not fit facts.features and facts.labels; {_REMEDY}")
    return document


def write_manifest(
    path: Path,
    facts: JsonObject,
    files: Sequence[JsonObject],
    names: JsonObject,
    statistics: Mapping[str, Mapping[str, Array]],
    origin: str = "",
) -> ShardFolder:
    """Write the files beside the shards, the manifest last, and open the folder.

    Parameters
    ----------
    facts, files, names
        See `ShardFolder`.
    statistics : mapping of mapping
        Arrays by name, under "features" and "labels".
    origin : str
        By which the source and the way of writing are known again.
    """
    contents = {NAMES: json.dumps(names, ensure_ascii=False).encode()}
    write_bytes(path / NAMES, contents[NAMES])
    entries = {NAMES: {"bytes": len(contents[NAMES]), "sha256": hashlib.sha256(contents[NAMES]).hexdigest()}}
    columns = {
        name: ListColumn(np.array([0, len(next(iter(parts.values())))]), dict(parts))
        for name, parts in statistics.items()
    }
    digest = column_files.write_columns(path / STATISTICS, ColumnTable({}, columns), {})
    entries[STATISTICS] = {"bytes": (path / STATISTICS).stat().st_size, "sha256": digest}
    manifest = {"format": FORMAT, "version": VERSION, "origin": origin, "facts": dict(facts), "shards": list(files)}
    manifest["other_files"] = entries
    schema_validation.write_json_with_checksum(path / MANIFEST, manifest)
    return open_shard_folder(path)


def write_shard(path: Path, number: int, n_shards: int, columns: ColumnTable) -> JsonObject:
    """Write a shard, atomically, and return its entry in the manifest."""
    file = path / format_shard_name(number, n_shards)
    digest = column_files.write_columns(file, columns, {})
    return _make_entry(file, columns, digest)


def find_shard(path: Path, number: int, n_shards: int) -> JsonObject | None:
    """Return the manifest entry of a shard that an earlier run wrote; None without one."""
    file = path / format_shard_name(number, n_shards)
    with explain_read_errors(file):
        if not file.is_file():
            return None
        try:
            columns, _ = column_files.map_columns(file)
        except ValueError:
            return None
        with open_input(file) as stream:
            return _make_entry(file, columns, hashlib.file_digest(stream, "sha256").hexdigest())


def format_shard_name(number: int, n_shards: int) -> str:
    return f"rows-{number:05d}-of-{n_shards:05d}.safetensors"


def count_values(columns: ColumnTable) -> int:
    """Count the values of some rows; of dense ones all."""
    sparse = columns.lists.get("x")
    return int(sparse.starts[-1]) if sparse is not None else int(columns.numbers["features"].size)


def _make_entry(file: Path, columns: ColumnTable, digest: str) -> JsonObject:
    counts = {"rows": len(columns), "nonzeros": count_values(columns), "bytes": file.stat().st_size}
    return {"file": file.name, **counts, "sha256": digest}


def _damaged(file: Path) -> InputError:
    return InputError(f"{file} is damaged; {_REMEDY}")
