"""Import tags from files in one journal entry; decisions of persons stay.

The file is read and its items are matched first, then all tags are written in one transaction. Unusable lines are
collected as rejects. A buffered tag takes about 60 bytes.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice, pairwise
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sqlalchemy import Connection, insert, select

from wsabie.collection.annotations.decisions import Decision, DecisionCounts, State, write_decisions
from wsabie.collection.db.database import begin_read, group_pairs, iterate_chunks, select_in
from wsabie.collection.db.journal import JournalWriter, Row, begin_entry, format_current_time, read_rows
from wsabie.collection.db.tables import items, labels, models, roots
from wsabie.collection.folder.collection import WEB_ROOT, Collection
from wsabie.collection.interchange.coco_tags import read_coco_tags
from wsabie.collection.interchange.item_matching import ItemMatcher
from wsabie.collection.interchange.tag_record import ENDINGS, TagLine, format_time
from wsabie.collection.interchange.tag_tables import read_table
from wsabie.collection.labels import label_store
from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.io.formats.tool_files import describe_tool
from wsabie.io.parsers.json_values import is_array
from wsabie.io.parsers.text_files import format_path, read_head
from wsabie.storage.rejects import Rejects, RowError
from wsabie.vocabulary.encoding_repair import report_wrong_encoding, restart_repair_log

MAX_TAGS = 5_000_000
"""Maximum number of tags in a file."""
KINDS = ("csv", "jsonl", "coco")

CONFLICT = "tag at odds with a later line"

_READ_BLOCK, _WRITE_BLOCK = 5000, 10_000
_TAG = np.dtype(
    [
        ("item", "i8"),  # below 0: the new address -1 - item
        *((name, "i4") for name in ("label", "region", "decider")),  # decider -1: unknown
        ("is_accepted", "?"),
        *((name, "i8") for name in ("at", "line")),  # at: microseconds since 1970
        *((name, "f8") for name in ("score", "probability")),  # NaN: unknown
    ]
)
"""Buffered tag, its names as numbers."""


Tags: TypeAlias = np.ndarray[Any, Any]


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
    kept_by_person : int
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
    kept_by_person: int
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
        The file is unreadable, has an unknown form, or holds more than `MAX_TAGS` tags.
    """
    restart_repair_log()
    rejects = Rejects() if rejects is None else rejects
    lines, n_rejects = _read_lines(path, kind, rejects), len(rejects)
    with begin_read(collection.engine) as connection:
        buffer = TagBuffer(path, state, rejects)
        matcher = ItemMatcher(collection, connection, path.parent)
        with progress.stage("reading", None, "lines") as stage:
            while block := list(islice(lines, _READ_BLOCK)):
                buffer.add(block, matcher)
                stage.advance(len(block))
    report_wrong_encoding(path, buffer.names)
    if not buffer.n_tags and not len(rejects):
        raise InputError(f"{format_path(path)} holds no tags; check that it is the file that you mean")
    return _write_tags(collection, buffer, by, progress)._replace(skipped=len(rejects) - n_rejects)


def _read_lines(path: Path, kind: str | None, rejects: Rejects) -> Iterator[TagLine]:
    head = read_head(path)
    text_kind = "jsonl" if head.lstrip()[:1] == b"{" else "csv"
    kind = kind or ENDINGS.get(Path(path.name.lower().removesuffix(".gz")).suffix, text_kind)
    require(kind in KINDS, f"{kind} files cannot be imported; give one of {', '.join(KINDS)}")
    if advice := describe_tool(path, head):
        raise InputError(advice)
    if kind == "coco" and not is_array(head):
        return read_coco_tags(path, rejects)
    return read_table(path, rejects, is_json=kind != "csv")


class TagBuffer:
    """Tags of a file as numbers.

    Attributes
    ----------
    n_tags : int
    addresses, names, regions, deciders : dict
        Numbers of new addresses, labels, regions and (origin, by, model, model_made).
    lines_by_name : dict
        First line with facts about a label beside its name, normalised.
    """

    def __init__(self, path: Path, state: State, rejects: Rejects) -> None:
        self.path, self.state, self.rejects = path, state, rejects
        self.n_tags = 0
        self.addresses: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self.regions: dict[str, int] = {}
        self.deciders: dict[tuple[str, str, str, str], int] = {}
        self.lines_by_name: dict[str, TagLine] = {}
        self._blocks: list[Tags] = []
        self._normalise_name = cache(_normalise_name)

    @property
    def tags(self) -> Tags:
        """All tags in their order, (n_tags,)."""
        return np.concatenate([np.empty(0, _TAG), *self._blocks])

    def add(self, lines: list[TagLine], matcher: ItemMatcher) -> None:
        """Add the tags of some lines.

        Raises
        ------
        InputError
            The buffer holds more than `MAX_TAGS` tags.
        """
        rows: list[tuple[Any, ...]] = []
        for line, match in zip(lines, matcher.find(lines), strict=True):
            where = f"{format_path(self.path)}:{line.line}"
            with self.rejects.catch(where):
                if isinstance(match, RowError):
                    raise match
                items = (-1 - _intern(self.addresses, match),) if isinstance(match, str) else match
                for label in line.labels:
                    with self.rejects.catch(where):
                        name = self._normalise_name(label)
                        has_facts = line.language or line.parents or line.synonyms or line.wordnet
                        if has_facts and name not in self.lines_by_name:
                            self.lines_by_name[name] = self._normalise_facts(line, where)
                        rows += [self._make_row(item, name, line) for item in items]
        self._blocks.append(np.array(rows, _TAG))
        self.n_tags += len(rows)
        if self.n_tags > MAX_TAGS:
            fact = f"{format_path(self.path)} holds more than {MAX_TAGS:,} tags"
            raise InputError(f"{fact}; split it and import the parts")

    def _make_row(self, item: int, name: str, line: TagLine) -> tuple[Any, ...]:
        label, region = _intern(self.names, name), _intern(self.regions, line.region)
        is_accepted = (line.state or self.state) == "accepted"
        if (source := line.provenance) is None:
            return item, label, region, -1, is_accepted, 0, line.line, None, None
        decider = _intern(self.deciders, (source.origin, source.by, source.model, source.model_made))
        return item, label, region, decider, is_accepted, source.at, line.line, source.score, source.probability

    def _normalise_facts(self, line: TagLine, where: str) -> TagLine:
        names: dict[str, str] = {}
        for text in dict.fromkeys((*line.parents, *(name for name, _ in line.synonyms))):
            with self.rejects.catch(where):
                names[text] = self._normalise_name(text)
        parents = tuple(names[name] for name in line.parents if name in names)
        synonyms = tuple((names[name], language) for name, language in line.synonyms if name in names)
        try:
            wordnet = label_store.normalise_concept(line.wordnet)
        except InputError as error:
            wordnet = ""
            self.rejects.add(where, "text that is not a meaning", str(error))
        return line._replace(parents=parents, synonyms=synonyms, wordnet=wordnet)


def _normalise_name(label: str) -> str:
    try:
        return label_store.normalise_name(label)
    except InputError as error:
        raise RowError("text that cannot be a label", ascii(label)[:100]) from error


def _intern(positions: dict[Any, int], key: Any) -> int:
    """Return the position of a key, which is added if it is new."""
    return positions.setdefault(key, len(positions))


def _write_tags(collection: Collection, buffer: TagBuffer, by: str, progress: Progress) -> ImportResult:
    """Write the tags of a file; the last of conflicting lines counts, the others are rejected."""
    name = format_path(buffer.path.name)
    with (
        progress.stage("writing", buffer.n_tags, "tags") as stage,
        begin_entry(collection.engine, by, "import") as change,
    ):
        addresses, n_addresses = _find_addresses(change.connection, list(buffer.addresses))
        label_ids, n_labels = _find_labels(change, buffer)
        tags, counts = buffer.tags, DecisionCounts()
        is_new = tags["item"] < 0
        tags["item"][is_new] = addresses[-1 - tags["item"][is_new]]
        tags["label"] = label_ids[tags["label"]]
        make_decision = _make_decision_maker(change, buffer)
        for block in _iterate_blocks(tags):
            _reject_conflicts(block, buffer)
            block_counts = write_decisions(change, map(make_decision, block), origin="import", by=name)
            counts = DecisionCounts(*map(sum, zip(counts, block_counts, strict=True)))
            stage.advance(len(block))
        change.summary = f"{counts.added + counts.changed:,} tags of {name}"
    figures = len(np.unique(tags["item"])), counts.added, counts.changed, counts.kept_by_person, n_labels, n_addresses
    return ImportResult(str(buffer.path), buffer.n_tags, *figures, 0, change.entry)


def _iterate_blocks(tags: Tags) -> Iterator[Tags]:
    """Yield tags sorted by item, and within a tag by line; all tags of an item are in one block."""
    tags = tags[np.lexsort((tags["region"], tags["label"], tags["item"]))]
    start, items = 0, tags["item"]
    while start < len(items):
        end = int(np.searchsorted(items, items[min(start + _WRITE_BLOCK, len(items)) - 1], "right"))
        yield tags[start:end]
        start = end


def _reject_conflicts(block: Tags, buffer: TagBuffer) -> None:
    """Reject rows that contradict a later row of the same tag."""
    keys = block[["item", "label", "region"]]
    is_conflict = (keys[1:] == keys[:-1]) & (block["is_accepted"][1:] != block["is_accepted"][:-1])
    for line in block["line"][:-1][is_conflict]:
        buffer.rejects.add(f"{format_path(buffer.path)}:{line}", CONFLICT)


def _make_decision_maker(change: JournalWriter, buffer: TagBuffer) -> Callable[[Any], Decision]:
    """Return the function from a buffered tag to its decision."""
    regions = list(buffer.regions)
    model_ids = {key[2:]: _find_model(change, *key[2:]) for key in buffer.deciders if key[2]}
    deciders: list[Row] = [
        {"origin": key[0], "by": key[1], "model_id": model_ids.get(key[2:])} for key in buffer.deciders
    ]

    def make_decision(tag: Any) -> Decision:
        item, label, region, decider, is_accepted, at, _, score, probability = tag.item()
        state: State = "accepted" if is_accepted else "rejected"
        provenance = None
        if decider >= 0:
            figures = {"score": score, "probability": probability}
            figures = {name: None if isnan(figure) else figure for name, figure in figures.items()}
            provenance = deciders[decider] | {"at": format_time(at)} | figures
        return Decision(item, label, state, regions[region], provenance)

    return make_decision


def _find_addresses(connection: Connection, addresses: list[str]) -> tuple[Int64, int]:
    """Return the item ids of addresses and the number of new items; no undo removes items."""
    if not addresses:
        return np.empty(0, np.int64), 0
    web_root = connection.scalar(select(roots.c.id).where(roots.c.path == WEB_ROOT))
    if web_root is None:
        web_root = connection.execute(insert(roots).values(path=WEB_ROOT)).inserted_primary_key[0]  # type: ignore[index]  # it has one
    is_address = select(items.c.path, items.c.id).where(items.c.root_id == web_root)
    item_ids: dict[str, int] = dict(select_in(connection, is_address, items.c.path, addresses))
    new = [address for address in addresses if address not in item_ids]
    added = {"root_id": web_root, "state": "present", "added_at": format_current_time()}
    for part in iterate_chunks(new, _WRITE_BLOCK):
        rows = [added | {"path": path, "folder": path.rpartition("/")[0]} for path in part]
        connection.execute(insert(items), rows)
    item_ids |= dict(select_in(connection, is_address, items.c.path, new))
    return np.array([item_ids[address] for address in addresses], np.int64), len(new)


def _find_labels(change: JournalWriter, buffer: TagBuffer) -> tuple[Int64, int]:
    """Return the label ids in the order of the file and the number of new labels; add their metadata."""
    facts, names = buffer.lines_by_name, list(buffer.names)
    all_names = list(dict.fromkeys([*names, *(name for line in facts.values() for name in line.parents)]))
    existing = label_store.find_labels(change.connection, all_names)
    by_language = group_pairs((facts[name].language if name in facts else "", name) for name in all_names)
    label_ids: dict[str, int] = {}
    for language, group in by_language.items():
        label_ids |= label_store.ensure_labels(change, group, language)
    wordnets = {name: line.wordnet for name, line in facts.items() if line.wordnet and name not in existing}
    change.update(labels, {label_ids[name]: {"wordnet": wordnet} for name, wordnet in wordnets.items()})
    _set_parents(change, label_ids, buffer)
    for name, line in facts.items():
        for synonym in label_store.add_synonyms(change, label_ids[name], dict(line.synonyms)) if line.synonyms else ():
            buffer.rejects.add(name, "synonym that another label has", synonym)
    n_new = len(set(label_ids.values()) - set(existing.values()))
    return np.array([label_ids[name] for name in names], np.int64), n_new


def _set_parents(change: JournalWriter, label_ids: dict[str, int], buffer: TagBuffer) -> None:
    """Set the parents of labels that have none."""
    paths = ((*line.parents, name) for name, line in buffer.lines_by_name.items())
    pairs = {label_ids[child]: label_ids[parent] for path in paths for parent, child in pairwise(path)}
    orphans = {row["id"] for row in read_rows(change.connection, labels, pairs) if row["parent_id"] is None}
    for child, parent in pairs.items():
        if child not in orphans or child == parent:
            continue
        try:
            label_store.set_parent(change, child, parent)
        except InputError as error:
            buffer.rejects.add(str(child), "label that would be above itself", str(error))


def _find_model(change: JournalWriter, folder: str, made_at: str) -> int:
    """Return the id of a model; a missing one is added as removed."""
    c, dated_name = models.c, f"{folder} of {made_at}"
    query = select(c.id, c.folder, c.created_at).where(c.folder.in_([folder, dated_name]))
    rows = change.connection.execute(query).all()
    for model_id, _, row_made_at in rows:
        if row_made_at == made_at:
            return int(model_id)
    name = dated_name if any(row.folder == folder for row in rows) else folder
    row = {"folder": name, "created_at": made_at, "method": "full", "last_entry_id": 0}
    return change.add(models, [row | {"in_use": False, "facts": {}, "figures": {}, "is_removed": True}])[0]
