"""MagnaTagATune: clips of music with tags, artists and albums.

    annotations_final.csv    "clip_id" TAB "no voice" TAB "singer" ... TAB "mp3_path"         0 or 1 for each tag
    clip_info_final.csv      "clip_id" TAB "track_number" TAB "title" TAB "artist" TAB "album" ... TAB "mp3_path"
    0/, 1/ ... f/            the clips

The id of a clip is its `mp3_path`. Synonymous tags stay apart. Clips of one song are a group. The split is that of
Dieleman and Schrauwen (End-to-end learning for music audio, ICASSP 2014), which most papers use: of the 16 folders the
first 12 (0 to b) are for training, c for validation, d to f for testing.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from wsabie.sources.build import BadRow
from wsabie.sources.folders import clean_labels, find_files, relative_name
from wsabie.sources.id_labels import IdLabels
from wsabie.sources.media import SOUNDS
from wsabie.sources.records import ItemList, Rows
from wsabie.sources.related import Related, Thing, items_of, require_kind, require_side
from wsabie.sources.tables import line_rows
from wsabie.storage.rejects import Rejects

ANNOTATIONS, INFO = "annotations_final.csv", "clip_info_final.csv"
KINDS = ("tag", "artist", "album")
_SIDES = dict.fromkeys("0123456789ab", "train") | {"c": "validation"} | dict.fromkeys("def", "test")
_SEGMENT = re.compile(r"-\d+-\d+(\.\w+)?$")


def is_magnatagatune(folder: Path) -> bool:
    """Whether a folder holds both tables."""
    return (folder / ANNOTATIONS).is_file() and (folder / INFO).is_file()


def read_magnatagatune(
    folder: Path, *, kind: str | None = None, split: str | None = None, rejects: Rejects | None = None
) -> Rows | ItemList:
    """Read clips with their tags.

    Parameters
    ----------
    folder : Path
    kind : {"tag", "artist", "album"} or None
        What the labels are; None: tags.
    split : {"train", "validation", "test"} or None
        Only these clips; None: all.
    rejects : Rejects or None
        Lists malformed lines, clips without labels, labels without a clip, and clips without a row.

    Returns
    -------
    Rows or ItemList
        The sounds; where none is there, the clips as ids.

    Raises
    ------
    InputError
        Nothing usable, a column is missing, or another kind or split.
    """
    rejects = Rejects() if rejects is None else rejects
    kind = require_kind(kind, KINDS, folder)
    clips = list(_clips(folder, rejects))
    if split is not None:
        require_side(split, (clip.split for clip in clips), folder)
    wanted = [clip for clip in clips if split in (None, clip.split)]
    _, files = find_files(folder, rejects, SOUNDS)
    if not any(clip.id in files for clip in clips):
        return _by_ids(folder, wanted, kind, rejects)
    for name in files.keys() - {clip.id for clip in clips}:
        rejects.add(name, SOUNDS.unlabelled, f"no row in {ANNOTATIONS}")
    return ItemList(folder, items_of(wanted, kind, files, SOUNDS, rejects), "sounds")


def relations_in_magnatagatune(folder: Path, *, rejects: Rejects | None = None) -> Related:
    """The tags, artists and albums of all annotated clips, whether they are there or not.

    Raises
    ------
    InputError
        Nothing usable, or a column is missing.
    """
    rejects = Rejects() if rejects is None else rejects
    return Related.of(folder, _clips(folder, rejects), rejects, "clips")


def _by_ids(folder: Path, clips: list[Thing], kind: str, rejects: Rejects) -> Rows:
    got = IdLabels(folder)
    for clip in clips:
        for name in clip.names[kind]:
            got.add(clip.id, name)
        if not clip.names[kind]:
            rejects.add(clip.id, SOUNDS.unlabelled, f"no {kind}")
    return got.as_rows(rejects, "labelled clips")


def _clips(folder: Path, rejects: Rejects) -> Iterator[Thing]:
    makers = {
        row["clip_id"]: {kind: row[kind] for kind in KINDS[1:]}
        for _, row in line_rows(folder / INFO, ("clip_id", *KINDS[1:]), rejects)
    }
    seen: set[str] = set()
    for where, row in line_rows(folder / ANNOTATIONS, ("clip_id", "mp3_path"), rejects):
        try:
            clip = _clip(row, makers.get(row["clip_id"], {}))
            if clip.id in seen:
                raise BadRow("duplicate id", clip.id)
            seen.add(clip.id)
            yield clip
        except BadRow as bad:
            rejects.add(where, bad.reason, bad.detail)


def _clip(row: dict[str, str], maker: dict[str, str]) -> Thing:
    path = row["mp3_path"]
    if not path:
        raise BadRow("row without a file name")
    name = relative_name(path)
    tags = {tag: cell for tag, cell in row.items() if tag not in ("clip_id", "mp3_path")}
    for tag, cell in tags.items():
        if cell not in ("0", "1"):
            raise BadRow("tag that is neither 0 nor 1", f"{tag} {cell}")
    said = {"tag": clean_labels(tag for tag, cell in tags.items() if cell == "1")}
    said |= {kind: clean_labels([maker.get(kind, "")]) for kind in KINDS[1:]}
    return Thing(name, said, _SIDES.get(name.partition("/")[0]), _SEGMENT.sub("", name))
