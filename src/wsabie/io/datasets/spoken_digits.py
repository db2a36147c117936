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

from wsabie.core.errors import InputError, require
from wsabie.io.datasets.item_attributes import AttributeTable, ItemAttributes, make_attribute_items, select_split_side
from wsabie.io.file_discovery import find_files
from wsabie.io.formats.media_folder import normalise_labels
from wsabie.io.modalities import SOUNDS
from wsabie.io.parsers.array_builders import require_rows
from wsabie.io.parsers.text_files import read_small_file
from wsabie.io.records import ItemList, require_kind
from wsabie.storage.rejects import Rejects, RowError

METADATA, RECORDINGS = ("metadata.py", "metadata.txt"), "recordings"
KINDS = ("digit", "speaker", "gender", "accent", "language")
_NAME = re.compile(r"(?:.*/)?(\d)_(.+)_(\d+)\.\w+")
_DICTIONARY = re.compile(r"^metadata\s*=\s*(?=\{)", re.MULTILINE)
_MAX_BYTES = 1 << 16
_TESTED = 5
_N_INSPECTED_FILES = 50


def is_spoken_digits(folder: Path) -> bool:
    """Return True if a folder has the dictionary and recordings named in this way."""
    if not any((folder / name).is_file() for name in METADATA) or not (folder / RECORDINGS).is_dir():
        return False
    return any(_NAME.fullmatch(file.name) for file in islice((folder / RECORDINGS).iterdir(), _N_INSPECTED_FILES))


def read_spoken_digits(
    folder: Path, *, kind: str | None = None, split: str | None = None, rejects: Rejects
) -> ItemList:
    """Read recordings with their digits.

    Parameters
    ----------
    folder : Path
    kind : {"digit", "speaker", "gender", "accent", "language"} or None
        Kind of the labels; None: digits.
    split : {"train", "test"} or None
        Only these recordings; None: all.
    rejects : Rejects
        Lists recordings with other names.

    Returns
    -------
    ItemList

    Raises
    ------
    InputError
        Nothing usable, a dictionary that is none, or another kind or split.
    """
    kind, files = require_kind(kind, KINDS, folder, "labels of the kind"), _find_recordings(folder, rejects)
    recordings = select_split_side(list(_iterate_recordings(folder, files, rejects)), split, folder)
    items = make_attribute_items(recordings, kind, files, rejects)
    require_rows(len(items), folder, rejects, "recordings")
    return ItemList(folder, items, "sounds")


def read_spoken_digits_attributes(folder: Path, *, rejects: Rejects) -> AttributeTable:
    """Read digit and speaker of every recording, and the dictionary's facts about the speaker.

    Raises
    ------
    InputError
        Nothing usable, or a dictionary that is none.
    """
    return AttributeTable.from_items(
        folder, _iterate_recordings(folder, _find_recordings(folder, rejects), rejects), rejects, "recordings"
    )


def _find_recordings(folder: Path, rejects: Rejects) -> dict[str, Path]:
    files = find_files(folder, rejects, SOUNDS).files
    return {name: file for name, file in files.items() if name.startswith(f"{RECORDINGS}/")}


def _iterate_recordings(folder: Path, files: Iterable[str], rejects: Rejects) -> Iterator[ItemAttributes]:
    dictionaries = [folder / name for name in METADATA if (folder / name).is_file()]
    require(bool(dictionaries), f"{folder} has no {METADATA[0]}; give the folder that holds it and {RECORDINGS}/")
    speakers = _read_speakers(dictionaries[0])
    for name in files:
        with rejects.catch(name):
            if (match := _NAME.fullmatch(name)) is None:
                raise RowError("file name that is not digit, speaker and take")
            digit, speaker, take = match.groups()
            facts = {"digit": digit, "speaker": speaker} | speakers.get(speaker, {})
            names = {kind: normalise_labels([facts.get(kind, "")]) for kind in KINDS}
            yield ItemAttributes(name, names, "test" if int(take) < _TESTED else "train")


def _read_speakers(path: Path) -> dict[str, dict[str, str]]:
    """Return the facts about each speaker in the dictionary of the file."""
    excess = f"is larger than {_MAX_BYTES >> 10} KiB, too large for a dictionary of speakers"
    content = read_small_file(path, _MAX_BYTES, excess)
    try:
        text = content.decode("utf-8")
        match, end = _DICTIONARY.search(text), text.rfind("}") + 1
        speakers: dict[str, dict[str, str]] = ast.literal_eval(text[match.end() if match else end : end])
        texts = [text for name, facts in speakers.items() for text in (name, *facts, *facts.values())]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("no text")
    except (ValueError, SyntaxError, TypeError, AttributeError, MemoryError, RecursionError) as error:
        problem = f"{path} holds no dictionary `metadata = {{speaker: {{kind: name}}}}` of texts"
        raise InputError(f"{problem}; fetch it again, or say labels_from for another reading of the folder") from error
    return speakers
