"""Discovery of the pictures, sounds or documents under a folder."""

import errno
import os
import stat
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple, TypeAlias

from wsabie.core.folder_tree import walk_folder
from wsabie.io.ignore_patterns import read_ignore_patterns
from wsabie.io.modalities import DOCUMENTS, MEDIA, PICTURES, SOUNDS, Modality, detect_modality
from wsabie.io.parsers.text_files import explain_input_errors, format_path
from wsabie.io.raw_photos import RAW_ENDINGS
from wsabie.io.tags.image_tags import find_sidecar
from wsabie.storage.rejects import Rejects, RowError
from wsabie.vocabulary.folder_labels import SYSTEM_FOLDERS

_Candidates: TypeAlias = defaultdict[tuple[Modality, bool], list[Path]]
"""Files by modality, and by whether their format is unsupported."""
_COMPANIONS = {".xmp", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".txt", ".md", ".toml", ".yaml", ".yml", ".ini",
               ".db", ".parquet", ".gz", ".html", ".svm", ".arff", ".aae", ".thm", ".part", ".tmp"}  # fmt: skip
"""Endings of files that describe other files, and are not counted as data."""
RAW_TWIN = "RAW photo beside a picture of the same name"


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


def fold_path(path: str) -> str:
    """Return a path in the spelling for comparisons: letter case and forms of accents do not matter."""
    return unicodedata.normalize("NFC", path).casefold()
