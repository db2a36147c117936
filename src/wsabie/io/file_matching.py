"""Match names to files: list the files of a folder, and find those that tables and people name."""

import errno
import os
import re
import stat
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias, TypeVar
from urllib.parse import unquote

from wsabie.core.errors import InputError
from wsabie.core.folder_tree import walk_folder
from wsabie.core.input_files import is_regular_file
from wsabie.io.modalities import DOCUMENTS, MEDIA, PICTURES, SOUNDS, Modality, detect_modality
from wsabie.io.parsers.text_files import explain_input_errors, format_path, iterate_numbered_lines
from wsabie.io.raw_photos import RAW_ENDINGS
from wsabie.io.tags.image_tags import find_sidecar
from wsabie.storage.rejects import Rejects, RowError
from wsabie.vocabulary.folder_labels import SYSTEM_FOLDERS

_T = TypeVar("_T")
_Candidates: TypeAlias = defaultdict[tuple[Modality, bool], list[Path]]
"""Files by modality, and by whether their format is unsupported."""
_COMPANIONS = {".xmp", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".txt", ".md", ".toml", ".yaml", ".yml", ".ini",
               ".db", ".parquet", ".gz", ".html", ".svm", ".arff", ".aae", ".thm", ".part", ".tmp"}  # fmt: skip
"""Endings of files that describe other files, and are not counted as data."""
IGNORE_FILE = ".wsabieignore"
"""File whose lines, as in `.gitignore`, name files and folders to ignore."""
RAW_TWIN = "RAW photo beside a picture of the same name"
_ADDRESS = re.compile(r"^[a-zA-Z][\w+.-]+://[^/]*/")


class FolderListing(NamedTuple):
    """Files of one modality under a folder."""

    modality: Modality
    files: dict[str, Path]
    """Files by their path in the folder, sorted."""
    other_endings: Counter[str]
    """Numbers of files of other kinds by ending."""


def find_files(folder: Path, rejects: Rejects, modality: Modality | None = None) -> FolderListing:
    """List the files of a modality under a folder.

    Unsupported files, links that lead out and RAW photos beside their JPEG are rejected.
    Hidden files, system files and files listed in `IGNORE_FILE` are skipped. Without `modality`, the most frequent
    one is taken; documents count only in a folder without pictures and sounds.
    """
    candidates, other_endings = _list_candidates(folder, rejects)
    if modality is None:
        modality = _choose_modality(candidates)
    files: dict[str, Path] = {}
    raw_twins = _find_raw_twins(candidates[modality, False])
    for path in candidates[modality, False]:
        if path in raw_twins:
            rejects.add(_get_id(path, folder), RAW_TWIN, "the other picture counts")
        else:
            _add_file(path, folder, files, rejects)
    for (kind, _), paths in candidates.items():
        other_endings.update(path.suffix.lower() for path in paths if kind is not modality)
    for path in candidates[modality, True]:
        rejects.add(_get_id(path, folder), modality.unsupported_reason, modality.advice)
    for ending in _COMPANIONS:
        del other_endings[ending]
    return FolderListing(modality, dict(sorted(files.items())), other_endings)


def _find_raw_twins(paths: list[Path]) -> set[Path]:
    """Return the RAW photos beside another picture of the same stem: one shot, saved twice."""
    raw_photos = {path for path in paths if path.name.lower().endswith(RAW_ENDINGS)}
    stems = {path.with_suffix("") for path in paths if path not in raw_photos} if raw_photos else set()
    return {path for path in raw_photos if path.with_suffix("") in stems}


def _list_candidates(folder: Path, rejects: Rejects) -> tuple[_Candidates, Counter[str]]:
    """List the visible files of all modalities; count the endings of the others."""
    with explain_input_errors(folder):
        os.scandir(folder).close()  # a walk would pass over a folder that cannot be read
        os.lstat(os.path.join(folder, "."))  # noqa: PTH118 - a Path has no dot; one may list what one may not enter
    candidates: _Candidates = defaultdict(list)
    is_ignored, other_endings = read_ignore_patterns(folder), Counter[str]()

    def reject_folder(error: OSError) -> None:
        rejects.add(_get_id(Path(error.filename), folder), "folder that cannot be read", error.strerror or "")

    for parent, folders, names in walk_folder(folder, reject_folder):
        if not os.access(parent, os.X_OK):
            reject_folder(PermissionError(errno.EACCES, os.strerror(errno.EACCES), parent))
            folders.clear()
            continue
        visible_folders = (name for name in folders if name[0] != "." and name.casefold() not in SYSTEM_FOLDERS)
        folders[:] = sorted(n for n in visible_folders if not is_ignored(_get_id(Path(parent, n), folder) + "/"))
        for name in [name for name in folders if _is_link(Path(parent, name))]:
            rejects.add(_get_id(Path(parent, name), folder), "link to a folder, not followed")
        _reject_sidecars(Path(parent), names, folder, rejects)
        for name in names:
            if name[0] == "." or is_ignored(_get_id(Path(parent, name), folder)):
                continue
            if (kind := _classify_name(name)) is not None:
                candidates[kind].append(Path(parent, name))
            else:
                other_endings[os.path.splitext(name)[1].lower()] += 1  # noqa: PTH122 - as quick as can be
    return candidates, other_endings


def _classify_name(name: str) -> tuple[Modality, bool] | None:
    """Return the modality of a file, and True if its format is not supported."""
    for is_unread in (False, True):
        if (modality := detect_modality(name, is_unread, (*MEDIA, DOCUMENTS))) is not None:
            return modality, is_unread
    return None


def _choose_modality(candidates: _Candidates) -> Modality:
    """Return the most frequent modality; documents only where nothing is a picture or a sound."""
    n_files = Counter({key: len(paths) for key, paths in candidates.items()})
    has_sounds = n_files[SOUNDS, False] > 0
    modality = max(MEDIA, key=lambda kind: (n_files[kind, False], kind is SOUNDS and has_sounds, n_files[kind, True]))
    return DOCUMENTS if n_files and not n_files[modality, False] + n_files[modality, True] else modality


def _reject_sidecars(parent: Path, names: list[str], folder: Path, rejects: Rejects) -> None:
    """List sidecars whose spelling differs more from their pictures' than `find_sidecar` tries."""
    sidecars = [name for name in names if name[-4:].lower() == ".xmp"]
    pictures = [name for name in names if sidecars and detect_modality(name) is PICTURES]
    spellings = {text: name for name in pictures for text in (name, name.rpartition(".")[0])}
    by_fold = {fold_path(text): name for text, name in spellings.items()}
    for sidecar in sidecars:
        is_usual = sidecar[:-4] in spellings and sidecar[-4:] in (".xmp", ".XMP")
        picture = None if is_usual else spellings.get(sidecar[:-4], by_fold.get(fold_path(sidecar[:-4])))
        if picture and find_sidecar(parent / picture) is None:
            rejects.add(_get_id(parent / sidecar, folder), "unusual sidecar name", f"rename it to {picture}.xmp")


def format_other_files(folder: Path, endings: Counter[str]) -> str:
    """Return a remark on files of other kinds, by ending; "" where there are none.

    Examples
    --------
    >>> format_other_files(Path("photos"), Counter({".mov": 3, "": 1}))
    'left alone in photos: 4 files of other kinds (3 .mov, 1 without an ending)'
    """
    if not endings:
        return ""
    shown = [f"{n:,} {ending or 'without an ending'}" for ending, n in endings.most_common(10)]
    more = [f"{len(endings) - 10:,} more endings"] if len(endings) > 10 else []
    files = "1 file" if (total := endings.total()) == 1 else f"{total:,} files"
    return f"left alone in {folder}: {files} of other kinds ({', '.join([*shown, *more])})"


def read_ignore_patterns(folder: Path) -> Callable[[str], bool]:
    """Return a test for paths in a folder (folders end in /) by lines of its `IGNORE_FILE`.

    Raises
    ------
    InputError
        The file cannot be read, or a line is not a pattern.
    """
    path = folder / IGNORE_FILE
    if not is_regular_file(path):
        return lambda _: False
    from pathspec import GitIgnoreSpec

    lines = [line.decode("utf-8", "replace") for _, line in iterate_numbered_lines(path)]
    try:
        return GitIgnoreSpec.from_lines(lines).match_file
    except ValueError as error:
        raise InputError(f"{path} holds a line that is not a pattern: {error}; write lines as in .gitignore") from error


def _get_id(path: Path, folder: Path) -> str:
    return format_path(path.relative_to(folder).as_posix())


def _add_file(path: Path, folder: Path, files: dict[str, Path], rejects: Rejects) -> None:
    name = _get_id(path, folder)
    with rejects.catch(name):
        if name != path.relative_to(folder).as_posix():
            raise RowError("file name that is not UTF-8")
        if _is_link(path) and not is_inside(path, folder):
            raise RowError("link that leads out of the folder")
        try:
            is_regular = stat.S_ISREG(path.stat().st_mode)
        except OSError as error:
            missing = "link to a missing file"
            reasons = {errno.ELOOP: "link that leads to itself", errno.ENOENT: missing, errno.ENOTDIR: missing}
            reason = reasons.get(error.errno or 0)
            raise RowError(reason or "unreadable file", "" if reason else error.strerror or "") from error
        if not is_regular:
            raise RowError("not a regular file")
        files[name] = path


def _is_link(path: Path) -> bool:
    return os.path.islink(path)  # noqa: PTH114 - a Path raises where a folder may not be entered


def is_inside(path: Path, folder: Path) -> bool:
    """Return True if a path lies under a folder after following all links of both."""
    return os.path.realpath(path).startswith(os.path.join(os.path.realpath(folder), ""))  # noqa: PTH118


def find_local_file(folder: Path, name: str) -> Path | None:
    """Return the file that a table names in a folder; None if it is missing or a link leads elsewhere."""
    try:
        file = folder / normalise_relative_path(name)
        return file if file.is_file() and is_inside(file, folder) else None
    except (RowError, OSError, ValueError):  # not a valid name
        return None


def normalise_relative_path(text: str) -> str:
    """Return a file name from a table in the form that `find_files` writes.

    Raises
    ------
    RowError
        It is absolute or climbs out of the folder.
    """
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or "\0" in text:
        raise RowError("path that leads out of the folder", ascii(text)[:100])
    return path.as_posix()


def list_spellings(path: str) -> list[str]:
    r"""Return a path as it is, with / for \, and as other systems write accents.

    Examples
    --------
    >>> list_spellings(r"./2024\a.jpg")
    ['2024\\a.jpg', '2024/a.jpg']
    """
    path = path.strip() if not path.startswith(" ") else path
    paths = [path, path.replace("\\", "/")] if "\\" in path else [path]
    if not path.isascii():
        paths += [unicodedata.normalize(form, spelling) for form in ("NFC", "NFD") for spelling in paths]
    return list(dict.fromkeys(spelling.removeprefix("./") for spelling in paths))


class FileMatcher:
    r"""Match names in tables to the files of a folder.

    A name means the file of this path. Where there is none, it means the only file whose path is the same but for
    `\`, letter case and the form of accents, or else the only file whose path ends as the name does. The name may
    come from another machine (absolute, an address, with `..`), or its folders may be missing here.

    Parameters
    ----------
    paths : iterable of str
        Paths of the files, with `/`.
    allow_stems : bool
        Names may lack the endings of files.

    Examples
    --------
    >>> matcher = FileMatcher(["images/1.jpg", "images/2.JPG"])
    >>> matcher.match(["images\\1.jpg", "/home/eve/2.jpg", "3.jpg"])
    {'images\\1.jpg': 'images/1.jpg', '/home/eve/2.jpg': 'images/2.JPG'}
    """

    def __init__(self, paths: Iterable[str], *, allow_stems: bool = False) -> None:
        self.paths, self.allow_stems = dict.fromkeys(paths), allow_stems

    def match(self, names: Iterable[str]) -> dict[str, str]:
        """Return the files of names; names that mean no file, or several, are left out."""
        names = list(dict.fromkeys(names))
        matches = {name: name.removeprefix("./") for name in names if name.removeprefix("./") in self.paths}
        unmatched = [name for name in names if name not in matches and "\0" not in name]
        matches |= {
            name: path for name in unmatched if (path := self._by_spelling.get(fold_path("/".join(_split_path(name)))))
        }
        matched_paths, claims = set(matches.values()), defaultdict[str, list[str]](list)
        for name in unmatched:
            if (
                name not in matches
                and (path := self._find_by_end(_split_path(name))) is not None
                and path not in matched_paths
            ):
                claims[path].append(name)
        return matches | {claimants[0]: path for path, claimants in claims.items() if len(claimants) == 1}

    def _find_by_end(self, parts: list[str]) -> str | None:
        """Return the only file that shares the longest end of its path with the name."""
        name = fold_path(parts[-1]) if parts else ""
        files = self._by_name.get(name, [])
        for start in range(len(parts)):
            end = fold_path("/" + "/".join(parts[start:]))
            if candidates := [path for key, path in files if f"/{key}".endswith(end)]:
                return candidates[0] if len(candidates) == 1 else None
        return None

    @cached_property
    def _by_spelling(self) -> dict[str, str | None]:
        by_spelling: dict[str, str | None] = {}
        for path in self.paths:
            by_spelling[fold_path(path)] = None if fold_path(path) in by_spelling else path
        return by_spelling

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[str, str]]]:
        """Files by their names, or else by these without endings."""
        by_stem = _group_by_name((fold_path(path.rpartition(".")[0]), path) for path in self.paths if self.allow_stems)
        return by_stem | _group_by_name((fold_path(path), path) for path in self.paths)


def _group_by_name(files: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    by_name = defaultdict[str, list[tuple[str, str]]](list)
    for key, path in files:
        by_name[key.rpartition("/")[2]].append((key, path))
    return by_name


def fold_path(path: str) -> str:
    """Return a path in the spelling for comparisons: letter case and forms of accents do not matter."""
    return unicodedata.normalize("NFC", path).casefold()


def _split_path(name: str) -> list[str]:
    """Return the parts of a path of any machine behind its last `..`; of an address without its query."""
    text = name.strip()
    if _ADDRESS.match(text):
        text = unquote(_ADDRESS.sub("/", text).partition("?d=")[2] or _ADDRESS.sub("/", text).partition("?")[0])
    elif "?d=" in text:  # of Label Studio
        text = unquote(text.partition("?d=")[2])
    parts = [part for part in re.sub(r"^[a-zA-Z]:", "", text.replace("\\", "/")).split("/") if part not in ("", ".")]
    return parts[len(parts) - parts[::-1].index("..") :] if ".." in parts else parts


def find_listed_files(folder: Path, names: Iterable[str], modality: Modality | None = None) -> dict[str, Path]:
    """Return files that names in a table mean, by name; the folder is searched if a name is not a path.

    Without a modality it is that of most of the files.
    """
    paths = {name: find_local_file(folder, name) for name in dict.fromkeys(names)}
    files = {name: path for name, path in paths.items() if path is not None and detect_modality(path.name)}
    if len(files) == len(paths):
        return files
    files_by_path = find_files(folder, Rejects(most=0), modality).files
    matches = FileMatcher(files_by_path, allow_stems=True).match(paths)
    return {name: files_by_path[path] for name, path in matches.items()} | files


def list_relative_paths(path: Path, folders: Iterable[tuple[Path, _T]]) -> list[tuple[_T, str]]:
    """Return (key, relative path) for each folder that holds a path; "" is the folder itself."""
    return [
        (key, "" if path == folder else path.relative_to(folder).as_posix())
        for folder, key in folders
        if path.is_relative_to(folder)
    ]
