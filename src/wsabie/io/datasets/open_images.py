"""Open Images: image-level labels, and the hierarchy of its classes.

    ImageID,Source,LabelName,Confidence                      train-annotations-human-imagelabels.csv and the like
    000002b66c9c498e,verification,/m/014sv8,1
    000002b66c9c498e,verification,/m/014j1m,0

    {"LabelName": "/m/0bl9f", "Subcategory": [...]}          bbox_labels_600_hierarchy.json: nested kinds and parts

A confidence of 0 denies the label (an explicit negative, -1 in Y), any other up to 1 states it: people answered with
1 or 0, machines give fractions, of which only this is used. Labels are named by the files of names beside the table
(`class-descriptions.csv`, `oidv7-class-descriptions.csv`, `dict.csv`); without one they keep their codes. The file is
read line by line, and 8 bytes of each are kept. Pictures are known by their ids (see `id_labels`).

A class may occur several times in the hierarchy. The older form, drawn as rings ({"name", "children", "size"}),
has names instead of codes, and no parts.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.io.formats.id_labels import IdLabelCollector
from wsabie.io.parsers.array_builders import parse_number
from wsabie.io.parsers.json_values import parse_json_value
from wsabie.io.parsers.text_files import iterate_numbered_lines, read_small_file
from wsabie.io.parsers.text_tables import read_code_names, split_csv_line
from wsabie.io.records import FeatureTable
from wsabie.storage.rejects import Rejects, RowError

COLUMNS = ("ImageID", "LabelName", "Confidence")
_NAMES = ("*class-descriptions*.csv", "dict.csv")
_MAX_LINE_BYTES = 1 << 20
TREE = re.compile(rb'\A\s*\{[^\0]*?"(LabelName|children)"\s*:')
_MAX_BYTES = 1 << 24
_CHILD_KEYS = {"Subcategory": "is-a", "children": "is-a", "Part": "part-of"}


def read_open_images(path: Path, *, rejects: Rejects) -> FeatureTable:
    """Read image-level labels.

    Parameters
    ----------
    path : Path
        The CSV, plain or gzip; a table of boxes, which has the same columns and more, is read as labels too.
    rejects : Rejects
        Lists malformed lines, and pairs both stated and denied.

    Returns
    -------
    FeatureTable
        X is the identity.

    Raises
    ------
    InputError
        Missing, without these columns, or without a single usable line.
    """
    collector, names = IdLabelCollector(path, rejects), read_neighbouring_names(path)
    lines = iterate_numbered_lines(path, _MAX_LINE_BYTES)
    header = split_csv_line(next(lines, (1, b""))[1], ",")
    if missing := [name for name in COLUMNS if name not in header]:
        raise InputError(f"{path}:1 has no column {missing[0]!r}; give a table of image-level labels")
    positions, n_columns = [header.index(name) for name in COLUMNS], len(header)
    for number, line in lines:
        if not line:
            continue
        with rejects.catch(path, number):
            cells = split_csv_line(line, ",")
            if len(cells) != n_columns:
                raise RowError("wrong number of cells", f"{len(cells)} of {n_columns}")
            image, code, confidence = (cells[i] for i in positions)
            if not image:
                raise RowError("pair without an id")
            share = parse_number(confidence, "malformed confidence")
            if not 0 <= share <= 1:
                raise RowError("confidence that is not between 0 and 1", confidence)
            collector.add(image, names.get(code, code), stated=share > 0)
    return collector.build_table()


def read_neighbouring_names(path: Path) -> dict[str, str]:
    """Return the names of codes, from all files of names beside an Open Images table."""
    names: dict[str, str] = {}
    for pattern in _NAMES:
        for file in sorted(path.parent.glob(pattern)):
            names = read_code_names(file, ",") | names
    return names


def iterate_hierarchy_pairs(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (relation, class, class above it) for every pair of the file: "is-a" or "part-of".

    Raises
    ------
    InputError
        Missing, of more than 16 MiB, or nothing of the kind.
    """
    content = read_small_file(
        path, _MAX_BYTES, f"has more than {_MAX_BYTES >> 20} MiB; it is not a hierarchy of classes"
    )
    try:
        stack = [parse_json_value(content.decode())]
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({str(error)[:80]}); fetch the file again") from error
    pairs: set[tuple[str, str, str]] = set()
    while stack:
        parent = stack.pop()
        for key, relation in _CHILD_KEYS.items():
            children = parent.get(key, []) if isinstance(parent, dict) else None
            if not isinstance(children, list):
                raise InputError(f"{path} is not a hierarchy of classes: a {type(parent).__name__} is not a class")
            for node in children:
                pair = relation, _get_name(path, node), _get_name(path, parent)
                if pair not in pairs:
                    pairs.add(pair)
                    yield pair
            stack.extend(reversed(children))


def _get_name(path: Path, node: object) -> str:
    name = (node.get("LabelName") or node.get("name")) if isinstance(node, dict) else None
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{path} has a class without a LabelName: {str(node)[:60]!r}; fetch the file again")
    return name
