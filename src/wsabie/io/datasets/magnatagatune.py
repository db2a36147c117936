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

from wsabie.io.datasets.item_attributes import AttributeTable, ItemAttributes, make_attribute_items, select_split_side
from wsabie.io.file_discovery import find_files
from wsabie.io.file_matching import normalise_relative_path
from wsabie.io.formats.id_labels import IdLabelCollector
from wsabie.io.formats.media_folder import normalise_labels
from wsabie.io.modalities import SOUNDS
from wsabie.io.parsers.text_tables import iterate_line_rows
from wsabie.io.records import FeatureTable, ItemList, require_kind
from wsabie.storage.rejects import Rejects, RowError

ANNOTATIONS, INFO = "annotations_final.csv", "clip_info_final.csv"
KINDS = ("tag", "artist", "album")
_SIDES = dict.fromkeys("0123456789ab", "train") | {"c": "validation"} | dict.fromkeys("def", "test")
_SEGMENT = re.compile(r"-\d+-\d+(\.\w+)?$")


def is_magnatagatune(folder: Path) -> bool:
    """Return True if a folder holds both tables."""
    return (folder / ANNOTATIONS).is_file() and (folder / INFO).is_file()


def read_magnatagatune(
    folder: Path, *, kind: str | None = None, split: str | None = None, rejects: Rejects
) -> FeatureTable | ItemList:
    """Read clips with their tags.

    Parameters
    ----------
    folder : Path
    kind : {"tag", "artist", "album"} or None
        Kind of the labels; None: tags.
    split : {"train", "validation", "test"} or None
        Only these clips; None: all.
    rejects : Rejects
        Lists malformed lines, clips without labels, labels without a clip, and clips without a row.

    Returns
    -------
    FeatureTable or ItemList
        The sounds; where none is there, the clips as ids.

    Raises
    ------
    InputError
        Nothing usable, a column is missing, or another kind or split.
    """
    kind = require_kind(kind, KINDS, folder, "labels of the kind")
    clips = list(_iterate_clips(folder, rejects))
    selected_clips = select_split_side(clips, split, folder)
    files = find_files(folder, rejects, SOUNDS).files
    if not any(clip.id in files for clip in clips):
        return _build_id_table(folder, selected_clips, kind, rejects)
    for name in files.keys() - {clip.id for clip in clips}:
        rejects.add(name, SOUNDS.unlabelled_reason, f"no row in {ANNOTATIONS}")
    return ItemList(folder, make_attribute_items(selected_clips, kind, files, rejects), "sounds")


def read_magnatagatune_attributes(folder: Path, *, rejects: Rejects) -> AttributeTable:
    """Read the tags, artists and albums of all annotated clips, with or without a file.

    Raises
    ------
    InputError
        Nothing usable, or a column is missing.
    """
    return AttributeTable.from_items(folder, _iterate_clips(folder, rejects), rejects, "clips")


def _build_id_table(folder: Path, clips: list[ItemAttributes], kind: str, rejects: Rejects) -> FeatureTable:
    collector = IdLabelCollector(folder, rejects)
    for clip in clips:
        for name in clip.names[kind]:
            collector.add(clip.id, name)
        if not clip.names[kind]:
            rejects.add(clip.id, SOUNDS.unlabelled_reason, f"no {kind}")
    return collector.build_table("labelled clips")


def _iterate_clips(folder: Path, rejects: Rejects) -> Iterator[ItemAttributes]:
    makers = {
        row.cells["clip_id"]: {kind: row.cells[kind] for kind in KINDS[1:]}
        for row in iterate_line_rows(folder / INFO, ("clip_id", *KINDS[1:]), rejects)
    }
    clip_ids: set[str] = set()
    for where, _, cells in iterate_line_rows(folder / ANNOTATIONS, ("clip_id", "mp3_path"), rejects):
        with rejects.catch(where):
            clip = _parse_clip(cells, makers.get(cells["clip_id"], {}))
            if clip.id in clip_ids:
                raise RowError("duplicate id", clip.id)
            clip_ids.add(clip.id)
            yield clip


def _parse_clip(row: dict[str, str], maker: dict[str, str]) -> ItemAttributes:
    path = row["mp3_path"]
    if not path:
        raise RowError("row without a file name")
    name = normalise_relative_path(path)
    tags = {tag: cell for tag, cell in row.items() if tag not in ("clip_id", "mp3_path")}
    for tag, cell in tags.items():
        if cell not in ("0", "1"):
            raise RowError("tag that is neither 0 nor 1", f"{tag} {cell}")
    names = {"tag": normalise_labels(tag for tag, cell in tags.items() if cell == "1")}
    names |= {kind: normalise_labels([maker.get(kind, "")]) for kind in KINDS[1:]}
    return ItemAttributes(name, names, _SIDES.get(name.partition("/")[0]), _SEGMENT.sub("", name))
