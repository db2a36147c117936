"""Match names in tables, which may come from another machine, to files of a folder."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import unquote

from wsabie.io.file_discovery import find_files, fold_path, is_inside
from wsabie.io.modalities import Modality, detect_modality
from wsabie.storage.rejects import Rejects, RowError

_T = TypeVar("_T")
_ADDRESS = re.compile(r"^[a-zA-Z][\w+.-]+://[^/]*/")


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
