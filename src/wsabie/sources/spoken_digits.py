"""Spoken digits (FSDD): recordings named by digit, speaker and take, and a dictionary of the speakers.

    metadata.py (or .txt)            metadata = {'jackson': {'gender': 'male', 'accent': 'USA/neutral', ...}, ...}
    recordings/7_jackson_32.wav

The takes 0 to 4 of every digit and speaker are for testing, as the collection's own description says. The dictionary is
read as a literal; nothing is run.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow, require_rows
from wsabie.sources.folders import clean_labels, find_files
from wsabie.sources.media import SOUNDS
from wsabie.sources.records import ItemList
from wsabie.sources.related import Related, Thing, items_of, require_kind, require_side
from wsabie.sources.text import open_bytes, reading, shown
from wsabie.storage.rejects import Rejects

METADATA, RECORDINGS = ("metadata.py", "metadata.txt"), "recordings"
KINDS = ("digit", "speaker", "gender", "accent", "language")
_NAME = re.compile(r"(?:.*/)?(\d)_(.+)_(\d+)\.\w+")
_DICTIONARY = re.compile(r"^metadata\s*=\s*(?=\{)", re.MULTILINE)
_LARGEST = 1 << 16
_TESTED = 5
_LOOKED_AT = 50


def is_spoken_digits(folder: Path) -> bool:
    """Whether a folder has the dictionary, and recordings that are named in this way."""
    if not any((folder / name).is_file() for name in METADATA) or not (folder / RECORDINGS).is_dir():
        return False
    return any(_NAME.fullmatch(file.name) for file in islice((folder / RECORDINGS).iterdir(), _LOOKED_AT))


def read_spoken_digits(
    folder: Path, *, kind: str | None = None, split: str | None = None, rejects: Rejects | None = None
) -> ItemList:
    """Read recordings with their digits.

    Parameters
    ----------
    folder : Path
    kind : {"digit", "speaker", "gender", "accent", "language"} or None
        What the labels are; None: digits.
    split : {"train", "test"} or None
        Only these recordings; None: all.
    rejects : Rejects or None
        Lists recordings with other names.

    Returns
    -------
    ItemList

    Raises
    ------
    InputError
        Nothing usable, a dictionary that is none, or another kind or split.
    """
    rejects = Rejects() if rejects is None else rejects
    kind, files = require_kind(kind, KINDS, folder), _files(folder, rejects)
    said = list(_recordings(folder, files, rejects))
    if split is not None:
        require_side(split, (one.split for one in said), folder)
    items = items_of((one for one in said if split in (None, one.split)), kind, files, SOUNDS, rejects)
    require_rows(len(items), folder, rejects, "recordings")
    return ItemList(folder, items, "sounds")


def relations_in_spoken_digits(folder: Path, *, rejects: Rejects | None = None) -> Related:
    """Digit and speaker of every recording, and what the dictionary says of the speaker.

    Raises
    ------
    InputError
        Nothing usable, or a dictionary that is none.
    """
    rejects = Rejects() if rejects is None else rejects
    return Related.of(folder, _recordings(folder, _files(folder, rejects), rejects), rejects, "recordings")


def _files(folder: Path, rejects: Rejects) -> dict[str, Path]:
    _, found = find_files(folder, rejects, SOUNDS)
    return {name: file for name, file in found.items() if name.startswith(f"{RECORDINGS}/")}


def _recordings(folder: Path, files: Iterable[str], rejects: Rejects) -> Iterator[Thing]:
    there = [folder / name for name in METADATA if (folder / name).is_file()]
    if not there:
        raise InputError(f"{shown(folder)} has no {METADATA[0]}; give the folder that holds it and {RECORDINGS}/")
    speakers = _speakers(there[0])
    for name in files:
        try:
            if (found := _NAME.fullmatch(name)) is None:
                raise BadRow("file name that is not digit, speaker and take")
            digit, speaker, take = found.groups()
            said = {"digit": digit, "speaker": speaker} | speakers.get(speaker, {})
            names = {kind: clean_labels([said.get(kind, "")]) for kind in KINDS}
            yield Thing(name, names, "test" if int(take) < _TESTED else "train")
        except BadRow as bad:
            rejects.add(name, bad.reason, bad.detail)


def _speakers(path: Path) -> dict[str, dict[str, str]]:
    """What the dictionary in the file says of each speaker."""
    with reading(path), open_bytes(path) as stream:
        content = stream.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise InputError(f"{shown(path)} is larger than {_LARGEST >> 10} KiB, too large for a dictionary of speakers")
    try:
        text = content.decode("utf-8")
        found, end = _DICTIONARY.search(text), text.rfind("}") + 1
        speakers = ast.literal_eval(text[found.end() : end]) if found and found.end() < end else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise _no_dictionary(path) from error
    if not isinstance(speakers, dict) or not all(isinstance(said, dict) for said in speakers.values()):
        raise _no_dictionary(path)
    texts = [text for name, said in speakers.items() for text in (name, *said, *said.values())]
    if not all(isinstance(text, str) for text in texts):
        raise _no_dictionary(path)
    return speakers


def _no_dictionary(path: Path) -> InputError:
    return InputError(
        f"{shown(path)} holds no dictionary `metadata = {{speaker: {{kind: name}}}}` of texts; fetch it again, or say "
        "labels_from for another reading of the folder"
    )
