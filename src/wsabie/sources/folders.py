"""A folder of pictures, of sounds or of documents, labelled by sub-folders, by a metadata file, or inside the files.

Sub-folders: every level gives one label, so `animal/dog/1.jpg` has the labels "animal" and "dog". Folders named by
synsets of WordNet (`n02084071`) are called as a file `words.txt` in the folder says, if there is one. Hidden
files and folders (a leading dot) and files of other kinds are left alone; those in formats that are not read
(`Medium.unread`) are rejected. Links to folders are not followed, links to files only inside the folder. The id of an
item is its path in the folder, with `/`; what is rejected is named in the same way. A folder that holds pictures and
sounds, such as albums with their covers, is a collection of that of which
there is more, and of the sounds where there are as many of both. Text is a collection of documents where there is
neither; documents may have no labels.
"""

import errno
import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

from wsabie.base.errors import InputError
from wsabie.base.folder_walk import walk
from wsabie.labels.names import normalise
from wsabie.sources.build import BadRow, require_rows
from wsabie.sources.code_names import read_code_names
from wsabie.sources.media import DOCUMENTS, MEDIA, SOUNDS, Medium, document_of, medium_of
from wsabie.sources.metadata import FILE_COLUMN, NAMES, Entry, agreed, find_metadata, read_metadata
from wsabie.sources.records import Item, ItemList
from wsabie.sources.text import reading, shown
from wsabie.sources.unreadable import as_decoded
from wsabie.storage.rejects import Rejects

LABELS_FROM = ("auto", "folders", "metadata", "xmp", "tags", "none")
SPLITS = {"train", "training", "test", "testing", "valid", "validation", "val", "dev"}
"""What sides of a split are called: they are parts of a collection and hardly its labels, nor its shards."""

WORDS = "words.txt"
"""Beside folders named by synsets: what they are called, as WordNet and ImageNet list it (`n02084071 TAB dog`)."""

_SYNSET = re.compile(r"(^|/)n\d{8}/")


def read_folder(
    folder: Path,
    *,
    labels_from: str = "auto",
    image_column: str | None = None,
    label_column: str | None = None,
    split: str | None = None,
    medium: Medium | None = None,
    rejects: Rejects | None = None,
) -> ItemList:
    """List the pictures, sounds or documents of a folder with their labels; nothing is decoded.

    Parameters
    ----------
    folder : Path
    labels_from : {"auto", "folders", "metadata", "xmp", "tags", "none"}
        "auto": the metadata file if there is one, otherwise sub-folders if the items lie in several, otherwise what is
        embedded in the files or lies beside them: XMP and IPTC keywords of pictures ("xmp"), genres and artists in
        the tags of sounds ("tags").
        "none": items to annotate, without labels; so are documents that are not in sub-folders.
    image_column, label_column : str or None
        Columns of the metadata file, when they have other names than usual.
    split : str or None
        Keep only the rows of the metadata file with this `split`.
    medium : Medium or None
        What is looked for; None: what the folder holds most of.
    rejects : Rejects or None
        Lists items without labels or of unsupported formats, labels without an item, links and paths that lead out of
        the folder.

    Returns
    -------
    ItemList

    Raises
    ------
    InputError
        Missing, without pictures, sounds and documents, or without a single one that is labelled.
    """
    rejects = Rejects() if rejects is None else rejects
    n_listed = len(rejects.listed)
    medium, files = find_files(folder, rejects, medium)
    metadata = find_metadata(folder) if labels_from in ("auto", "metadata") else None
    if labels_from == "metadata" and metadata is None:
        raise InputError(f"{shown(folder)} has no {' or '.join(NAMES)}; write one, or take labels from elsewhere")
    if not files:
        raise _no_files(folder, metadata, medium, rejects)
    if metadata is not None:
        entries = read_metadata(
            metadata, image_column=image_column or FILE_COLUMN, label_column=label_column, rejects=rejects
        )
        if split is not None and not any(entry.split == split for entry in entries):
            raise InputError(f"no row of {shown(metadata)} has the split {split!r}; check the name, or leave it out")
        unread = {where for where, reason, _ in rejects.listed[n_listed:] if reason == medium.unsupported}
        items, labels_from = _by_metadata(files, unread, entries, split, medium, rejects), "metadata"
    else:
        items = _by_themselves(folder, files, labels_from, medium, rejects)
    _require_labelled(folder, items, labels_from, medium, rejects)
    return ItemList(folder, items, medium.things)


def _no_files(folder: Path, metadata: Path | None, medium: Medium, rejects: Rejects) -> InputError:
    if n_unread := rejects.counts[medium.unsupported]:
        return InputError(
            f"{shown(folder)} holds no {medium.things} that can be read, but {n_unread:,} in formats that are not "
            f"supported ({medium.such_as}); {medium.convert.replace(' it ', ' them ')}"
        )
    found = f"; {metadata.name} alone is not enough" if metadata else ""
    media = (DOCUMENTS,) if medium is DOCUMENTS else (*MEDIA, DOCUMENTS)
    endings = ", ".join(one.endings[0] for one in media)
    kinds = medium.things if medium is DOCUMENTS else "pictures and no sounds or documents"
    return InputError(
        f"{shown(folder)} holds no {kinds} (such as {endings}){found}; give a folder that has "
        "some, or the file itself when the data are in one"
    )


def read_file(path: Path, *, labels_from: str = "auto", rejects: Rejects | None = None) -> ItemList:
    """A single picture, sound or document, with the labels inside it unless `labels_from` is "none"."""
    rejects = Rejects() if rejects is None else rejects
    medium = medium_of(path.name) or DOCUMENTS
    with reading(path):
        path.stat()
    labels = labeller(labels_from if labels_from == "none" else medium.inside, medium)
    items = _labelled([(path.name, path)], labels, keep_all=labels_from == "none", medium=medium, rejects=rejects)
    _require_labelled(path, items, labels_from, medium, rejects)
    return ItemList(path, items, medium.things)


def find_files(folder: Path, rejects: Rejects, medium: Medium | None = None) -> tuple[Medium, dict[str, Path]]:
    """Files of a medium under a folder by their path in it, sorted; unsupported ones and links that lead out are
    rejected.

    Without a medium it is that of most of the files; documents are those of a folder without pictures and sounds.
    """
    root = os.path.realpath(folder)
    with reading(folder):
        os.scandir(folder).close()  # a walk would pass over a folder that cannot be read
        os.lstat(os.path.join(folder, "."))  # noqa: PTH118 - a Path has no dot; one may list what one may not enter
    read: dict[Medium, list[Path]] = {one: [] for one in (*MEDIA, DOCUMENTS)}
    unread: dict[Medium, list[Path]] = {one: [] for one in (*MEDIA, DOCUMENTS)}
    note = _unreadable(folder, rejects)
    for place, folders, names in walk(folder, note):
        if not os.access(place, os.X_OK):
            note(PermissionError(errno.EACCES, os.strerror(errno.EACCES), place))
            folders.clear()
            continue
        for name in [n for n in folders if not n.startswith(".") and _is_link(Path(place, n))]:
            rejects.add(_id_of(Path(place, name), folder), "link to a folder, not followed")
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            if name.startswith("."):
                continue
            if (one := medium_of(name) or document_of(name)) is not None:
                read[one].append(Path(place, name))
            elif (one := medium_of(name, unread=True) or document_of(name, unread=True)) is not None:
                unread[one].append(Path(place, name))
    chosen = medium or max(MEDIA, key=lambda one: (len(read[one]), one is SOUNDS and bool(read[one]), len(unread[one])))
    if medium is None and not (read[chosen] or unread[chosen]) and (read[DOCUMENTS] or unread[DOCUMENTS]):
        chosen = DOCUMENTS
    found: dict[str, Path] = {}
    for path in read[chosen]:
        _add_file(path, folder, root, found, rejects)
    for path in unread[chosen]:
        rejects.add(_id_of(path, folder), chosen.unsupported, chosen.convert)
    return chosen, dict(sorted(found.items()))


def _id_of(path: Path, folder: Path) -> str:
    return shown(path.relative_to(folder).as_posix())


def _unreadable(folder: Path, rejects: Rejects) -> Callable[[OSError], None]:
    def note(error: OSError) -> None:
        rejects.add(_id_of(Path(error.filename), folder), "folder that cannot be read", error.strerror or "")

    return note


def _add_file(path: Path, folder: Path, root: str, found: dict[str, Path], rejects: Rejects) -> None:
    name = _id_of(path, folder)
    if name != path.relative_to(folder).as_posix():
        rejects.add(name, "file name that is not UTF-8")
    elif _is_link(path) and not is_inside(path, root):
        rejects.add(name, "link that leads out of the folder")
    else:
        try:
            regular = stat.S_ISREG(path.stat().st_mode)
        except OSError as error:
            if error.errno == errno.ELOOP:
                rejects.add(name, "link that leads to itself")
            elif error.errno in (errno.ENOENT, errno.ENOTDIR):
                rejects.add(name, "link to a missing file")
            else:
                rejects.add(name, "unreadable file", error.strerror or "")
            return
        if regular:
            found[name] = path
        else:
            rejects.add(name, "not a regular file")


def _is_link(path: Path) -> bool:
    return os.path.islink(path)  # noqa: PTH114 - a Path raises where a folder may not be entered


def is_inside(path: Path, root: str) -> bool:
    """Whether a path, with all links followed, lies under `root` (itself without links)."""
    return os.path.realpath(path).startswith(os.path.join(root, ""))  # noqa: PTH118


def relative_name(text: str) -> str:
    """A file name from a table, as `find_files` writes it.

    Raises
    ------
    BadRow
        It is absolute or climbs out of the folder.
    """
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or "\0" in text:
        raise BadRow("path that leads out of the folder", ascii(text)[:100])
    return path.as_posix()


def _by_metadata(
    files: dict[str, Path],
    unread: set[str],
    entries: list[Entry],
    split: str | None,
    medium: Medium,
    rejects: Rejects,
) -> list[Item]:
    named: set[str] = set()
    rows: dict[str, Entry] = {}  # what is said of each item, whether it is there or not
    labels: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for entry in entries:
        try:
            name = relative_name(entry.file_name)
            named.add(name)
            own = clean_labels(entry.labels)
            rows[name] = agreed(rows.get(name, entry), entry)
            labels[name].update(dict.fromkeys(own))
        except BadRow as bad:
            rejects.add(entry.where, bad.reason, bad.detail)
    for name in files:
        if name not in named:
            rejects.add(name, medium.unlabelled, "no row in the metadata")
    items = []
    for name, row in rows.items():
        if split is not None and row.split != split:
            continue
        if name in files and labels[name]:
            items.append(Item(name, files[name], tuple(labels[name]), row.group, row.time))
        elif name not in unread:
            rejects.add(row.where, medium.unlabelled if name in files else f"labels without a {medium.thing}", name)
    return items


def clean_labels(names: Iterable[str]) -> tuple[str, ...]:
    """Names in one spelling, each once, in their order; blank ones are left out.

    Raises
    ------
    BadRow
        A name is not valid text.
    """
    try:
        return tuple(dict.fromkeys(name for name in map(normalise, names) if name))
    except InputError as error:
        raise BadRow("label that is not valid text", ascii(list(names))[:100]) from error


def _by_themselves(
    folder: Path, files: dict[str, Path], labels_from: str, medium: Medium, rejects: Rejects
) -> list[Item]:
    if labels_from == "auto":
        labels_from = "folders" if tell_apart(files) else medium.inside
        if labels_from == "folders":
            _refuse_splits(folder, files)
    labels = labeller(labels_from, medium, synset_names(folder, files) if labels_from == "folders" else {})
    return _labelled(files.items(), labels, keep_all=labels_from == "none", medium=medium, rejects=rejects)


def tell_apart(files: Iterable[str]) -> bool:
    """Whether sub-folders say anything; one that holds all the files ("images") does not."""
    places = [PurePosixPath(name).parent for name in files]
    return any(place.name for place in places) and (len(places) == 1 or len(set(places)) > 1)


def synset_names(folder: Path, files: Iterable[str]) -> dict[str, str]:
    """What folders that are named by synsets are called."""
    words = folder / WORDS
    return read_code_names(words) if words.is_file() and any(_SYNSET.search(name) for name in files) else {}


def labeller(
    labels_from: str, medium: Medium, names: dict[str, str] | None = None
) -> Callable[[str, Path], Sequence[str]]:
    """What gives the labels of a file by its path in the folder and on disk, but for a metadata file."""
    if labels_from == "folders":
        names = names or {}
        return lambda name, path: tuple(names.get(part, part) for part in PurePosixPath(name).parts[:-1])
    if labels_from == medium.inside:
        return lambda name, path: medium.labels_in(path)
    if labels_from in {one.inside for one in MEDIA}:
        raise InputError(f"{medium.things} have no {labels_from}; say labels_from={medium.inside!r}")
    return lambda name, path: ()


def _labelled(
    files: Iterable[tuple[str, Path]],
    labels_of: Callable[[str, Path], Sequence[str]],
    *,
    keep_all: bool,
    medium: Medium,
    rejects: Rejects,
) -> list[Item]:
    items = []
    keep_all = keep_all or medium is DOCUMENTS
    for name, path in files:
        try:
            labels = clean_labels(labels_of(name, path))
            if not labels and not keep_all:
                raise BadRow(medium.unlabelled)
            items.append(Item(name, path, labels))
        except BadRow as bad:
            told = as_decoded(bad, path)
            rejects.add(shown(name), told.reason, told.detail)
    return items


def _refuse_splits(folder: Path, files: Iterable[str]) -> None:
    """`train` and `test` side by side are parts of a collection and hardly its labels."""
    top = {name.partition("/")[0] for name in files if "/" in name}
    if len(top) > 1 and {name.lower() for name in top} <= SPLITS:
        one, other = sorted(top)[:2]
        raise InputError(
            f"the sub-folders of {shown(folder)} are {one!r} and {other!r}, which look like a split and not "
            'like labels; give one of them, or say labels_from="folders"'
        )


def _require_labelled(folder: Path, items: list[Item], labels_from: str, medium: Medium, rejects: Rejects) -> None:
    if items:
        return
    if labels_from == "auto" and rejects.counts[medium.unlabelled] + rejects.counts[medium.unsupported] == len(rejects):
        raise InputError(
            f"the {medium.things} of {shown(folder)} have no labels: there are no sub-folders to tell them apart, "
            f"no {' or '.join(NAMES)}, and no {medium.written}; label them in one of these ways"
        )
    require_rows(0, folder, rejects, f"labelled {medium.things}")
