"""Scanning: the catalogue learns which files there are, which moved, changed, went away and came back.

A file whose size and time of change are as they were is taken to be what it was, unless it could not be read. Any other
is known by its content (BLAKE2b, 16 bytes): an item keeps its annotations when its file is renamed or moved, when it is
edited in place, and when it is missing. A copy is an item of its own. Nothing is ever deleted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading, writing
from wsabie.catalogue.filing import Filed, Kind, Unsaid, known_items, usable, write_block, write_line, write_missing
from wsabie.catalogue.finding import Found, find_all
from wsabie.catalogue.journal import entry
from wsabie.catalogue.looking import SKIPPED, Looked, Stat, Task, look_at_all
from wsabie.catalogue.moving import Displaced, Known, Seen, settle
from wsabie.catalogue.roots import all_roots, choose, choose_again, keep_options, medium_of_collection
from wsabie.storage.rejects import Rejects

BLOCK = 500
"""Items that are written down at once."""
FEW = 256
"""Files that are not worth starting processes for."""

_CHUNK = 16


class Away(NamedTuple):
    """A root whose items stay as they were, because it cannot be reached or is suddenly empty."""

    folder: str
    reason: str
    items: int


class Scanned(NamedTuple):
    """What a scan saw. Every file is counted once from `new` to `unchanged`.

    Attributes
    ----------
    new, moved, changed, found_again, unchanged : int
        Files: not known before; known elsewhere; with other content; missing before; as they were.
    missing : int
        Items whose files went away since.
    unreadable : int
        Of all these files, those that cannot be read.
    tagged : int
        Tags found in files and accepted.
    medium : str
        "pictures", "sounds", "documents"; "" where nothing was found yet.
    away : tuple of Away
    notes : tuple of str
        What people should know of where tags come from.
    still_unreadable : int
        Those of the unreadable ones that were so at the scan before, with the same content.
    withdrawn : int
        Tags that a file had brought and says no more, taken back.
    held : int
        Such that stay: the file that said them went away, cannot be read or is another one, or they are still inside
        the picture.
    """

    new: int
    moved: int
    changed: int
    missing: int
    found_again: int
    unchanged: int
    unreadable: int
    tagged: int
    medium: str
    away: tuple[Away, ...]
    notes: tuple[str, ...] = ()
    still_unreadable: int = 0
    withdrawn: int = 0
    held: int = 0

    @property
    def differs(self) -> bool:
        """Whether the catalogue is another than before."""
        return any((self.new, self.moved, self.changed, self.missing, self.found_again, self.tagged, self.withdrawn))

    @property
    def told(self) -> str:
        """One line for people; empty: nothing was found that was not known."""
        files = self.new, self.moved, self.changed, self.found_again, self.unreadable - self.still_unreadable
        unreadable = "of them unreadable" if any(files[:4]) else "unreadable now"
        words = "new", "moved", "changed", "found again", unreadable, "missing", "tags from files", "tags withdrawn"
        counts = zip((*files, self.missing, self.tagged, self.withdrawn), words, strict=True)
        return ", ".join(f"{n:,} {word}" for n, word in counts if n)


def as_json(scanned: Scanned) -> dict[str, Any]:
    """The same as a document."""
    return scanned._asdict() | {"away": [away._asdict() for away in scanned.away]}


def scan(
    collection: Collection,
    *,
    by: str,
    tags: str | None = None,
    rehash: bool = False,
    always: bool = False,
    files: Sequence[Found] = (),
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> Scanned:
    """Look through all folders of a collection.

    A scan that is stopped loses what was not yet written down, and the next one goes on.

    Parameters
    ----------
    collection : Collection
    by : str
        Who asks, for the journal.
    tags : str or None
        One of `roots.TAGS`: where tags come from, from now on; None: as before, at first "auto".
    rehash : bool
        Read all files, also those of the same size and time.
    always : bool
        A line in the journal even where nothing was found.
    files : sequence of Found
        All that lies in the folders, where it was looked at before they belonged to the collection.
    executor : Executor or None
        Where files are read; None: in this process.
    progress : Progress
    rejects : Rejects or None
        Gets what cannot be read, and links and tags that are left out.

    Raises
    ------
    InputError
        Tags cannot come from there, or the database cannot be written.
    """
    choose(collection, tags)
    rejects = Rejects() if rejects is None else rejects
    roots, known = all_roots(collection), {one.root.folder: one for one in files}
    if known.keys() >= {root.folder for root in roots}:
        found = [known[root.folder]._replace(root=root) for root in roots]
    else:
        found = find_all(roots, medium_of_collection(collection), tags, rejects, progress)
    run = _Run(collection, by, found, rejects)
    run.keep_options(done=False)
    run.look(executor or Serial(), progress, rehash)
    run.tag_again(executor or Serial(), progress)
    run.note_missing()
    run.keep_options(done=True)
    scanned = run.scanned()
    if scanned.differs or always or run.lines:
        told = ", ".join(part for part in (scanned.told, *dict.fromkeys(run.chosen)) if part)
        told = told or ("labels put below others" if run.lines else "nothing new")
        write_line(collection.engine, by, told, run.lines)
    return scanned


class _Run:
    """One scan under way."""

    def __init__(self, collection: Collection, by: str, found: Sequence[Found], rejects: Rejects) -> None:
        self.collection, self.by, self.rejects = collection, by, rejects
        self.counts: Counter[str] = Counter()
        self.lines: list[int] = []
        self.chosen: list[str] = []
        with reading(collection.engine) as connection:
            known = known_items(connection, [one.root.id for one in found])
        self.known = {(item.root, item.path): item for item in known}
        present = Counter(item.root for item in known if item.state != "missing")
        self.away = tuple(
            Away(str(one.root.folder), one.away or "there is nothing in it", present[one.root.id])
            for one in found
            if one.away or (not one.files and present[one.root.id])
        )
        self.found = {one.root.id: one for one in found}
        away = {one.folder for one in self.away}
        self.vanished = {
            item.id: item
            for item in known
            if str((there := self.found[item.root]).root.folder) not in away
            and item.path not in there.files
            and there.covers(item.path)
        }

    def keep_options(self, *, done: bool) -> None:
        """Write down how roots are scanned; until a scan is done, that tags have to be asked again."""
        for one in self.found.values():
            options = {name: v for name, v in one.options.items() if not (done and name == "anew")}
            if options != (one.options if done else one.root.options):
                with writing(self.collection.engine) as connection:
                    keep_options(connection, one.root.id, options)
            if not done:  # last: a scan that is killed before asks again for tags that are there, and none is left out
                self._keep_choice(one)

    def _keep_choice(self, one: Found) -> None:
        """Another source of tags than before is a change, which an undo of the scan takes back too."""
        before, now = (options.get("tags") for options in (one.root.options, one.options))
        if before in (None, now):
            return
        told = f"tags from {now} in place of {before}"
        with entry(self.collection.engine, self.by, "scan", told) as change:
            choose_again(change, one.root.id, str(now))
        if change.n_changes:
            self.lines.append(change.id)
            self.chosen.append(told)

    def look(self, executor: Executor, progress: Progress, rehash: bool) -> None:
        """Look at the files that are new or may have changed, and write down what they are."""
        wanted = [
            (root, name)
            for root, one in self.found.items()
            for name, stat in one.files.items()
            if rehash or not _as_it_was(self.known.get((root, name)), stat)
        ]
        self.counts["unchanged"] += sum(len(one.files) for one in self.found.values()) - len(wanted)
        doubtful = [item for place in wanted if (item := self.known.get(place)) is not None]
        stats = (self.found[root].files[name] for root, name in wanted)
        displaced = Displaced(self.vanished.values(), doubtful, stats)
        block: list[Filed] = []
        waiting: list[Seen] = []
        for seen in self._looked(wanted, executor, progress, whole=True):
            one = self._judged(seen, displaced)
            if one is None:
                waiting.append(seen)
            else:
                block.append(one)
            if len(block) >= BLOCK:
                self._write(block)
                block = []
        self._write(block)
        self._write_settled(waiting, displaced)

    def tag_again(self, executor: Executor, progress: Progress) -> None:
        """Take the tags of items that were known, where the table or sidecar that says them changed, or the choice."""
        wanted = [
            (root, name)
            for root, one in self.found.items()
            if one.tagging.inside or one.tagging.anew
            for name, stat in one.files.items()
            if _as_it_was(self.known.get((root, name)), stat) and self._to_tag(root, name)
        ]
        block: list[Filed] = []
        for seen in self._looked(wanted, executor, progress, whole=False):
            if seen.known is None:
                continue
            one = self._filed("tags", seen, seen.known)
            if one.labels or one.unsaid != "kept" or seen.sidecar != seen.known.sidecar:
                block.append(one)
            if len(block) >= BLOCK:
                self._write(block)
                block = []
        self._write(block)

    def note_missing(self) -> None:
        """Items whose files went away."""
        gone = [item for item in self.vanished.values() if item.state != "missing"]
        for lo in range(0, len(gone), BLOCK):
            self.counts["missing"] += write_missing(self.collection.engine, gone[lo : lo + BLOCK])

    def scanned(self) -> Scanned:
        """What came of it."""
        c = self.counts
        medium = next((one.options["medium"] for one in self.found.values() if "medium" in one.options), "")
        notes = tuple(said for one in self.found.values() for said in one.notes)
        return Scanned(
            c["new"], c["moved"], c["changed"], c["missing"], c["found"], c["unchanged"] + c["same"] - c["found"],
            c["unreadable"], c["tagged"], medium, self.away, notes, c["still unreadable"], c["withdrawn"], c["held"],
        )  # fmt: skip

    def _looked(
        self, wanted: Sequence[tuple[int, str]], executor: Executor, progress: Progress, *, whole: bool
    ) -> Iterator[Seen]:
        """What is found in files, in their order; without those that do not hold still."""
        if not wanted:
            return
        tasks = [self._task(root, name, whole) for root, name in wanted]
        chunks = [tasks[lo : lo + _CHUNK] for lo in range(0, len(tasks), _CHUNK)]
        run = executor if len(tasks) > FEW else Serial()
        places = iter(wanted)
        with progress.stage("reading files" if whole else "reading tags", len(tasks), "files") as stage:
            for found in run.map(look_at_all, chunks):
                for looked, (root, name) in zip(found, places, strict=False):
                    if self._counts(root, name, looked):
                        yield Seen(root, name, looked, self.known.get((root, name)), self._sidecar(root, name))
                stage.advance(len(found))

    def _to_tag(self, root: int, name: str) -> bool:
        """Whether an item whose content is what it was has to be asked for its tags again."""
        known, tagging = self.known.get((root, name)), self.found[root].tagging
        return tagging.anew or (known is not None and tagging.inside and known.sidecar != self._sidecar(root, name))

    def _sidecar(self, root: int, name: str) -> str | None:
        return self.found[root].sidecars.get(name)

    def _task(self, root: int, name: str, whole: bool) -> Task:
        one = self.found[root]
        known = (root, name) in self.known
        return Task(Path(one.root.folder, name), one.options["medium"], whole, one.tagging.inside, known)

    def _counts(self, root: int, name: str, looked: Looked) -> bool:
        """Whether a file is to be written down; why it cannot be read is told in any case."""
        where = name if root == min(self.found) else str(self.found[root].root.folder / name)
        if looked.reason:
            self.rejects.add(where, looked.reason, looked.detail)
        if looked.reason and looked.reason not in SKIPPED:
            known = self.known.get((root, name))
            same = known is not None and known.state == "unreadable" and looked.hash in (None, known.hash)
            self.counts["unreadable"] += 1
            self.counts["still unreadable"] += same
        if looked.unlabelled:
            self.rejects.add(where, "tags that cannot be read", looked.unlabelled)
        return looked.reason not in SKIPPED

    def _judged(self, seen: Seen, displaced: Displaced) -> Filed | None:
        """What a file is; None: that depends on others."""
        if seen.known is not None and seen.looked.hash in (None, seen.known.hash):
            asked = self._to_tag(seen.root, seen.path)
            return self._filed("same", seen, seen.known) if asked else Filed("same", seen, seen.known)
        if (item := displaced.at_once(seen)) is not None:
            displaced.vanished[item.hash or ""].remove(item)
            return self._filed("moved", seen, item)
        if displaced.must_wait(seen):
            return None
        return self._filed("new" if seen.known is None else "changed", seen, seen.known)

    def _write_settled(self, waiting: Sequence[Seen], displaced: Displaced) -> None:
        """Write down, at once because they may change places, the files that had to wait for all others."""
        moved = settle(waiting, displaced.vanished)
        elsewhere = {item.id for item in moved.values()}
        block = []
        for number, seen in enumerate(waiting):
            if number in moved:
                block.append(self._filed("moved", seen, moved[number]))
            elif seen.known is None or seen.known.id in elsewhere:
                block.append(self._filed("new", seen, None))
            else:
                block.append(self._filed("changed", seen, seen.known))
        self._write(block)

    def _filed(self, kind: Kind, seen: Seen, item: Known | None) -> Filed:
        by, unsaid = self.found[seen.root].tagging.by, self._unsaid(seen, item)
        return Filed(kind, seen, item, self._labels(seen, item), by, unsaid)

    def _unsaid(self, seen: Seen, item: Known | None) -> Unsaid:
        """What becomes of tags that are not in a file: only what the same file said, and could say, is withdrawn."""
        if not self.found[seen.root].tagging.inside or item is None or (item.root, item.path) != (seen.root, seen.path):
            return "kept"
        if seen.looked.reason or seen.looked.partly:
            return "kept"
        same = _which_sidecar(item.sidecar) == _which_sidecar(seen.sidecar)
        if seen.sidecar is None:  # programs that edit pictures drop all keywords, and nobody removed any
            says = bool(seen.looked.labels)
        else:
            says = not _is_blank(seen.sidecar)
        return "withdrawn" if same and says and not seen.looked.unlabelled else "held"

    def _labels(self, seen: Seen, item: Known | None = None) -> tuple[str, ...]:
        """What is said of a file; of a moved one only what its old path did not say."""
        tagging = self.found[seen.root].tagging
        labels, bad = usable(seen.looked.labels if tagging.inside else tagging.labels_of(seen.path))
        for name in bad:
            self.rejects.add(seen.path, "tag that cannot be a label", ascii(name)[:100])
        if item is not None and (item.root, item.path) != (seen.root, seen.path):
            before = () if tagging.inside else self.found[item.root].tagging.labels_of(item.path)
            return tuple(label for label in labels if label not in before)
        return tuple(labels)

    def _write(self, block: Sequence[Filed]) -> None:
        if not block:
            return
        wrote = write_block(self.collection.engine, self.by, block)
        self.counts += wrote.counts
        for where, why in wrote.refused:
            self.rejects.add(where, "broader tag that is not taken over", why)
        for one in block:
            if one.kind == "moved" and one.item is not None:
                self.vanished.pop(one.item.id, None)
        if wrote.line is not None:
            self.lines.append(wrote.line)


def _which_sidecar(stamp: str | None) -> str | None:
    """Which of a picture's two sidecars said its tags; None: none did."""
    return stamp and stamp.partition(":")[0]


def _is_blank(stamp: str | None) -> bool:
    """Whether a sidecar is empty, as one is that somebody begins to write."""
    return stamp is not None and stamp.split(":")[1] == "0"


def _as_it_was(item: Known | None, stat: Stat) -> bool:
    """Whether a file need not be read again. One that was missing is, since another may have its name now, and one
    that could not be read, which is told at every scan.
    """
    return item is not None and (item.size, item.modified) == tuple(stat) and item.state == "present"
