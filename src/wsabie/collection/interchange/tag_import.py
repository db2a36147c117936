"""Import tags from files in one journal entry; decisions of persons stay.

The file is read and its items are matched first, then all tags are written in one transaction. Unusable lines are
collected as rejects. A buffered tag takes about 60 bytes.
"""

from array import array
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.collection.annotations.decisions import State
from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection
from wsabie.collection.interchange.formats.coco import read_coco_tags
from wsabie.collection.interchange.formats.csv_jsonl import read_table
from wsabie.collection.interchange.formats.tag_record import ParsedLine, TagLine, TagProvenance
from wsabie.collection.interchange.import_writer import ImportCounts, write_import
from wsabie.collection.interchange.item_matching import ItemMatcher
from wsabie.collection.interchange.tag_export import ENDINGS
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError
from wsabie.core.progress import SILENT, Progress
from wsabie.io.parsers.array_builders import RowError
from wsabie.io.parsers.text_files import format_path
from wsabie.storage.rejects import Rejects

MOST = 5_000_000
"""Maximum number of tags in a file."""
KINDS = ("csv", "jsonl", "coco")

_BLOCK = 5000


class ImportResult(NamedTuple):
    """Counts of an import.

    Attributes
    ----------
    file : str
    tags : int
        Usable tags in the file.
    items : int
        Items with these tags.
    added, changed : int
        Annotations.
    kept : int
        Decisions of persons that the import left alone.
    labels, addresses : int
        New labels and new addresses.
    skipped : int
        Unusable lines.
    entry : int or None
        Journal entry; None if nothing changed.
    """

    file: str
    tags: int
    items: int
    added: int
    changed: int
    kept: int
    labels: int
    addresses: int
    skipped: int
    entry: int | None


def import_tags(
    collection: Collection,
    path: Path,
    *,
    by: str,
    kind: str | None = None,
    state: State = "accepted",
    rejects: Rejects | None = None,
    progress: Progress = SILENT,
) -> ImportResult:
    """Import the tags of a file.

    Parameters
    ----------
    collection : Collection
    path : Path
        CSV or JSON Lines, as `export_tags` writes them or with a column of files and one of labels; or COCO.
    by : str
        Author of the journal entry.
    kind : {"csv", "jsonl", "coco"} or None
        None chooses the format by the suffix: .jsonl, .json (COCO), anything else is CSV.
    state : {"accepted", "rejected"}
        State of tags for which the file names none.
    rejects : Rejects or None
        Collects unusable lines: unknown items and malformed content.
    progress : Progress

    Raises
    ------
    InputError
        The file is unreadable, has an unknown form, or holds more than `MOST` tags.
    """
    rejects = Rejects() if rejects is None else rejects
    n_rejects = len(rejects)
    lines = _read_lines(path, kind, rejects)
    with begin_read(collection.engine) as connection:
        buffer = TagBuffer(path, state)
        matcher = ItemMatcher(collection, connection, path.parent)
        with progress.stage("reading", None, "lines") as stage:
            while block := list(islice(lines, _BLOCK)):
                buffer.add(_keep_tag_lines(block, path, rejects), matcher, rejects)
                stage.advance(len(block))
    if not buffer.items and not len(rejects):
        raise InputError(f"{format_path(path)} holds no tags; check that it is the file that you mean")
    counts = write_import(collection, buffer, by=by, rejects=rejects, progress=progress)
    return _make_result(path, buffer, counts, len(rejects) - n_rejects)


def _make_result(path: Path, buffer: "TagBuffer", counts: ImportCounts, skipped: int) -> ImportResult:
    return ImportResult(str(path), len(buffer.items), *counts[:-1], skipped, counts.entry)


def _read_lines(path: Path, kind: str | None, rejects: Rejects) -> Iterator[ParsedLine]:
    kind = kind or ENDINGS.get(Path(path.name.lower().removesuffix(".gz")).suffix, "csv")
    if kind not in KINDS:
        raise InputError(f"{kind} files cannot be imported; give one of {', '.join(KINDS)}")
    return read_coco_tags(path, rejects) if kind == "coco" else read_table(path, rejects, is_json=kind == "jsonl")


def _keep_tag_lines(block: list[ParsedLine], path: Path, rejects: Rejects) -> list[TagLine]:
    tag_lines: list[TagLine] = []
    for line in block:
        if isinstance(line, TagLine):
            tag_lines.append(line)
        else:
            rejects.add(f"{format_path(path)}:{line[0]}", line[1].reason, line[1].detail)
    return tag_lines


class LabelMetadata(NamedTuple):
    """Facts about a label in a file beside its name; see `tag_record.Tag`."""

    language: str
    parents: tuple[str, ...]
    synonyms: tuple[tuple[str, str], ...]
    wordnet: str


class TagBuffer:
    """Tags of a file as numbers.

    Attributes
    ----------
    items, labels, regions, states, decider_ids, at, scores, probabilities, lines : array
        One entry per tag. An item below 0 is the new address -1 - item; decider -1 is unknown; `at` is in microseconds;
        an unknown score is NaN.
    addresses, names, places, deciders : dict
        Numbers of new addresses, labels, regions and (origin, by, model, model_made).
    about : dict
        Metadata of the labels that have some.
    """

    def __init__(self, path: Path, state: State) -> None:
        self.path, self.state = path, state
        self.items, self.at, self.lines = array("q"), array("q"), array("q")
        self.labels, self.regions, self.decider_ids = array("i"), array("i"), array("i")
        self.states = array("b")
        self.scores, self.probabilities = array("d"), array("d")
        self.addresses: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self.places: dict[str, int] = {}
        self.deciders: dict[tuple[str, str, str, str], int] = {}
        self.about: dict[str, LabelMetadata] = {}
        self._name_cache: dict[str, str | RowError] = {}

    def add(self, lines: list[TagLine], matcher: ItemMatcher, rejects: Rejects) -> None:
        """Add the tags of some lines.

        Raises
        ------
        InputError
            The buffer holds more than `MOST` tags.
        """
        for line, match in zip(lines, matcher.find(lines), strict=True):
            place = f"{format_path(self.path)}:{line.line}"
            if isinstance(match, RowError):
                rejects.add(place, match.reason, match.detail)
                continue
            items = (-1 - _get_number(self.addresses, match),) if isinstance(match, str) else match
            for label in line.labels:
                name = self._normalise_name(label)
                if isinstance(name, RowError):
                    rejects.add(place, name.reason, name.detail)
                    continue
                if name not in self.about and (line.language or line.parents or line.synonyms or line.wordnet):
                    self.about[name] = self._parse_metadata(line, place, rejects)
                for item in items:
                    self._append(item, name, line)
        if len(self.items) > MOST:
            raise InputError(f"{format_path(self.path)} holds more than {MOST:,} tags; split it and import the parts")

    def _append(self, item: int, name: str, line: TagLine) -> None:
        provenance = line.provenance or _UNKNOWN
        decider = (provenance.origin, provenance.by, provenance.model, provenance.model_made)
        self.items.append(item)
        self.labels.append(_get_number(self.names, name))
        self.regions.append(_get_number(self.places, line.region))
        self.states.append((line.state or self.state) == "accepted")
        self.decider_ids.append(-1 if line.provenance is None else _get_number(self.deciders, decider))
        self.at.append(provenance.at)
        self.scores.append(_NAN if provenance.score is None else provenance.score)
        self.probabilities.append(_NAN if provenance.probability is None else provenance.probability)
        self.lines.append(line.line)

    def _parse_metadata(self, line: TagLine, place: str, rejects: Rejects) -> LabelMetadata:
        names = {text: self._normalise_name(text) for text in (*line.parents, *(name for name, _ in line.synonyms))}
        for name_error in names.values():
            if isinstance(name_error, RowError):
                rejects.add(place, name_error.reason, name_error.detail)
        valid_names = {text: name for text, name in names.items() if isinstance(name, str)}
        parents = tuple(valid_names[name] for name in line.parents if name in valid_names)
        synonyms = tuple((valid_names[name], language) for name, language in line.synonyms if name in valid_names)
        try:
            wordnet = label_store.normalise_concept(line.wordnet)
        except InputError as error:
            wordnet = ""
            rejects.add(place, "text that is no meaning", str(error))
        return LabelMetadata(line.language, parents, synonyms, wordnet)

    def _normalise_name(self, label: str) -> str | RowError:
        name = self._name_cache.get(label)
        if name is None:
            try:
                name = label_store.normalise_name(label)
            except InputError:
                name = RowError("text that cannot be a label", ascii(label)[:100])
            self._name_cache[label] = name
        return name


_NAN = float("nan")
_UNKNOWN = TagProvenance("", "", 0, "", "", None, None)


def _get_number(numbers: dict[Any, int], key: Any) -> int:
    return numbers.setdefault(key, len(numbers))
