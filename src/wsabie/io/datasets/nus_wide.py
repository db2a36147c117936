r"""NUS-WIDE as it was published: tags, tables of tags, the 81 concepts, and low-level features.

    NUS_WID_Tags/All_Tags.txt                2124494179  portrait nuns catholic ...
    NUS_WID_Tags/AllTags1k.txt               0 and 1 for each tag of TagList1k.txt; AllTags81.txt for the 81 concepts
    Groundtruth/AllLabels/Labels_sky.txt     0 or 1 a line, a file for each concept
    Low_Level_Features/Normalized_CH.dat     numbers, a line for each picture
    ImageList/Imagelist.txt                  actor\0001_2124494179.jpg

What is given decides what is read: tags of All_Tags.txt (those of Final_Tag_List.txt, where it lies beside), a table,
a folder of concepts, or a file of features, whose labels are then the concepts. `Train_Tags1k.dat`, `Test_Tags81.txt`,
`Train_Normalized_CH.dat` and `BoW_Test_int.dat` are one side of the published split. The id of a picture is its
number at Flickr, from the list of pictures that belongs to the side, wherever it lies in the folders around, or else
the number of its line. Without features pictures are known by their ids (see `id_labels`); rows of one id are joined
then, since the collection names a few photographs twice.
"""

import logging
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Bool, Float32, Int64
from wsabie.core.errors import InputError
from wsabie.io.formats.id_labels import IdLabelCollector, read_indicator_table, read_names
from wsabie.io.parsers.array_builders import (
    GrowingArray,
    LabelIndex,
    RowError,
    build_label_matrix,
    decode_row,
    require_rows,
)
from wsabie.io.parsers.text_files import format_path, iterate_numbered_lines
from wsabie.io.records import FeatureTable
from wsabie.storage.rejects import Rejects

log = logging.getLogger("wsabie")
TAGS = "All_Tags.txt"
_TABLE = re.compile(r"(All|Train_|Test_)Tags(1k|81)\.(?:txt|dat)")
_FEATURES = re.compile(r"(?:(Train_|Test_)?Normalized_[A-Z0-9]+|BoW_(Train_|Test_)?int)\.dat")
_CONCEPT = re.compile(r"Labels_(.+?)(?:_(Train|Test))?\.txt")
_NAMES = {"1k": ("TagList1k.txt",), "81": ("TagList81.txt", "Concepts81.txt")}
_TAG_FOLDERS = ("", "NUS_WID_Tags")
_CONCEPT_FOLDERS = {side: ("", inner, f"Groundtruth/{inner}") for side, inner in
                    (("", "AllLabels"), ("Train_", "TrainTestLabels"), ("Test_", "TrainTestLabels"))}  # fmt: skip
_FOLDERS = ("", "NUS_WID_Tags", "ImageList", "ConceptsList", "Groundtruth", "AllLabels", "TrainTestLabels")


def is_nus_wide(path: Path) -> bool:
    """Return whether a path is one of the published files, or a folder of them."""
    if path.is_dir():
        return any((path / place / TAGS).is_file() for place in _TAG_FOLDERS) or len(_concept_files(path, "")) > 1
    return path.name == TAGS or bool(_TABLE.fullmatch(path.name) or _FEATURES.fullmatch(path.name))


def read_nus_wide(path: Path, *, rejects: Rejects | None = None) -> FeatureTable:
    """Read one of the published label sets, or features with the concepts.

    Parameters
    ----------
    path : Path
        `All_Tags.txt` or its folder; a table such as `AllTags1k.txt` or `Train_Tags81.txt`; the folder `AllLabels` or
        `Groundtruth`; or a file of features such as `Normalized_CH.dat`.
    rejects : Rejects or None
        Lists broken lines, and pictures without labels where they are known by their ids.

    Returns
    -------
    FeatureTable
        With features X is dense, with a row for every picture; without, X is the identity.

    Raises
    ------
    InputError
        A file that belongs to it is missing, or files differ in length.
    """
    rejects = Rejects() if rejects is None else rejects
    if features := _FEATURES.fullmatch(path.name):
        return _read_with_features(path, features[1] or features[2] or "", rejects)
    if path.is_dir():
        return _read_folder(path, rejects)
    if table := _TABLE.fullmatch(path.name):
        return _read_tables(path, table[1].removeprefix("All"), table[2], rejects)
    return _read_tags(path, rejects)


def _read_folder(path: Path, rejects: Rejects) -> FeatureTable:
    tags = next((file for place in _TAG_FOLDERS if (file := path / place / TAGS).is_file()), None)
    concepts = _concept_files(path, "")
    if tags and concepts:
        raise InputError(
            f"{format_path(path)} holds both tags and concepts, and nothing says which count; give "
            f"{format_path(tags)}, or {format_path(next(iter(concepts.values())).parent)}"
        )
    return _read_tags(tags, rejects) if tags else _read_concept_folder(path, concepts, rejects)


def _read_tags(path: Path, rejects: Rejects) -> FeatureTable:
    final = path.with_name("Final_Tag_List.txt")
    final_tags = set(read_names(final)) if final.is_file() else None
    collector, left_out = IdLabelCollector(path), 0
    for number, line in iterate_numbered_lines(path):
        if not line.strip():
            continue
        try:
            name, *tags = decode_row(line).split()
            selected_tags = [tag for tag in tags if final_tags is None or tag in final_tags]
            left_out += len(tags) - len(selected_tags)
            collector.add_all(name, selected_tags)
        except RowError as error:
            rejects.add(f"{format_path(path)}:{number}", error.reason, error.detail)
    if left_out:
        log.info("%s: %d tags that are not in %s are left out", format_path(path), left_out, final.name)
    return collector.as_rows(rejects, "tagged pictures")


def _read_tables(path: Path, side: str, kind: str, rejects: Rejects) -> FeatureTable:
    lists = [file for name in _NAMES[kind] if (file := _find_nearby_file(path.parent, name))]
    if not lists:
        raise InputError(
            f"there is no {' nor '.join(_NAMES[kind])} beside {format_path(path)}, which names its columns; put it "
            "there"
        )
    names = read_names(lists[0])
    return _build_id_table(
        path, read_indicator_table(path, len(names)), names, _read_picture_ids(path.parent, side), rejects
    )


def _read_concept_folder(folder: Path, files: dict[str, Path], rejects: Rejects) -> FeatureTable:
    names, labels = _read_concepts(files, rejects)
    rows = ((i + 1, np.flatnonzero(labels[i])) for i in range(len(labels)))
    return _build_id_table(folder, rows, names, _read_picture_ids(folder, ""), rejects)


def _build_id_table(
    path: Path, rows: Iterable[tuple[int, Int64 | RowError]], names: list[str], ids: list[str] | None, rejects: Rejects
) -> FeatureTable:
    collector = IdLabelCollector(path)
    _require_equal(path, collector.add_rows(rows, names, ids, rejects), ids)
    return collector.as_rows(rejects, "labelled pictures")


def _require_equal(path: Path, n: int, ids: list[str] | None) -> None:
    if ids is not None and len(ids) != n:
        raise InputError(
            f"{format_path(path)} is about {n:,} pictures but the list of pictures names {len(ids):,}; put the list "
            "there that belongs to it, or none"
        )


def _read_with_features(path: Path, side: str, rejects: Rejects) -> FeatureTable:
    files = _concept_files(path.parent, side) or _concept_files(path.parent.parent, side)
    if not files:
        raise InputError(f"there are no labels for {format_path(path)}; put the folder Groundtruth beside its folder")
    names, labels = _read_concepts(files, rejects)
    ids = _read_picture_ids(path.parent, side) or [str(i + 1) for i in range(len(labels))]
    _require_equal(next(iter(files.values())), len(labels), ids)
    X, picture_rows = _read_features(path, ids, rejects)
    require_rows(len(picture_rows), path, rejects)
    index = LabelIndex()
    final = np.array([index.number(name) for name in names])
    label_names, order = index.finish()
    rows, columns_of_labels = np.nonzero(labels[picture_rows])
    counts = np.bincount(rows, minlength=len(picture_rows))
    Y = build_label_matrix(counts, order[final[columns_of_labels]], len(label_names))
    columns = [f"{path.stem.replace(side, '')} {i}" for i in range(X.shape[1])]  # alike on both sides of the split
    return FeatureTable(X, Y, label_names, [ids[i] for i in picture_rows], feature_names=columns)


def _read_features(path: Path, ids: list[str], rejects: Rejects) -> tuple[Float32, list[int]]:
    """Return (X, the picture of each row); malformed lines and repeated ids are listed."""
    values, picture_rows, ids_so_far, width, n = GrowingArray(np.float32), list[int](), set[str](), 0, 0
    for n, line in iterate_numbered_lines(path):
        name = ids[n - 1] if n <= len(ids) else ""
        try:
            row = _parse_numbers(line)
            width = width or len(row)
            if len(row) != width:
                raise RowError("wrong number of values", f"{len(row)} of {width}")
            if name in ids_so_far:
                raise RowError("duplicate id", name)
        except RowError as error:
            rejects.add(f"{format_path(path)}:{n}", error.reason, error.detail)
            continue
        ids_so_far.add(name)
        picture_rows.append(n - 1)
        values.extend(row)
    _require_equal(path, n, ids)
    return values.finish().reshape(len(picture_rows), width), picture_rows


def _parse_numbers(line: bytes) -> Float32:
    try:
        with np.errstate(over="ignore"):
            row = np.array([float(cell) for cell in line.split()]).astype(np.float32)
    except ValueError as error:
        raise RowError("malformed number", repr(line[:60])) from error
    if not len(row) or not np.isfinite(row).all():
        raise RowError("value that is missing or not finite", repr(line[:60]))
    return row


def _concept_files(folder: Path, side: str) -> dict[str, Path]:
    """Return the file of each concept, by its name; empty when there are none."""
    for place in _CONCEPT_FOLDERS[side]:
        concepts = {}
        for file in sorted((folder / place).glob("Labels_*.txt")):
            match = _CONCEPT.fullmatch(file.name)
            if match and (match[2] or "") == side.removesuffix("_"):
                concepts[match[1]] = file
        if concepts:
            return concepts
    return {}


def _read_concepts(files: dict[str, Path], rejects: Rejects) -> tuple[list[str], Bool]:
    """Return (names, (pictures, concepts)); a flag that is neither 0 nor 1 is listed and counts as 0."""
    columns = []
    for file in files.values():
        flags = bytearray()
        for number, labels in read_indicator_table(file, 1):
            if isinstance(labels, RowError):
                rejects.add(f"{format_path(file)}:{number}", labels.reason, labels.detail)
            flags.append(not isinstance(labels, RowError) and len(labels) == 1)
        columns.append(np.frombuffer(flags, bool))
        if len(columns[-1]) != len(columns[0]):
            first = next(iter(files.values()))
            raise InputError(
                f"{format_path(file)} has {len(columns[-1]):,} lines but {first.name} {len(columns[0]):,}; fetch "
                "both again"
            )
    return list(files), np.column_stack(columns)


def _read_picture_ids(folder: Path, side: str) -> list[str] | None:
    """Return the Flickr numbers of the pictures of a side, in order; None without the list of pictures."""
    file = _find_nearby_file(folder, f"{side.removesuffix('_')}Imagelist.txt")
    if file is None:
        return None
    names = [name.replace("\\", "/").rpartition("/")[2] for name in read_names(file)]
    return [name.rpartition(".")[0].rpartition("_")[2] or name for name in names]


def _find_nearby_file(folder: Path, name: str) -> Path | None:
    """Find a file in a folder, in the two above it, or in one of the published ones in these."""
    places = [place / inner for place in (folder, *folder.absolute().parents[:2]) for inner in _FOLDERS]
    return next((place / name for place in places if (place / name).is_file()), None)
