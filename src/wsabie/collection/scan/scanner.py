"""Scan of a collection: new, moved, changed, missing and returned files are written to the database.

A file with the same size and time as before counts as unchanged, unless it was unreadable. Any other file is identified
by its content (BLAKE2b, 16 bytes). So an item keeps its annotations when its file is renamed, moved, edited in place or
missing. A copy is a new item. A scan never deletes an item.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Unpack

from wsabie.collection.db.database import begin_read, begin_write, iterate_chunks
from wsabie.collection.db.journal import begin_entry
from wsabie.collection.folder.collection import Collection
from wsabie.collection.scan import move_detection, roots, scan_writer
from wsabie.collection.scan.file_inspection import SKIPPED, FileInspection, InspectionTask, inspect_files
from wsabie.collection.scan.move_detection import FileChange, FileRecord, ItemRecord, UnlistedTagState
from wsabie.core.execution import SerialExecutor
from wsabie.core.json_conversion import JsonObject
from wsabie.features.base.sampling import RunOptions, WorkContext
from wsabie.io.parsers.label_cells import JOINED

BLOCK_SIZE = 500
"""Files in one transaction."""
MAX_SERIAL_FILES = 256
"""Largest number of files that are inspected without extra processes."""

_CHUNK_SIZE = 16


@dataclass(frozen=True)
class UnreachableRoot:
    """A root whose items stay as they are, because it is unreachable or suddenly empty."""

    folder: str
    reason: str
    items: int


@dataclass(frozen=True)
class ScanResult:
    """Result of a scan; every file is counted once from `new` to `unchanged`.

    Attributes
    ----------
    new, moved, changed, reappeared, unchanged : int
        Files: new; at another path; with other content; missing before; as before.
    missing : int
        Items whose files are gone.
    unreadable : int
        Unreadable files among all these.
    added_tags : int
        Accepted tags that files supplied.
    modality : str
        "pictures", "sounds", "documents"; "" before any file was found.
    unreachable_roots : tuple of UnreachableRoot
    notes : tuple of str
        Remarks for people on the sources of tags.
    still_unreadable : int
        Unreadable files that were unreadable before, with the same content.
    withdrawn_tags : int
        Tags that a file supplied and no longer lists, or a sub-folder whose name is no label now; taken back.
    held_tags : int
        Such tags that stay: their file is gone, unreadable or another one, or the picture still contains them.
    """

    new: int
    moved: int
    changed: int
    missing: int
    reappeared: int
    unchanged: int
    unreadable: int
    added_tags: int
    modality: str
    unreachable_roots: tuple[UnreachableRoot, ...]
    notes: tuple[str, ...]
    still_unreadable: int
    withdrawn_tags: int
    held_tags: int

    @property
    def has_changes(self) -> bool:
        """Return True if the scan changed the database."""
        changed_items = self.new, self.moved, self.changed, self.missing, self.reappeared
        return any((*changed_items, self.added_tags, self.withdrawn_tags))

    @property
    def summary(self) -> str:
        """Summary in one line; empty if nothing changed."""
        files = self.new, self.moved, self.changed, self.reappeared, self.unreadable - self.still_unreadable
        unreadable = "of them unreadable" if any(files[:4]) else "unreadable now"
        words = "new", "moved", "changed", "found again", unreadable, "missing", "tags from files", "tags withdrawn"
        counts = zip((*files, self.missing, self.added_tags, self.withdrawn_tags), words, strict=True)
        return ", ".join(f"{n:,} {word}" for n, word in counts if n)


def scan_collection(
    collection: Collection,
    *,
    by: str,
    tags: roots.TagChoice | None = None,
    not_labels: Sequence[str] = (),
    rehash: bool = False,
    always: bool = False,
    files: Sequence[roots.RootContents] = (),
    **context: Unpack[RunOptions],
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
    not_labels : sequence of str
        Names of sub-folders that are not labels, at this scan and later ones; tags that they gave are withdrawn.
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
    work = WorkContext.from_options(**context)
    root_list, contents_by_folder = roots.list_roots(collection), {entry.root.folder: entry for entry in files}
    if contents_by_folder.keys() >= {root.folder for root in root_list}:
        contents = [contents_by_folder[root.folder]._replace(root=root) for root in root_list]
    else:
        contents = roots.discover_roots(collection, (), tags, work.rejects, work.progress)
    if not_labels:
        contents = [roots.add_excluded_names(entry, not_labels) for entry in contents]
    run = _ScanRun(collection, by, contents, work)
    run.save_options(is_done=False)
    run.inspect_changes(rehash)
    run.update_tags()
    run.withdraw_excluded_tags()
    run.record_missing()
    run.save_options(is_done=True)
    result = run.make_result()
    if result.has_changes or always or run.journal_entries:
        summary = ", ".join(part for part in (result.summary, *dict.fromkeys(run.source_changes)) if part)
        summary = summary or ("labels put below others" if run.journal_entries else "nothing new")
        scan_writer.write_journal_line(collection.engine, by, summary, run.journal_entries)
    return result


class _ScanRun:
    """State of one running scan."""

    def __init__(self, collection: Collection, by: str, contents: list[roots.RootContents], work: WorkContext) -> None:
        self.collection, self.by, self.work, self.rejects = collection, by, work, work.rejects
        self.counts: Counter[str] = Counter()
        self.joined_labels: list[str] = []
        self.journal_entries: list[int] = []
        self.source_changes: list[str] = []
        with begin_read(collection.engine) as connection:
            items = scan_writer.read_known_items(connection, [entry.root.id for entry in contents])
            self.deleted_names = scan_writer.read_deleted_names(connection)
        self.items_by_path = {(item.root, item.path): item for item in items}
        present_counts = Counter(item.root for item in items if item.state != "missing")
        self.unreachable: tuple[UnreachableRoot, ...] = ()
        for entry in contents:
            reason, n_present = entry.unreachable_reason, present_counts[entry.root.id]
            if reason or (not entry.files and n_present):
                root = UnreachableRoot(str(entry.root.folder), reason or "there is nothing in it", n_present)
                self.unreachable += (root,)
        self.contents = {entry.root.id: entry for entry in contents}
        unreachable_folders = {entry.folder for entry in self.unreachable}
        self.vanished_items = {
            item.id: item
            for item in items
            if str((item_root := self.contents[item.root]).root.folder) not in unreachable_folders
            and item.path not in item_root.files
            and item_root.can_find(item.path)
        }

    def save_options(self, *, is_done: bool) -> None:
        """Save the scan options of all roots; until the scan is done they say that tags must be read again."""
        for contents in self.contents.values():
            options = {key: value for key, value in contents.options.items() if not (is_done and key == "must_reread")}
            if options != (contents.options if is_done else contents.root.options):
                with begin_write(self.collection.engine) as connection:
                    roots.save_root_options(connection, contents.root.id, options)
            if not is_done:  # last: if the scan is killed before this, the next one reads all tags again
                self._record_source_change(contents)

    def _record_source_change(self, contents: roots.RootContents) -> None:
        """Record a new source of tags in the journal, so that undoing the scan restores the old one."""
        old_source, new_source = (options.get("tags") for options in (contents.root.options, contents.options))
        if old_source in (None, new_source):
            return
        message = f"tags from {new_source} in place of {old_source}"
        with begin_entry(self.collection.engine, self.by, "scan", message) as change:
            roots.change_tag_source(change, contents.root.id, str(new_source))
        if change.n_changes:
            self.journal_entries.append(change.id)
            self.source_changes.append(message)

    def inspect_changes(self, rehash: bool) -> None:
        """Inspect the files that are new or may have changed, and write what they are."""
        candidates = [file for file in self._list_files() if rehash or not _is_unchanged(file)]
        self.counts["unchanged"] += sum(len(contents.files) for contents in self.contents.values()) - len(candidates)
        detector = move_detection.MoveDetector(self.vanished_items.values(), candidates)
        ambiguous_files: list[FileRecord] = []
        files = self._inspect(candidates, reads_content=True)
        entries = (self._classify(file, detector, ambiguous_files) for file in files)
        self._write_blocks(entry for entry in entries if entry is not None)
        self._write_moves(ambiguous_files, detector)

    def update_tags(self) -> None:
        """Update the tags of unchanged files whose table, sidecar or source of tags changed."""
        candidates = [file for file in self._list_files() if _is_unchanged(file) and self._needs_tags(file)]
        files = self._inspect(candidates, reads_content=False)
        self._write_blocks(
            entry
            for entry in (self._make_record(file, file.item, "tags") for file in files)
            if entry.labels or entry.unlisted_tags != "kept" or (entry.item and entry.sidecar != entry.item.sidecar)
        )

    def withdraw_excluded_tags(self) -> None:
        """Withdraw tags by names of sub-folders that were excluded since the last scan."""
        for root, contents in self.contents.items():
            excluded = set(contents.options.get("not_labels", ()))
            if excluded and contents.options.get("must_reread"):
                names, engine = roots.count_folder_labels(contents), self.collection.engine
                n, line = scan_writer.withdraw_folder_tags(engine, self.by, root, excluded, names)
                self.counts["withdrawn_tags"] += n
                self.journal_entries += [] if line is None else [line]

    def record_missing(self) -> None:
        """Mark the items whose files are gone as missing."""
        missing = [item for item in self.vanished_items.values() if item.state != "missing"]
        for block in iterate_chunks(missing, BLOCK_SIZE):
            self.counts["missing"] += scan_writer.write_missing(self.collection.engine, block)

    def make_result(self) -> ScanResult:
        """Return the counts of the scan."""
        notes = [note for contents in self.contents.values() for note in contents.notes]
        if n := self.counts["other_tags"]:
            pictures = "1 new picture holds" if n == 1 else f"{n:,} new pictures hold"
            notes.append(f"{pictures} tags that its sidecar lacks; the sidecar counts")
        if 1 < len(self.joined_labels) == self.counts["labelled"]:
            fact = f"each file holds a single tag such as {self.joined_labels[0][:60]!r}, which stays one label"
            notes.append(f"{fact}; if it joins several, write these as separate tags")
        modalities = (contents.options.get("modality") for contents in self.contents.values())
        facts: JsonObject = {field.name: self.counts[field.name] for field in fields(ScanResult)}
        facts["unchanged"] += self.counts["same"] - self.counts["reappeared"]
        facts["modality"] = next((name for name in modalities if name is not None), "")
        return ScanResult(**facts | {"unreachable_roots": self.unreachable, "notes": tuple(notes)})

    def _list_files(self) -> Iterator[FileRecord]:
        """Yield all files of all roots, not inspected yet."""
        for root, contents in self.contents.items():
            for name, stat in contents.files.items():
                item, sidecar = self.items_by_path.get((root, name)), contents.sidecars.get(name)
                yield FileRecord(root, name, FileInspection(stat), item, sidecar)

    def _inspect(self, candidates: Sequence[FileRecord], *, reads_content: bool) -> Iterator[FileRecord]:
        """Yield inspected files in order; leave out files that vanish or change during the read."""
        if not candidates:
            return
        tasks = [self._make_task(file, reads_content) for file in candidates]
        chunks = list(iterate_chunks(tasks, _CHUNK_SIZE))
        pool = self.work.executor if len(tasks) > MAX_SERIAL_FILES else SerialExecutor()
        files = iter(candidates)
        name = "reading files" if reads_content else "reading tags"
        with self.work.progress.stage(name, len(tasks), "files") as stage:
            for inspections in pool.map(inspect_files, chunks):
                for inspection, file in zip(inspections, files, strict=False):
                    labels = inspection.labels
                    self.counts["labelled"] += bool(labels)
                    self.joined_labels += [label for label in labels if len(labels) == 1 and JOINED.search(label)]
                    inspected_file = file._replace(inspection=inspection)
                    if self._count_inspection(inspected_file):
                        yield inspected_file
                stage.advance(len(inspections))

    def _make_task(self, file: FileRecord, reads_content: bool) -> InspectionTask:
        contents = self.contents[file.root]
        path, modality = contents.root.folder / file.path, contents.options["modality"]
        return InspectionTask(path, modality, reads_content, contents.tag_source.inside)

    def _needs_tags(self, file: FileRecord) -> bool:
        """Return True if the tags of an item with unchanged content must be read again."""
        tag_source = self.contents[file.root].tag_source
        is_new_sidecar = tag_source.inside and file.item is not None and file.item.sidecar != file.sidecar
        return tag_source.must_reread or is_new_sidecar

    def _count_inspection(self, file: FileRecord) -> bool:
        """Count and report an unreadable file; return whether the file is to be written."""
        root, name, inspection, item, *_ = file
        display_name = name if root == min(self.contents) else str(self.contents[root].root.folder / name)
        if inspection.reason:
            self.rejects.add(display_name, inspection.reason, inspection.detail)
        if inspection.reason and inspection.reason not in SKIPPED:
            is_same = item is not None and item.state == "unreadable" and inspection.hash in (None, item.hash)
            self.counts["unreadable"] += 1
            self.counts["still_unreadable"] += is_same
        if inspection.tag_error:
            self.rejects.add(display_name, "tags that cannot be read", inspection.tag_error)
        return inspection.reason not in SKIPPED

    def _classify(
        self, file: FileRecord, detector: move_detection.MoveDetector, ambiguous_files: list[FileRecord]
    ) -> FileRecord | None:
        """Classify a file; if that depends on other files, it becomes one of the ambiguous ones."""
        if file.item is not None and file.inspection.hash in (None, file.item.hash):
            unchanged_file = file._replace(change="same")
            return self._make_record(file, file.item, "same") if self._needs_tags(file) else unchanged_file
        if (item := detector.find_unique_match(file)) is not None:
            detector.vanished[item.hash or ""].remove(item)
            return self._make_record(file, item)
        if detector.is_ambiguous(file):
            ambiguous_files.append(file)
            return None
        return self._make_record(file, file.item)

    def _write_moves(self, ambiguous_files: Sequence[FileRecord], detector: move_detection.MoveDetector) -> None:
        """Write the ambiguous files in one block, because items may swap paths."""
        moves = move_detection.assign_items(ambiguous_files, detector.vanished)
        moved_ids = {item.id for item in moves.values()}
        staying = [file.item if file.item and file.item.id not in moved_ids else None for file in ambiguous_files]
        self._write([self._make_record(file, moves.get(i, staying[i])) for i, file in enumerate(ambiguous_files)])

    def _make_record(self, file: FileRecord, item: ItemRecord | None, change: FileChange | None = None) -> FileRecord:
        """Return the record of a file that is this item; without a change it is new, moved or changed."""
        is_in_place = item is not None and (item.root, item.path) == (file.root, file.path)
        other_tags = {*file.inspection.embedded_labels}.difference(file.inspection.labels)
        self.counts["other_tags"] += item is None and bool(other_tags)
        return file._replace(
            change=change or ("new" if item is None else "changed" if is_in_place else "moved"),
            item=item,
            labels=self._list_labels(file, None if is_in_place else item),
            tag_origin=self.contents[file.root].tag_source.by,
            unlisted_tags=self._classify_unlisted_tags(file, item) if is_in_place and item is not None else "kept",
        )

    def _classify_unlisted_tags(self, file: FileRecord, item: ItemRecord) -> UnlistedTagState:
        """Return the fate of earlier tags; only a tag that this file supplied and could list is withdrawn."""
        inspection, is_inside = file.inspection, self.contents[file.root].tag_source.inside
        if not is_inside or inspection.reason or inspection.is_partial:
            return "kept"
        is_same_sidecar = _get_sidecar_rank(item.sidecar) == _get_sidecar_rank(file.sidecar)
        if file.sidecar is None:  # editors that drop all keywords do not mean to remove them
            has_tags = bool(inspection.labels)
        else:  # a sidecar is empty while another program begins to write it
            has_tags = file.sidecar.split(":")[1] != "0"
        return "withdrawn" if is_same_sidecar and has_tags and not inspection.tag_error else "held"

    def _list_labels(self, file: FileRecord, moved_item: ItemRecord | None) -> tuple[str, ...]:
        """Return the labels of a file; for a moved item only those that its old path did not imply."""
        tag_source = self.contents[file.root].tag_source
        names = file.inspection.labels if tag_source.inside else tag_source.labels_of(file.path)
        if tag_source.by == "folder":
            excluded = self.contents[file.root].options.get("not_labels", ())
            names = tuple(n for n in names if n not in self.deleted_names and n.casefold() not in excluded)
        labels, invalid_names = scan_writer.split_label_names(names)
        for name in invalid_names:
            self.rejects.add(file.path, "tag that cannot be a label", ascii(name)[:100])
        if moved_item is None or tag_source.inside:
            return tuple(labels)
        old_labels = self.contents[moved_item.root].tag_source.labels_of(moved_item.path)
        return tuple(label for label in labels if label not in old_labels)

    def _write_blocks(self, entries: Iterator[FileRecord]) -> None:
        while block := list(islice(entries, BLOCK_SIZE)):
            self._write(block)

    def _write(self, block: Sequence[FileRecord]) -> None:
        if not block:
            return
        counts, line, refused = scan_writer.write_block(self.collection.engine, self.by, block)
        self.counts += counts
        for path, reason in refused:
            self.rejects.add(path, "broader tag that is not taken over", reason)
        for entry in block:
            if entry.change == "moved" and entry.item is not None:
                self.vanished_items.pop(entry.item.id, None)
        if line is not None:
            self.journal_entries.append(line)


def _get_sidecar_rank(stamp: str | None) -> str | None:
    """Return which of the two sidecar names supplied the tags; None if none did."""
    return stamp and stamp.partition(":")[0]


def _is_unchanged(file: FileRecord) -> bool:
    """Return True if a file need not be read again."""
    # a missing item is read again, since another file may have its name now; an unreadable one is reported at
    # every scan
    item = file.item
    return item is not None and (item.size, item.mtime_ns) == file.inspection.stat and item.state == "present"
