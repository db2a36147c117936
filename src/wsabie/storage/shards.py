"""Rows in shards: a folder that training reads a block at a time, whatever its size.

    DIR/manifest.json                what the rows are, how many, and every file with its size and SHA-256; written last
    DIR/rows-00000-of-00150.safetensors
                                     rows 0, 1, ... as columns (`wsabie.storage.columns`)
    DIR/statistics.safetensors       of the features and labels: what scaling needs
    DIR/names.json                   {"label_names", "feature_names"}
    DIR/rejected.json                {"counts", "rejected"}: what of the source was left out

Rows lie in a random order that does not depend on how the source had them (`wsabie.studies.sharding`), and shards are
cut out of it: rows have numbers from 0, which do not depend on how large a shard is. Columns of a shard:

    x/indices, x/values              sparse features: uint16 or uint32, uint8 to float32; or
    features                         dense ones, (n, d)
    y/labels, y/signs                uint16 or uint32; int8: 1, or -1 for an explicit negative (none there: all are 1)
    id, or id/text                   numbers, or words in UTF-8
    group/text, fold                 the group where there are groups, and 16 bits of its hash
    time/text
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Csr, Float32, Int64
from wsabie.base.errors import InputError
from wsabie.base.input_files import open_input, read_input
from wsabie.base.progress import SILENT, Progress
from wsabie.storage.atomic import readable, write_bytes
from wsabie.storage.columns import Columns, KeptOpen, Lists, expected, map_columns, starts_of, write_columns
from wsabie.storage.schema import Count, Number, Sha256, check_schema, parse_json

FORMAT, VERSION = "wsabie-shards", 1
MANIFEST, STATISTICS, NAMES = "manifest.json", "statistics.safetensors", "names.json"
REJECTED = "rejected.json"
"""Not among the files of the manifest: nothing reads it but the command that wrote it, when it is run again."""
PARTS, WORK = "unfinished", "work.json"
"""The folder in the folder where work is kept until the manifest is there, and the file that says of what it is."""
MOST_OPEN = 192
"""Shards that are mapped at once: each holds an open file, of which some systems allow 256."""
MAKE_AGAIN = "delete the folder and make the shards again with `wsabie shards`"
"""What is done about shards that are damaged, where no copy is at hand."""
_REMEDY = f"restore it from a copy, or {MAKE_AGAIN}"
_HEAD = 80  # bytes of the manifest before those that its checksum covers
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class ShardFacts:
    """The part of the manifest about all rows."""

    rows: Count
    features: Number
    labels: Number
    nonzeros: Count
    pairs: Count
    dense: bool
    least: float
    counts: bool
    augment: Count
    dictionary: str | None
    values: str
    indices: str | None = None
    denied: Count = 0
    open_width: bool = False


@dataclass(frozen=True)
class FileEntry:
    """The entry of a file in the manifest."""

    bytes: Count
    sha256: Sha256


@dataclass(frozen=True)
class ShardEntry(FileEntry):
    """The entry of a shard in the manifest."""

    file: str
    rows: Count
    nonzeros: Count


@dataclass(frozen=True)
class Manifest:
    """The manifest without its checksum."""

    made_of: str
    facts: ShardFacts
    shards: list[ShardEntry]
    beside: dict[str, FileEntry]


@dataclass(frozen=True)
class ShardNames:
    """The names of labels, and of features where they have some."""

    label_names: list[str]
    feature_names: list[str] | None


class Piece(NamedTuple):
    """Rows of one shard, lo..hi - 1 in it."""

    shard: int
    lo: int
    hi: int


class Stored(NamedTuple):
    """Some rows, decoded.

    Attributes
    ----------
    X : Csr or (n, d) float32
    Y : Lists
        With the parts "labels", int32, and "signs", int8.
    """

    X: Csr | Float32
    Y: Lists


@dataclass(frozen=True)
class Shards:
    """A folder of shards.

    Attributes
    ----------
    path : Path
    facts : dict
        What the manifest says of all rows: rows, nonzeros, pairs, features, labels, dense, counts, augment, dictionary,
        source, least (value), indices and values (types of numbers).
    files : list of dict
        file, rows, nonzeros, bytes and sha256 of each shard; `beside` those of the other files.
    starts : (n_shards + 1,) int64
        Number of the first row of each shard.
    """

    path: Path
    facts: dict[str, Any]
    files: list[dict[str, Any]]
    beside: dict[str, dict[str, Any]]
    starts: Int64
    made_of: str = ""
    _sound: set[int] = field(default_factory=set, repr=False, compare=False)

    @cached_property
    def shard(self) -> KeptOpen:
        """shard(number): a shard, mapped; all but its features is looked at when it is opened for the first time."""
        return KeptOpen(self._mapped, MOST_OPEN)

    def __getstate__(self) -> dict[str, Any]:
        """For other processes, which map the files themselves, and look at none that this one has looked at."""
        state = {name: value for name, value in self.__dict__.items() if name != "shard"}
        return {**state, "path": self.path.absolute(), "_sound": set(self._sound)}

    def __len__(self) -> int:
        return int(self.facts["rows"])

    @property
    def dense(self) -> bool:
        return bool(self.facts["dense"])

    @property
    def fingerprint(self) -> str:
        """16 hex digits of the content."""
        content = json.dumps([self.facts, self.files, self.beside], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def pieces(self, lo: int, hi: int) -> list[Piece]:
        """The rows lo..hi - 1, by the shards in which they lie."""
        found = []
        for number in range(int(np.searchsorted(self.starts, lo, side="right")) - 1, len(self.files)):
            first, end = (int(n) for n in self.starts[number : number + 2])
            if first >= hi:
                break
            if max(lo, first) < min(hi, end):
                found.append(Piece(number, max(lo, first) - first, min(hi, end) - first))
        return found

    def read(self, spans: Sequence[tuple[int, int]]) -> Stored:
        """The rows of some spans lo..hi - 1, one span after the other."""
        pieces = [piece for lo, hi in spans for piece in self.pieces(lo, hi)]
        Y = self._gathered(pieces, "y", {"labels": np.int32, "signs": np.int8})
        if self.dense:
            X = np.empty((sum(piece.hi - piece.lo for piece in pieces), int(self.facts["features"])), np.float32)
            at = 0
            for (some,) in expected([self.shard(number).numbers["features"][lo:hi]] for number, lo, hi in pieces):
                X[at : at + len(some)] = some
                at += len(some)
            return Stored(X, Y)
        sparse = self._gathered(pieces, "x", {"indices": np.int32, "values": np.float32})
        if (wrong := _misplaced(sparse, int(self.facts["features"]))) is not None:
            shard = next(piece.shard for piece, end in zip(pieces, _ends(pieces), strict=True) if wrong < end)
            raise _damaged(self.path / self.files[shard]["file"])
        return Stored(Csr(sparse.starts, sparse.parts["indices"], sparse.parts["values"]), Y)

    def _gathered(self, pieces: Sequence[Piece], name: str, dtypes: Mapping[str, Any]) -> Lists:
        """A column of lists of several pieces, as other types, without copies in between; signs not there are 1."""

        def stored(piece: Piece) -> Lists:
            return self.shard(piece.shard).lists[name]

        def slices(piece: Piece, lo: int, hi: int) -> list[Any]:
            flats = stored(piece).parts
            return [flats[key][lo:hi] if key in flats else np.broadcast_to(dtypes[key](1), hi - lo) for key in dtypes]

        starting = expected([stored(piece).starts[piece.lo : piece.hi + 1]] for piece in pieces)
        ends = [some.astype(np.int64) for (some,) in starting]
        starts = starts_of(np.concatenate([np.zeros(0, np.int64), *map(np.diff, ends)]))
        parts = {key: np.empty(int(starts[-1]), dtype) for key, dtype in dtypes.items()}
        at = 0
        for some in expected(slices(piece, int(its[0]), int(its[-1])) for piece, its in zip(pieces, ends, strict=True)):
            for out, flat in zip(parts.values(), some, strict=True):
                out[at : at + len(flat)] = flat
            at += len(some[0])
        return Lists(starts, parts)

    def statistics(self) -> dict[str, Any]:
        """Of sparse features `rows_above_0`, of dense ones `mean` and `deviation`, (d,); `rows_of_label`, (labels,)."""
        file = self.path / STATISTICS
        with readable(file):
            try:
                columns, _ = map_columns(file)
            except ValueError as error:
                raise _damaged(file) from error
        found = {name: flat for column in columns.lists.values() for name, flat in column.parts.items()}
        of_features = ("mean", "deviation") if self.dense else ("rows_above_0",)
        lengths = dict.fromkeys(of_features, self.facts["features"]) | {"rows_of_label": self.facts["labels"]}
        if {name: len(flat) for name, flat in found.items()} != lengths:
            raise _damaged(file)
        return found

    def names(self) -> dict[str, list[str] | None]:
        """label_names, and feature_names or None."""
        file = self.path / NAMES
        with readable(file):
            content = read_input(file)
        if hashlib.sha256(content).hexdigest() != self.beside[NAMES]["sha256"]:
            raise _damaged(file)
        names = parse_json(ShardNames, content, file, _REMEDY)
        features = self.facts["features"] if names.feature_names is None else len(names.feature_names)
        if (len(names.label_names), features) != (self.facts["labels"], self.facts["features"]):
            raise _damaged(file)
        return asdict(names)

    def verify(self, progress: Progress = SILENT) -> None:
        """Read everything and compare it with its checksums.

        Raises
        ------
        InputError
            A file is not what was written.
        """
        files = [*((entry["file"], entry) for entry in self.files), *self.beside.items()]
        with progress.stage(f"verifying {self.path.name}", len(files), "files") as stage:
            for name, entry in files:
                file = self.path / name
                with readable(file), open_input(file) as stream:
                    if hashlib.file_digest(stream, "sha256").hexdigest() != entry["sha256"]:
                        raise _damaged(file)
                stage.advance()

    def _mapped(self, number: int) -> Columns:
        entry = self.files[number]
        file = self.path / entry["file"]
        with readable(file), self.refuse_damaged(number):
            if number not in self._sound:
                self._check(map_columns(file)[0], entry)
                self._sound.add(number)
            return map_columns(file, scattered=True, check=False)[0]

    @contextmanager
    def refuse_damaged(self, number: int) -> Iterator[None]:
        """Turn what cannot be read in a shard into an InputError that names its file."""
        try:
            yield
        except (ValueError, LookupError) as error:
            if isinstance(error, InputError):
                raise
            raise _damaged(self.path / self.files[number]["file"]) from error

    def _check(self, columns: Columns, entry: Mapping[str, Any]) -> None:
        """Kernels follow the numbers of labels, and of features (`_misplaced`), without looking."""
        width = int(self.facts["features"])
        if len(columns) != entry["rows"] or not _below(columns.lists["y"].parts["labels"], self.facts["labels"]):
            raise ValueError("labels out of range")
        if self.dense:
            if columns.numbers["features"].shape != (len(columns), width):
                raise ValueError("another width")
            return
        x = columns.lists["x"].parts
        if len(x["values"]) != entry["nonzeros"] or x["indices"].dtype.kind != "u":
            raise ValueError("other features")


def _misplaced(x: Lists, width: int) -> int | None:
    """The first row with a feature out of range, or below the one before it; rows are looked at whenever they are read.

    That costs less than to read a whole shard for the first of its rows."""
    indices = x.parts["indices"]
    wrong = indices.view(np.uint32) >= width
    falls = indices[1:] < indices[:-1]
    falls[x.starts[(x.starts > 0) & (x.starts < len(indices))] - 1] = False  # another row
    wrong[1:] |= falls
    return int(np.searchsorted(x.starts, np.argmax(wrong), side="right")) - 1 if wrong.any() else None


def _ends(pieces: Sequence[Piece]) -> Iterator[int]:
    """How many rows there are up to the end of each piece."""
    return accumulate(piece.hi - piece.lo for piece in pieces)


def _below(numbers: Any, n: int) -> bool:
    return numbers.dtype.kind == "u" and (not len(numbers) or int(numbers.max()) < n)


# ---- the manifest


def is_shard_folder(path: Path) -> bool:
    """Whether a folder holds shards, be they finished or not."""
    with readable(path):
        described = all((path / name).is_file() for name in (MANIFEST, STATISTICS))  # the rows may be missing
        return described or any(path.glob("rows-*-of-*.safetensors")) or (path / PARTS / WORK).is_file()


def open_shard_folder(path: Path) -> Shards:
    """Look at the manifest, and at the size of every file.

    Raises
    ------
    InputError
        There is none, it is damaged or of another version, or a file is missing or has another size.
    """
    with readable(path):
        manifest = _read_manifest(path)
        files, beside = manifest["shards"], manifest["beside"]
        for name, entry in [*((entry["file"], entry) for entry in files), *beside.items()]:
            if Path(name).name != name:
                raise _damaged(path / MANIFEST)  # what lies elsewhere is not read
            file = path / name
            if not file.is_file():
                raise InputError(f"{file} is missing; restore it from a copy, or {MAKE_AGAIN}")
            if file.stat().st_size != entry["bytes"]:
                raise InputError(
                    f"{file} has {file.stat().st_size:,} bytes where {entry['bytes']:,} were written; restore it from "
                    f"a copy, or {MAKE_AGAIN}"
                )
    starts = starts_of([entry["rows"] for entry in files])
    return Shards(path, manifest["facts"], files, beside, starts, str(manifest["made_of"]))


def _read_manifest(path: Path) -> dict[str, Any]:
    file = path / MANIFEST
    if not file.is_file():
        if (path / PARTS / WORK).is_file():
            raise InputError(f"the shards in {path} are not finished; run the same `wsabie shards` command again")
        if is_shard_folder(path):
            raise InputError(f"{file} is missing; restore it from a copy, or {MAKE_AGAIN}")
        raise InputError(f"{path} holds no shards: it has no {MANIFEST}; give a folder that `wsabie shards` wrote")
    if file.stat().st_size > _MOST_BYTES:
        raise InputError(f"{file} is larger than {_MOST_BYTES >> 20} MiB and was not read")
    content = read_input(file)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _damaged(file) from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"{file} is no list of shards; give a folder that `wsabie shards` wrote")
    if found.get("version") != VERSION:
        raise InputError(
            f"{path} has format {found.get('version')!r} and this program reads format {VERSION}; install the version "
            f"of wsabie that wrote it, or {MAKE_AGAIN}"
        )
    if hashlib.sha256(content[_HEAD:]).hexdigest() != found.pop("sha256", None):
        raise _damaged(file)
    known = check_schema(Manifest, found, file, _REMEDY)
    facts, wide = known.facts, known.beside.get(STATISTICS)
    summed = sum(one.rows for one in known.shards), sum(one.nonzeros for one in known.shards)
    if summed != (facts.rows, facts.nonzeros):
        raise InputError(f"{file} is damaged: its shards do not add up to facts.rows and facts.nonzeros; {_REMEDY}")
    if wide is None or NAMES not in known.beside or wide.bytes < 8 * max(facts.features, facts.labels):
        raise InputError(f"{file} is damaged: beside does not fit facts.features and facts.labels; {_REMEDY}")
    return found


def write_manifest(
    path: Path,
    facts: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
    names: Mapping[str, Any],
    statistics: Mapping[str, Mapping[str, Any]],
    made_of: str = "",
) -> Shards:
    """Write what stands beside the shards, the manifest last, and open the folder.

    Parameters
    ----------
    facts, files, names
        See `Shards`.
    statistics : mapping of mapping
        Arrays by name, under "features" and "labels".
    made_of : str
        By which the source and the way of writing are known again.
    """
    beside = {NAMES: json.dumps(names, ensure_ascii=False).encode()}
    write_bytes(path / NAMES, beside[NAMES])
    entries = {NAMES: {"bytes": len(beside[NAMES]), "sha256": hashlib.sha256(beside[NAMES]).hexdigest()}}
    columns = {
        name: Lists(np.array([0, len(next(iter(parts.values())))]), dict(parts)) for name, parts in statistics.items()
    }
    digest = write_columns(path / STATISTICS, Columns({}, columns), {})
    entries[STATISTICS] = {"bytes": (path / STATISTICS).stat().st_size, "sha256": digest}
    found = {"format": FORMAT, "version": VERSION, "made_of": made_of, "facts": dict(facts), "shards": list(files)}
    found["beside"] = entries
    body = json.dumps(found, indent=1, ensure_ascii=False).encode()[1:]
    write_bytes(path / MANIFEST, f'{{\n "sha256": "{hashlib.sha256(body).hexdigest()}",'.encode() + body)
    return open_shard_folder(path)


def write_shard(path: Path, number: int, n_shards: int, columns: Columns) -> dict[str, Any]:
    """Write a shard, atomically, and return what the manifest says of it."""
    file = path / shard_name(number, n_shards)
    digest = write_columns(file, columns, {})
    return _entry(file, columns, digest)


def found_shard(path: Path, number: int, n_shards: int) -> dict[str, Any] | None:
    """What the manifest says of a shard that an earlier run has written; None without one."""
    file = path / shard_name(number, n_shards)
    with readable(file):
        if not file.is_file():
            return None
        try:
            columns, _ = map_columns(file)
        except ValueError:
            return None
        with open_input(file) as stream:
            return _entry(file, columns, hashlib.file_digest(stream, "sha256").hexdigest())


def shard_name(number: int, n_shards: int) -> str:
    return f"rows-{number:05d}-of-{n_shards:05d}.safetensors"


def nonzeros(columns: Columns) -> int:
    """Values of some rows, those of dense ones all."""
    sparse = columns.lists.get("x")
    return int(sparse.starts[-1]) if sparse is not None else int(columns.numbers["features"].size)


def _entry(file: Path, columns: Columns, digest: str) -> dict[str, Any]:
    counts = {"rows": len(columns), "nonzeros": nonzeros(columns), "bytes": file.stat().st_size}
    return {"file": file.name, **counts, "sha256": digest}


def _damaged(file: Path) -> InputError:
    return InputError(f"{file} is damaged; {_REMEDY}")
