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
from functools import partial
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Bool, Float32
from wsabie.core.errors import InputError, require
from wsabie.io.formats.id_labels import IdLabelCollector, iterate_flag_lines, parse_flags, read_names
from wsabie.io.parsers.array_builders import GrowingArray, LabelIndex, build_label_matrix, decode_row, require_rows
from wsabie.io.parsers.text_files import format_path, iterate_numbered_lines
from wsabie.io.records import FeatureTable
from wsabie.storage.rejects import Rejects, RowError

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
    """Return True if a path is one of the published files, or a folder of them."""
    if path.is_dir():
        return any((path / inner / TAGS).is_file() for inner in _TAG_FOLDERS) or len(_find_concept_files(path, "")) > 1
    return path.name == TAGS or bool(_TABLE.fullmatch(path.name) or _FEATURES.fullmatch(path.name))


def read_nus_wide(path: Path, *, rejects: Rejects) -> FeatureTable:
    """Read one of the published label sets, or features with the concepts.

    Parameters
    ----------
    path : Path
        `All_Tags.txt` or its folder; a table such as `AllTags1k.txt` or `Train_Tags81.txt`; the folder `AllLabels` or
        `Groundtruth`; or a file of features such as `Normalized_CH.dat`.
    rejects : Rejects
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
    if features := _FEATURES.fullmatch(path.name):
        return _read_with_features(path, features[1] or features[2] or "", rejects)
    if path.is_dir():
        return _read_folder(path, rejects)
    if table := _TABLE.fullmatch(path.name):
        return _read_tables(path, table[1].removeprefix("All"), table[2], rejects)
    return _read_tags(path, rejects)


def _read_folder(path: Path, rejects: Rejects) -> FeatureTable:
    tags = next((file for inner in _TAG_FOLDERS if (file := path / inner / TAGS).is_file()), None)
    concepts = _find_concept_files(path, "")
    if tags and concepts:
        problem = f"{path} holds both tags and concepts, and nothing says which count"
        raise InputError(f"{problem}; give {tags}, or {next(iter(concepts.values())).parent}")
    if tags:
        return _read_tags(tags, rejects)
    names, labels = _read_concepts(concepts, rejects)
    collector, ids = IdLabelCollector(path, rejects), _read_picture_ids(path, "")
    _require_equal(path, collector.add_flags(enumerate(labels, 1), np.flatnonzero, names, ids, unique=False), ids)
    return collector.build_table("labelled pictures")


def _read_tags(path: Path, rejects: Rejects) -> FeatureTable:
    final = path.with_name("Final_Tag_List.txt")
    final_tags = set(read_names(final)) if final.is_file() else None
    collector, left_out = IdLabelCollector(path, rejects), 0

    def parse(_: int, line: bytes) -> tuple[str, list[str]]:
        nonlocal left_out
        name, *tags = decode_row(line).split()
        selected_tags = [tag for tag in tags if final_tags is None or tag in final_tags]
        left_out += len(tags) - len(selected_tags)
        return name, selected_tags

    collector.add_rows(iterate_numbered_lines(path, skip_blank=True), parse, unique=False)
    if left_out:
        log.info("%s: %d tags that are not in %s are left out", format_path(path), left_out, final.name)
    return collector.build_table("tagged pictures")


def _read_tables(path: Path, side: str, kind: str, rejects: Rejects) -> FeatureTable:
    lists = [file for name in _NAMES[kind] if (file := _find_nearby_file(path.parent, name))]
    if not lists:
        raise InputError(
            f"there is no {' nor '.join(_NAMES[kind])} beside {path}, which names its columns; put it there"
        )
    names = read_names(lists[0])
    lines, parse = iterate_flag_lines(path, len(names)), partial(parse_flags, n_labels=len(names))
    collector, ids = IdLabelCollector(path, rejects), _read_picture_ids(path.parent, side)
    _require_equal(path, collector.add_flags(lines, parse, names, ids, unique=False), ids)
    return collector.build_table("labelled pictures")


def _require_equal(path: Path, n: int, ids: list[str] | None) -> None:
    if ids is not None and len(ids) != n:
        problem = f"{path} is about {n:,} pictures but the list of pictures names {len(ids):,}"
        raise InputError(f"{problem}; add the matching list, or remove it")


def _read_with_features(path: Path, side: str, rejects: Rejects) -> FeatureTable:
    files = _find_concept_files(path.parent, side) or _find_concept_files(path.parent.parent, side)
    require(bool(files), f"there are no labels for {path}; put the folder Groundtruth beside its folder")
    names, labels = _read_concepts(files, rejects)
    ids = _read_picture_ids(path.parent, side) or [str(i + 1) for i in range(len(labels))]
    _require_equal(next(iter(files.values())), len(labels), ids)
    X, picture_rows = _read_features(path, ids, rejects)
    require_rows(len(picture_rows), path, rejects)
    index = LabelIndex()
    final = np.array([index.assign_id(name) for name in names])
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
        with rejects.catch(path, n):
            row = _parse_numbers(line)
            width = width or len(row)
            if len(row) != width:
                raise RowError("wrong number of values", f"{len(row)} of {width}")
            if name in ids_so_far:
                raise RowError("duplicate id", name)
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


def _find_concept_files(folder: Path, side: str) -> dict[str, Path]:
    """Return the file of each concept, by its name; empty when there are none."""
    for inner in _CONCEPT_FOLDERS[side]:
        files = sorted((folder / inner).glob("Labels_*.txt"))
        matches = [(match, file) for file in files if (match := _CONCEPT.fullmatch(file.name))]
        concepts = {match[1]: file for match, file in matches if (match[2] or "") == side.removesuffix("_")}
        if concepts:
            return concepts
    return {}


def _read_concepts(files: dict[str, Path], rejects: Rejects) -> tuple[list[str], Bool]:
    """Return (names, (pictures, concepts)); a flag that is neither 0 nor 1 is listed and counts as 0."""
    columns = []
    for file in files.values():
        flags = bytearray()
        for number, line in iterate_flag_lines(file, 1):
            flags.append(False)
            with rejects.catch(file, number):
                flags[-1] = len(parse_flags(line, 1))
        columns.append(np.frombuffer(flags, bool))
        if len(columns[-1]) != len(columns[0]):
            first = next(iter(files.values()))
            raise InputError(
                f"{file} has {len(columns[-1]):,} lines but {first.name} {len(columns[0]):,}; fetch both again"
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
    candidates = [parent / inner / name for parent in (folder, *folder.absolute().parents[:2]) for inner in _FOLDERS]
    return next((file for file in candidates if file.is_file()), None)
