"""Scan of a collection: new, moved, changed, missing and returned files are written to the catalogue.

A file with the same size and time as before counts as unchanged, unless it was unreadable. Any other file is identified
by its content (BLAKE2b, 16 bytes). So an item keeps its annotations when its file is renamed, moved, edited in place or
missing. A copy is a new item. A scan never deletes an item.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import begin_entry
from wsabie.collection.folder.collection import Collection
from wsabie.collection.scan.file_discovery import RootContents, discover_all_roots
from wsabie.collection.scan.file_inspection import SKIPPED, FileInspection, FileStat, InspectionTask, inspect_files
from wsabie.collection.scan.roots import (
    change_tag_source,
    check_tag_source,
    list_roots,
    read_modality,
    save_root_options,
)
from wsabie.collection.scan.scan_writer import (
    FileRecord,
    ItemRecord,
    MoveDetector,
    ScanKind,
    ScanRecord,
    UnlistedTagState,
    assign_items,
    read_known_items,
    split_label_names,
    write_block,
    write_journal_line,
    write_missing,
)
from wsabie.core.executors import Executor, SerialExecutor
from wsabie.core.progress import SILENT, Progress
from wsabie.storage.rejects import Rejects

BLOCK_SIZE = 500
"""Files in one transaction."""
MAX_SERIAL_FILES = 256
"""Largest number of files that are inspected without extra processes."""

_CHUNK_SIZE = 16


class UnreachableRoot(NamedTuple):
    """A root whose items stay as they are, because it is unreachable or suddenly empty."""

    folder: str
    reason: str
    items: int


class ScanResult(NamedTuple):
    """Result of a scan; every file is counted once from `new` to `unchanged`.

    Attributes
    ----------
    new, moved, changed, found_again, unchanged : int
        Files: new; at another path; with other content; missing before; as before.
    missing : int
        Items whose files are gone.
    unreadable : int
        Unreadable files among all these.
    tagged : int
        Accepted tags that files supplied.
    modality : str
        "pictures", "sounds", "documents"; "" before any file was found.
    away : tuple of UnreachableRoot
    notes : tuple of str
        Remarks for people on the sources of tags.
    still_unreadable : int
        Unreadable files that were unreadable before, with the same content.
    withdrawn : int
        Tags that a file supplied and no longer lists, taken back.
    held : int
        Such tags that stay: their file is gone, unreadable or another one, or the picture still contains them.
    """

    new: int
    moved: int
    changed: int
    missing: int
    found_again: int
    unchanged: int
    unreadable: int
    tagged: int
    modality: str
    away: tuple[UnreachableRoot, ...]
    notes: tuple[str, ...] = ()
    still_unreadable: int = 0
    withdrawn: int = 0
    held: int = 0

    @property
    def has_changes(self) -> bool:
        """Return whether the scan changed the catalogue."""
        return any((self.new, self.moved, self.changed, self.missing, self.found_again, self.tagged, self.withdrawn))

    @property
    def summary(self) -> str:
        """Summary in one line; empty if nothing changed."""
        files = self.new, self.moved, self.changed, self.found_again, self.unreadable - self.still_unreadable
        unreadable = "of them unreadable" if any(files[:4]) else "unreadable now"
        words = "new", "moved", "changed", "found again", unreadable, "missing", "tags from files", "tags withdrawn"
        counts = zip((*files, self.missing, self.tagged, self.withdrawn), words, strict=True)
        return ", ".join(f"{n:,} {word}" for n, word in counts if n)


def serialize_scan(result: ScanResult) -> dict[str, Any]:
    """Return the result of a scan as a JSON document."""
    return result._asdict() | {"away": [root._asdict() for root in result.away]}


def scan_collection(
    collection: Collection,
    *,
    by: str,
    tags: str | None = None,
    rehash: bool = False,
    always: bool = False,
    files: Sequence[RootContents] = (),
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> ScanResult:
    """Scan all folders of a collection.

    A stopped scan loses only its last block; the next scan goes on from there.

    Parameters
    ----------
    collection : Collection
    by : str
        Author of the journal entry.
    tags : str or None
        New source of tags, one of `roots.TAGS`; None: as before, at first "auto".
    rehash : bool
        Read all files, including those with the same size and time.
    always : bool
        Add a journal entry even if nothing changed.
    files : sequence of RootContents
        Contents of the folders, if they were discovered before the folders became part of the collection.
    executor : Executor or None
        Runs the inspections; None: in this process.
    progress : Progress
    rejects : Rejects or None
        Collects unreadable files, and the links and tags that are left out.

    Raises
    ------
    InputError
        The source of tags does not fit the collection, or the database is not writable.
    """
    check_tag_source(collection, tags)
    rejects = Rejects() if rejects is None else rejects
    roots, contents_by_folder = list_roots(collection), {entry.root.folder: entry for entry in files}
    if contents_by_folder.keys() >= {root.folder for root in roots}:
        contents = [contents_by_folder[root.folder]._replace(root=root) for root in roots]
    else:
        contents = discover_all_roots(roots, read_modality(collection), tags, rejects, progress)
    run = _ScanRun(collection, by, contents, rejects)
    run.save_options(is_done=False)
    run.inspect_changes(executor or SerialExecutor(), progress, rehash)
    run.update_tags(executor or SerialExecutor(), progress)
    run.record_missing()
    run.save_options(is_done=True)
    result = run.make_result()
    if result.has_changes or always or run.journal_entries:
        summary = ", ".join(part for part in (result.summary, *dict.fromkeys(run.source_changes)) if part)
        summary = summary or ("labels put below others" if run.journal_entries else "nothing new")
        write_journal_line(collection.engine, by, summary, run.journal_entries)
    return result


class _ScanRun:
    """State of one running scan."""

    def __init__(self, collection: Collection, by: str, contents: Sequence[RootContents], rejects: Rejects) -> None:
        self.collection, self.by, self.rejects = collection, by, rejects
        self.counts: Counter[str] = Counter()
        self.journal_entries: list[int] = []
        self.source_changes: list[str] = []
        with begin_read(collection.engine) as connection:
            items = read_known_items(connection, [entry.root.id for entry in contents])
        self.items_by_path = {(item.root, item.path): item for item in items}
        present_counts = Counter(item.root for item in items if item.state != "missing")
        self.unreachable = tuple(
            UnreachableRoot(
                str(entry.root.folder),
                entry.unreachable_reason or "there is nothing in it",
                present_counts[entry.root.id],
            )
            for entry in contents
            if entry.unreachable_reason or (not entry.files and present_counts[entry.root.id])
        )
        self.contents = {entry.root.id: entry for entry in contents}
        unreachable_folders = {entry.folder for entry in self.unreachable}
        self.vanished_items = {
            item.id: item
            for item in items
            if str((item_root := self.contents[item.root]).root.folder) not in unreachable_folders
            and item.path not in item_root.files
            and item_root.covers(item.path)
        }

    def save_options(self, *, is_done: bool) -> None:
        """Save the scan options of all roots; until the scan is done they say that tags must be read again."""
        for contents in self.contents.values():
            options = {name: value for name, value in contents.options.items() if not (is_done and name == "anew")}
            if options != (contents.options if is_done else contents.root.options):
                with begin_write(self.collection.engine) as connection:
                    save_root_options(connection, contents.root.id, options)
            if not is_done:  # last: if the scan is killed before this, the next one reads all tags again
                self._record_source_change(contents)

    def _record_source_change(self, contents: RootContents) -> None:
        """Record a new source of tags in the journal, so that undoing the scan restores the old one."""
        old_source, new_source = (options.get("tags") for options in (contents.root.options, contents.options))
        if old_source in (None, new_source):
            return
        message = f"tags from {new_source} in place of {old_source}"
        with begin_entry(self.collection.engine, self.by, "scan", message) as change:
            change_tag_source(change, contents.root.id, str(new_source))
        if change.n_changes:
            self.journal_entries.append(change.id)
            self.source_changes.append(message)

    def inspect_changes(self, executor: Executor, progress: Progress, rehash: bool) -> None:
        """Inspect the files that are new or may have changed, and write what they are."""
        candidates = [
            (root, name)
            for root, contents in self.contents.items()
            for name, stat in contents.files.items()
            if rehash or not _is_unchanged(self.items_by_path.get((root, name)), stat)
        ]
        self.counts["unchanged"] += sum(len(contents.files) for contents in self.contents.values()) - len(candidates)
        suspects = [item for place in candidates if (item := self.items_by_path.get(place)) is not None]
        stats = (self.contents[root].files[name] for root, name in candidates)
        detector = MoveDetector(self.vanished_items.values(), suspects, stats)
        block: list[ScanRecord] = []
        ambiguous_files: list[FileRecord] = []
        for file in self._inspect(candidates, executor, progress, reads_content=True):
            entry = self._classify(file, detector)
            if entry is None:
                ambiguous_files.append(file)
            else:
                block.append(entry)
            if len(block) >= BLOCK_SIZE:
                self._write(block)
                block = []
        self._write(block)
        self._write_moves(ambiguous_files, detector)

    def update_tags(self, executor: Executor, progress: Progress) -> None:
        """Update the tags of unchanged files whose table, sidecar or source of tags changed."""
        candidates = [
            (root, name)
            for root, contents in self.contents.items()
            if contents.tag_source.inside or contents.tag_source.must_reread
            for name, stat in contents.files.items()
            if _is_unchanged(self.items_by_path.get((root, name)), stat) and self._needs_tags(root, name)
        ]
        block: list[ScanRecord] = []
        for file in self._inspect(candidates, executor, progress, reads_content=False):
            if file.item is None:
                continue
            entry = self._make_record("tags", file, file.item)
            if entry.labels or entry.unlisted_tags != "kept" or file.sidecar != file.item.sidecar:
                block.append(entry)
            if len(block) >= BLOCK_SIZE:
                self._write(block)
                block = []
        self._write(block)

    def record_missing(self) -> None:
        """Mark the items whose files are gone as missing."""
        missing = [item for item in self.vanished_items.values() if item.state != "missing"]
        for lo in range(0, len(missing), BLOCK_SIZE):
            self.counts["missing"] += write_missing(self.collection.engine, missing[lo : lo + BLOCK_SIZE])

    def make_result(self) -> ScanResult:
        """Return the counts of the scan."""
        counts = self.counts
        unchanged = counts["unchanged"] + counts["same"] - counts["found"]
        modalities = (contents.options.get("modality") for contents in self.contents.values())
        modality = next((name for name in modalities if name is not None), "")
        notes = tuple(note for contents in self.contents.values() for note in contents.notes)
        return ScanResult(
            counts["new"], counts["moved"], counts["changed"], counts["missing"], counts["found"], unchanged,
            counts["unreadable"], counts["tagged"], modality, self.unreachable, notes, counts["still unreadable"],
            counts["withdrawn"], counts["held"],
        )  # fmt: skip

    def _inspect(
        self, candidates: Sequence[tuple[int, str]], executor: Executor, progress: Progress, *, reads_content: bool
    ) -> Iterator[FileRecord]:
        """Yield inspected files in order; leave out files that vanish or change during the read."""
        if not candidates:
            return
        tasks = [self._make_task(root, name, reads_content) for root, name in candidates]
        chunks = [tasks[lo : lo + _CHUNK_SIZE] for lo in range(0, len(tasks), _CHUNK_SIZE)]
        pool = executor if len(tasks) > MAX_SERIAL_FILES else SerialExecutor()
        places = iter(candidates)
        with progress.stage("reading files" if reads_content else "reading tags", len(tasks), "files") as stage:
            for inspections in pool.map(inspect_files, chunks):
                for inspection, (root, name) in zip(inspections, places, strict=False):
                    if self._count_inspection(root, name, inspection):
                        yield FileRecord(
                            root, name, inspection, self.items_by_path.get((root, name)), self._get_sidecar(root, name)
                        )
                stage.advance(len(inspections))

    def _needs_tags(self, root: int, name: str) -> bool:
        """Return whether the tags of an item with unchanged content must be read again."""
        item, tag_source = self.items_by_path.get((root, name)), self.contents[root].tag_source
        return tag_source.must_reread or (
            item is not None and tag_source.inside and item.sidecar != self._get_sidecar(root, name)
        )

    def _get_sidecar(self, root: int, name: str) -> str | None:
        return self.contents[root].sidecars.get(name)

    def _make_task(self, root: int, name: str, reads_content: bool) -> InspectionTask:
        contents = self.contents[root]
        is_known = (root, name) in self.items_by_path
        return InspectionTask(
            Path(contents.root.folder, name),
            contents.options["modality"],
            reads_content,
            contents.tag_source.inside,
            is_known,
        )

    def _count_inspection(self, root: int, name: str, inspection: FileInspection) -> bool:
        """Count and report an unreadable file; return whether the file is to be written."""
        display_name = name if root == min(self.contents) else str(self.contents[root].root.folder / name)
        if inspection.reason:
            self.rejects.add(display_name, inspection.reason, inspection.detail)
        if inspection.reason and inspection.reason not in SKIPPED:
            item = self.items_by_path.get((root, name))
            is_same = item is not None and item.state == "unreadable" and inspection.hash in (None, item.hash)
            self.counts["unreadable"] += 1
            self.counts["still unreadable"] += is_same
        if inspection.tag_error:
            self.rejects.add(display_name, "tags that cannot be read", inspection.tag_error)
        return inspection.reason not in SKIPPED

    def _classify(self, file: FileRecord, detector: MoveDetector) -> ScanRecord | None:
        """Classify a file; None if that depends on other files."""
        if file.item is not None and file.inspection.hash in (None, file.item.hash):
            needs_tags = self._needs_tags(file.root, file.path)
            return self._make_record("same", file, file.item) if needs_tags else ScanRecord("same", file, file.item)
        if (item := detector.find_unique_match(file)) is not None:
            detector.vanished[item.hash or ""].remove(item)
            return self._make_record("moved", file, item)
        if detector.must_wait(file):
            return None
        return self._make_record("new" if file.item is None else "changed", file, file.item)

    def _write_moves(self, ambiguous_files: Sequence[FileRecord], detector: MoveDetector) -> None:
        """Write the ambiguous files in one block, because items may swap paths."""
        moves = assign_items(ambiguous_files, detector.vanished)
        moved_ids = {item.id for item in moves.values()}
        block = []
        for number, file in enumerate(ambiguous_files):
            if number in moves:
                block.append(self._make_record("moved", file, moves[number]))
            elif file.item is None or file.item.id in moved_ids:
                block.append(self._make_record("new", file, None))
            else:
                block.append(self._make_record("changed", file, file.item))
        self._write(block)

    def _make_record(self, kind: ScanKind, file: FileRecord, item: ItemRecord | None) -> ScanRecord:
        tag_origin, unlisted_tags = self.contents[file.root].tag_source.by, self._classify_unlisted_tags(file, item)
        return ScanRecord(kind, file, item, self._list_labels(file, item), tag_origin, unlisted_tags)

    def _classify_unlisted_tags(self, file: FileRecord, item: ItemRecord | None) -> UnlistedTagState:
        """Return the fate of earlier tags; only a tag that this file supplied and could list is withdrawn."""
        is_inside = self.contents[file.root].tag_source.inside
        if not is_inside or item is None or (item.root, item.path) != (file.root, file.path):
            return "kept"
        if file.inspection.reason or file.inspection.is_partial:
            return "kept"
        is_same_sidecar = _get_sidecar_rank(item.sidecar) == _get_sidecar_rank(file.sidecar)
        if file.sidecar is None:  # editors that drop all keywords do not mean to remove them
            has_tags = bool(file.inspection.labels)
        else:
            has_tags = not _is_blank(file.sidecar)
        return "withdrawn" if is_same_sidecar and has_tags and not file.inspection.tag_error else "held"

    def _list_labels(self, file: FileRecord, item: ItemRecord | None = None) -> tuple[str, ...]:
        """Return the labels of a file; for a moved file only those that its old path did not imply."""
        tag_source = self.contents[file.root].tag_source
        labels, invalid_names = split_label_names(
            file.inspection.labels if tag_source.inside else tag_source.labels_of(file.path)
        )
        for name in invalid_names:
            self.rejects.add(file.path, "tag that cannot be a label", ascii(name)[:100])
        if item is not None and (item.root, item.path) != (file.root, file.path):
            old_labels = () if tag_source.inside else self.contents[item.root].tag_source.labels_of(item.path)
            return tuple(label for label in labels if label not in old_labels)
        return tuple(labels)

    def _write(self, block: Sequence[ScanRecord]) -> None:
        if not block:
            return
        outcome = write_block(self.collection.engine, self.by, block)
        self.counts += outcome.counts
        for path, reason in outcome.refused:
            self.rejects.add(path, "broader tag that is not taken over", reason)
        for entry in block:
            if entry.kind == "moved" and entry.item is not None:
                self.vanished_items.pop(entry.item.id, None)
        if outcome.line is not None:
            self.journal_entries.append(outcome.line)


def _get_sidecar_rank(stamp: str | None) -> str | None:
    """Return which of the two sidecar names supplied the tags; None if none did."""
    return stamp and stamp.partition(":")[0]


def _is_blank(stamp: str | None) -> bool:
    """Return whether a sidecar is empty, as while another program begins to write it."""
    return stamp is not None and stamp.split(":")[1] == "0"


def _is_unchanged(item: ItemRecord | None, stat: FileStat) -> bool:
    """Return whether a file need not be read again.

    A missing item is read again, since another file may have its name now. An unreadable one is reported at every scan.
    """
    return item is not None and (item.size, item.mtime_ns) == tuple(stat) and item.state == "present"
