"""Open Images' hierarchy of classes, `bbox_labels_600_hierarchy.json`: nested kinds and parts.

    {"LabelName": "/m/0bl9f", "Subcategory": [{"LabelName": "/m/07yv9", "Part": [{"LabelName": "/m/083wq"}]}]}

A class may stand in several places. Names come from the file of names beside it (`class-descriptions-boxable.csv`,
`dict.csv`). The older form, drawn as rings ({"name", "children", "size"}), has names instead of codes, and no parts.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wsabie.core.errors import InputError
from wsabie.io.datasets.open_images import read_neighbouring_names
from wsabie.io.parsers.json_values import parse_json_value
from wsabie.io.parsers.text_files import format_path, read_head
from wsabie.vocabulary.hierarchy import Hierarchy

TREE = re.compile(rb'\A\s*\{[^\0]*?"(LabelName|children)"\s*:')
_MOST = 1 << 24
_CHILD_KEYS = {"Subcategory": "is-a", "children": "is-a", "Part": "part-of"}


def iterate_hierarchy_pairs(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (relation, class, class above it) for every pair of the file: "is-a" or "part-of".

    Raises
    ------
    InputError
        Missing, of more than 16 MiB, or nothing of the kind.
    """
    content = read_head(path, _MOST + 1)
    if len(content) > _MOST:
        raise InputError(f"{format_path(path)} has more than {_MOST >> 20} MiB; it is no hierarchy of classes")
    try:
        stack = [parse_json_value(content.decode())]
    except (ValueError, RecursionError) as error:
        raise InputError(f"{format_path(path)} is no JSON ({str(error)[:80]}); fetch the file again") from error
    pairs: set[tuple[str, str, str]] = set()
    while stack:
        parent = stack.pop()
        for key, relation in _CHILD_KEYS.items():
            children = parent.get(key, []) if isinstance(parent, dict) else None
            if not isinstance(children, list):
                raise InputError(
                    f"{format_path(path)} is no hierarchy of classes: a {type(parent).__name__} is no class of it"
                )
            for node in children:
                pair = relation, _get_name(path, node), _get_name(path, parent)
                if pair not in pairs:
                    pairs.add(pair)
                    yield pair
            stack.extend(reversed(children))


def read_open_images_hierarchy(path: Path, hierarchy: Hierarchy) -> None:
    """Add the is-a pairs, and the names of the classes.

    Raises
    ------
    InputError
        As `iterate_hierarchy_pairs`.
    """
    pairs = [(child, parent) for relation, child, parent in iterate_hierarchy_pairs(path) if relation == "is-a"]
    for child, parent in pairs:
        hierarchy.add(child, parent)
    codes = {code for pair in pairs for code in pair}
    for code, name in read_neighbouring_names(path).items():
        if code in codes:
            hierarchy.also_called(code, [name])


def _get_name(path: Path, node: Any) -> str:
    name = (node.get("LabelName") or node.get("name")) if isinstance(node, dict) else None
    if not isinstance(name, str) or not name.strip():
        raise InputError(
            f"{format_path(path)} has a class without a LabelName: {str(node)[:60]!r}; fetch the file again"
        )
    return name
