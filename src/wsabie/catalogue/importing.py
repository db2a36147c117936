"""Tags from files into a collection, in one entry of the journal: what persons decided in it stays.

The file is read and its items are looked up first, then all is written in one transaction. What cannot be used is
listed by its line. A tag is about 60 bytes until it is written.
"""

from array import array
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.base.errors import InputError
from wsabie.base.progress import SILENT, Progress
from wsabie.catalogue import book
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import State
from wsabie.catalogue.exporting import ENDINGS
from wsabie.catalogue.formats.coco import read_coco_tags
from wsabie.catalogue.formats.record import Line, Said, Told
from wsabie.catalogue.formats.tables import read_table
from wsabie.catalogue.matching import Matcher
from wsabie.catalogue.settling import Settled, settle
from wsabie.sources.build import BadRow
from wsabie.sources.text import shown
from wsabie.storage.rejects import Rejects

MOST = 5_000_000
"""Tags of a file, at most."""
KINDS = ("csv", "jsonl", "coco")

_BLOCK = 5000


class Imported(NamedTuple):
    """What an import did.

    Attributes
    ----------
    file : str
    tags : int
        That it holds and that could be used.
    items : int
        They are of.
    added, changed : int
        Annotations.
    kept : int
        That persons had decided, and that stay as they are.
    labels, addresses : int
        That are new.
    skipped : int
        Lines that could not be used.
    entry : int or None
        Of the journal; None where nothing changed.
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
) -> Imported:
    """Take the tags of a file.

    Parameters
    ----------
    collection : Collection
    path : Path
        CSV or JSON lines, as `export_tags` writes them or with a column of files and one of labels; or COCO.
    by : str
        Who imports.
    kind : {"csv", "jsonl", "coco"} or None
        None: by the ending of its name; what is neither .jsonl nor .json is CSV.
    state : {"accepted", "rejected"}
        Of tags of which the file does not say.
    rejects : Rejects or None
        Lists lines that could not be used: their items are unknown, or something in them is wrong.
    progress : Progress

    Raises
    ------
    InputError
        The file cannot be read, is of another form, or holds more than `MOST` tags.
    """
    rejects = Rejects() if rejects is None else rejects
    before = len(rejects)
    lines = _lines(path, kind, rejects)
    with reading(collection.engine) as connection:
        gathered = Gathered(path, state)
        matcher = Matcher(collection, connection, path.parent)
        with progress.stage("reading", None, "lines") as stage:
            while block := list(islice(lines, _BLOCK)):
                gathered.add(_usable(block, path, rejects), matcher, rejects)
                stage.advance(len(block))
    if not gathered.items and not len(rejects):
        raise InputError(f"{shown(path)} holds no tags; check that it is the file that you mean")
    settled = settle(collection, gathered, by=by, rejects=rejects, progress=progress)
    return _told(path, gathered, settled, len(rejects) - before)


def _told(path: Path, gathered: "Gathered", settled: Settled, skipped: int) -> Imported:
    return Imported(str(path), len(gathered.items), *settled[:-1], skipped, settled.entry)


def _lines(path: Path, kind: str | None, rejects: Rejects) -> Iterator[Line]:
    kind = kind or ENDINGS.get(Path(path.name.lower().removesuffix(".gz")).suffix, "csv")
    if kind not in KINDS:
        raise InputError(f"{kind} files cannot be imported; give one of {', '.join(KINDS)}")
    return read_coco_tags(path, rejects) if kind == "coco" else read_table(path, rejects, is_json=kind == "jsonl")


def _usable(block: list[Line], path: Path, rejects: Rejects) -> list[Said]:
    usable: list[Said] = []
    for line in block:
        if isinstance(line, Said):
            usable.append(line)
        else:
            rejects.add(f"{shown(path)}:{line[0]}", line[1].reason, line[1].detail)
    return usable


class About(NamedTuple):
    """What a file says of a label beside its name; see `record.Tag`."""

    language: str
    parents: tuple[str, ...]
    synonyms: tuple[tuple[str, str], ...]
    wordnet: str


class Gathered:
    """Tags of a file, as numbers.

    Attributes
    ----------
    items, labels, regions, states, told, at, scores, probabilities, lines : array
        Of each tag. An item below 0 is the address -1 - number; `told` is the number of who told, -1 = nobody;
        `at` is in microseconds; a score that is not known is NaN.
    addresses, names, places, tellers : dict
        Numbers by text: new addresses, labels, regions, and (origin, by, model, model_made).
    about : dict
        By label, where the file says more than its name.
    """

    def __init__(self, path: Path, state: State) -> None:
        self.path, self.state = path, state
        self.items, self.at, self.lines = array("q"), array("q"), array("q")
        self.labels, self.regions, self.told = array("i"), array("i"), array("i")
        self.states = array("b")
        self.scores, self.probabilities = array("d"), array("d")
        self.addresses: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self.places: dict[str, int] = {}
        self.tellers: dict[tuple[str, str, str, str], int] = {}
        self.about: dict[str, About] = {}
        self._spelt: dict[str, str | BadRow] = {}

    def add(self, said: list[Said], matcher: Matcher, rejects: Rejects) -> None:
        """Take what some lines say.

        Raises
        ------
        InputError
            These are more than `MOST`.
        """
        for one, found in zip(said, matcher.find(said), strict=True):
            where = f"{shown(self.path)}:{one.line}"
            if isinstance(found, BadRow):
                rejects.add(where, found.reason, found.detail)
                continue
            items = (-1 - _number(self.addresses, found),) if isinstance(found, str) else found
            for label in one.labels:
                name = self._name(label)
                if isinstance(name, BadRow):
                    rejects.add(where, name.reason, name.detail)
                    continue
                if name not in self.about and (one.language or one.parents or one.synonyms or one.wordnet):
                    self.about[name] = self._about(one, where, rejects)
                for item in items:
                    self._append(item, name, one)
        if len(self.items) > MOST:
            raise InputError(f"{shown(self.path)} holds more than {MOST:,} tags; split it and import the parts")

    def _append(self, item: int, name: str, said: Said) -> None:
        told = said.told or _NOBODY
        teller = (told.origin, told.by, told.model, told.model_made)
        self.items.append(item)
        self.labels.append(_number(self.names, name))
        self.regions.append(_number(self.places, said.region))
        self.states.append((said.state or self.state) == "accepted")
        self.told.append(-1 if said.told is None else _number(self.tellers, teller))
        self.at.append(told.at)
        self.scores.append(_NAN if told.score is None else told.score)
        self.probabilities.append(_NAN if told.probability is None else told.probability)
        self.lines.append(said.line)

    def _about(self, said: Said, where: str, rejects: Rejects) -> About:
        spelt = {text: self._name(text) for text in (*said.parents, *(name for name, _ in said.synonyms))}
        for bad in spelt.values():
            if isinstance(bad, BadRow):
                rejects.add(where, bad.reason, bad.detail)
        good = {text: name for text, name in spelt.items() if isinstance(name, str)}
        parents = tuple(good[name] for name in said.parents if name in good)
        synonyms = tuple((good[name], of) for name, of in said.synonyms if name in good)
        try:
            wordnet = book.meaning(said.wordnet)
        except InputError as error:
            wordnet = ""
            rejects.add(where, "text that is no meaning", str(error))
        return About(said.language, parents, synonyms, wordnet)

    def _name(self, label: str) -> str | BadRow:
        found = self._spelt.get(label)
        if found is None:
            try:
                found = book.spelt(label)
            except InputError:
                found = BadRow("text that cannot be a label", ascii(label)[:100])
            self._spelt[label] = found
        return found


_NAN = float("nan")
_NOBODY = Told("", "", 0, "", "", None, None)


def _number(numbers: dict[Any, int], key: Any) -> int:
    return numbers.setdefault(key, len(numbers))
