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

from wsabie.base.arrays import Bool, Float32, Int64
from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow, Growing, LabelIndex, label_matrix, require_rows
from wsabie.sources.flags import read_flags, read_names
from wsabie.sources.id_labels import IdLabels
from wsabie.sources.records import Rows
from wsabie.sources.text import numbered_lines, shown
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
    """Whether a path is one of the published files, or a folder of them."""
    if path.is_dir():
        return any((path / place / TAGS).is_file() for place in _TAG_FOLDERS) or len(_concept_files(path, "")) > 1
    return path.name == TAGS or bool(_TABLE.fullmatch(path.name) or _FEATURES.fullmatch(path.name))


def read_nus_wide(path: Path, *, rejects: Rejects | None = None) -> Rows:
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
    Rows
        With features X is dense, with a row for every picture; without, X is the identity.

    Raises
    ------
    InputError
        A file that belongs to it is missing, or files differ in length.
    """
    rejects = Rejects() if rejects is None else rejects
    if features := _FEATURES.fullmatch(path.name):
        return _with_features(path, features[1] or features[2] or "", rejects)
    if path.is_dir():
        return _folder(path, rejects)
    if table := _TABLE.fullmatch(path.name):
        return _tables(path, table[1].removeprefix("All"), table[2], rejects)
    return _tags(path, rejects)


def _folder(path: Path, rejects: Rejects) -> Rows:
    tags = next((file for place in _TAG_FOLDERS if (file := path / place / TAGS).is_file()), None)
    concepts = _concept_files(path, "")
    if tags and concepts:
        raise InputError(
            f"{shown(path)} holds both tags and concepts, and nothing says which count; give {shown(tags)}, or "
            f"{shown(next(iter(concepts.values())).parent)}"
        )
    return _tags(tags, rejects) if tags else _concepts(path, concepts, rejects)


def _tags(path: Path, rejects: Rejects) -> Rows:
    final = path.with_name("Final_Tag_List.txt")
    wanted = set(read_names(final)) if final.is_file() else None
    got, left_out = IdLabels(path), 0
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            name, *tags = line.decode("utf-8").split()
            kept = [tag for tag in tags if wanted is None or tag in wanted]
            left_out += len(tags) - len(kept)
            got.add_all(name, kept)
        except UnicodeDecodeError:
            rejects.add(f"{shown(path)}:{number}", "text that is not UTF-8", repr(line[:60]))
        except BadRow as bad:
            rejects.add(f"{shown(path)}:{number}", bad.reason, bad.detail)
    if left_out:
        log.info("%s: %d tags that are not in %s are left out", shown(path), left_out, final.name)
    return got.as_rows(rejects, "tagged pictures")


def _tables(path: Path, side: str, kind: str, rejects: Rejects) -> Rows:
    lists = [file for name in _NAMES[kind] if (file := _around(path.parent, name))]
    if not lists:
        raise InputError(
            f"there is no {' nor '.join(_NAMES[kind])} beside {shown(path)}, which names its columns; put it there"
        )
    names = read_names(lists[0])
    return _known_by_ids(path, read_flags(path, len(names)), names, _ids(path.parent, side), rejects)


def _concepts(folder: Path, files: dict[str, Path], rejects: Rejects) -> Rows:
    names, labels = _read_concepts(files, rejects)
    rows = ((i + 1, np.flatnonzero(labels[i])) for i in range(len(labels)))
    return _known_by_ids(folder, rows, names, _ids(folder, ""), rejects)


def _known_by_ids(
    path: Path, rows: Iterable[tuple[int, Int64 | BadRow]], names: list[str], ids: list[str] | None, rejects: Rejects
) -> Rows:
    got, n = IdLabels(path), 0
    for n, labels in rows:
        name = str(n) if ids is None or n > len(ids) else ids[n - 1]
        try:
            if isinstance(labels, BadRow):
                raise labels
            got.add_all(name, [names[i] for i in labels])
        except BadRow as bad:
            rejects.add(f"{shown(path)}:{n}", bad.reason, bad.detail)
    _require_equal(path, n, ids)
    return got.as_rows(rejects, "labelled pictures")


def _require_equal(path: Path, n: int, ids: list[str] | None) -> None:
    if ids is not None and len(ids) != n:
        raise InputError(
            f"{shown(path)} is about {n:,} pictures but the list of pictures names {len(ids):,}; put the list there "
            "that belongs to it, or none"
        )


def _with_features(path: Path, side: str, rejects: Rejects) -> Rows:
    files = _concept_files(path.parent, side) or _concept_files(path.parent.parent, side)
    if not files:
        raise InputError(f"there are no labels for {shown(path)}; put the folder Groundtruth beside its folder")
    names, labels = _read_concepts(files, rejects)
    ids = _ids(path.parent, side) or [str(i + 1) for i in range(len(labels))]
    _require_equal(next(iter(files.values())), len(labels), ids)
    X, kept = _features(path, ids, rejects)
    require_rows(len(kept), path, rejects)
    index = LabelIndex()
    final = np.array([index.number(name) for name in names])
    label_names, order = index.finish()
    rows, carried = np.nonzero(labels[kept])
    counts = np.bincount(rows, minlength=len(kept))
    Y = label_matrix(counts, order[final[carried]], len(label_names))
    columns = [f"{path.stem.replace(side, '')} {i}" for i in range(X.shape[1])]  # alike on both sides of the split
    return Rows(X, Y, label_names, [ids[i] for i in kept], feature_names=columns)


def _features(path: Path, ids: list[str], rejects: Rejects) -> tuple[Float32, list[int]]:
    """(X, the picture of each row); lines that are no numbers are listed, and a second picture of an id."""
    values, kept, seen, width, n = Growing(np.float32), list[int](), set[str](), 0, 0
    for n, line in numbered_lines(path):
        name = ids[n - 1] if n <= len(ids) else ""
        try:
            row = _numbers(line)
            width = width or len(row)
            if len(row) != width:
                raise BadRow("wrong number of values", f"{len(row)} of {width}")
            if name in seen:
                raise BadRow("duplicate id", name)
        except BadRow as bad:
            rejects.add(f"{shown(path)}:{n}", bad.reason, bad.detail)
            continue
        seen.add(name)
        kept.append(n - 1)
        values.extend(row)
    _require_equal(path, n, ids)
    return values.finish().reshape(len(kept), width), kept


def _numbers(line: bytes) -> Float32:
    try:
        with np.errstate(over="ignore"):
            row = np.array([float(cell) for cell in line.split()]).astype(np.float32)
    except ValueError as error:
        raise BadRow("malformed number", repr(line[:60])) from error
    if not len(row) or not np.isfinite(row).all():
        raise BadRow("value that is missing or not finite", repr(line[:60]))
    return row


def _concept_files(folder: Path, side: str) -> dict[str, Path]:
    """The file of each concept, by its name; empty when there are none."""
    for place in _CONCEPT_FOLDERS[side]:
        found = {}
        for file in sorted((folder / place).glob("Labels_*.txt")):
            match = _CONCEPT.fullmatch(file.name)
            if match and (match[2] or "") == side.removesuffix("_"):
                found[match[1]] = file
        if found:
            return found
    return {}


def _read_concepts(files: dict[str, Path], rejects: Rejects) -> tuple[list[str], Bool]:
    """(names, (pictures, concepts)); a flag that is neither 0 nor 1 is listed and counts as 0."""
    columns = []
    for file in files.values():
        flags = bytearray()
        for number, labels in read_flags(file, 1):
            if isinstance(labels, BadRow):
                rejects.add(f"{shown(file)}:{number}", labels.reason, labels.detail)
            flags.append(not isinstance(labels, BadRow) and len(labels) == 1)
        columns.append(np.frombuffer(flags, bool))
        if len(columns[-1]) != len(columns[0]):
            first = next(iter(files.values()))
            raise InputError(
                f"{shown(file)} has {len(columns[-1]):,} lines but {first.name} {len(columns[0]):,}; fetch both again"
            )
    return list(files), np.column_stack(columns)


def _ids(folder: Path, side: str) -> list[str] | None:
    """Numbers at Flickr of the pictures of a side, in their order; None without the list of pictures."""
    file = _around(folder, f"{side.removesuffix('_')}Imagelist.txt")
    if file is None:
        return None
    names = [name.replace("\\", "/").rpartition("/")[2] for name in read_names(file)]
    return [name.rpartition(".")[0].rpartition("_")[2] or name for name in names]


def _around(folder: Path, name: str) -> Path | None:
    """A file in a folder, in the two above it, or in one of the published ones in these."""
    places = [place / inner for place in (folder, *folder.absolute().parents[:2]) for inner in _FOLDERS]
    return next((place / name for place in places if (place / name).is_file()), None)
