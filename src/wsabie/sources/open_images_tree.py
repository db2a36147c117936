"""Open Images' hierarchy of classes: `bbox_labels_600_hierarchy.json`, nested objects with kinds and parts.

    {"LabelName": "/m/0bl9f", "Subcategory": [{"LabelName": "/m/07yv9", "Part": [{"LabelName": "/m/083wq"}]}]}

A class may stand in several places. Names come from the file of names beside it (`class-descriptions-boxable.csv`,
`dict.csv`). The older form, drawn as rings ({"name", "children", "size"}), has names instead of codes, and no parts.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.labels.hierarchy import Hierarchy
from wsabie.sources.json_values import parse_value
from wsabie.sources.open_images import names_beside
from wsabie.sources.text import head, shown

TREE = re.compile(rb'\A\s*\{[^\0]*?"(LabelName|children)"\s*:')
_MOST = 1 << 24
_BELOW = {"Subcategory": "is-a", "children": "is-a", "Part": "part-of"}


def tree_pairs(path: Path) -> Iterator[tuple[str, str, str]]:
    """(relation, class, class above it) for every pair of the file: "is-a" or "part-of".

    Raises
    ------
    InputError
        Missing, of more than 16 MiB, or nothing of the kind.
    """
    content = head(path, _MOST + 1)
    if len(content) > _MOST:
        raise InputError(f"{shown(path)} has more than {_MOST >> 20} MiB; it is no hierarchy of classes")
    try:
        waiting = [parse_value(content.decode())]
    except (ValueError, RecursionError) as error:
        raise InputError(f"{shown(path)} is no JSON ({str(error)[:80]}); fetch the file again") from error
    seen: set[tuple[str, str, str]] = set()
    while waiting:
        above = waiting.pop()
        for key, relation in _BELOW.items():
            below = above.get(key, []) if isinstance(above, dict) else None
            if not isinstance(below, list):
                raise InputError(
                    f"{shown(path)} is no hierarchy of classes: a {type(above).__name__} is no class of it"
                )
            for node in below:
                pair = relation, _name(path, node), _name(path, above)
                if pair not in seen:
                    seen.add(pair)
                    yield pair
            waiting.extend(reversed(below))


def read_tree(path: Path, found: Hierarchy) -> None:
    """Add what is a kind of what, and the names of the classes.

    Raises
    ------
    InputError
        As `tree_pairs`.
    """
    pairs = [(child, parent) for relation, child, parent in tree_pairs(path) if relation == "is-a"]
    for child, parent in pairs:
        found.add(child, parent)
    codes = {code for pair in pairs for code in pair}
    for code, name in names_beside(path).items():
        if code in codes:
            found.also_called(code, [name])


def _name(path: Path, node: Any) -> str:
    name = (node.get("LabelName") or node.get("name")) if isinstance(node, dict) else None
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{shown(path)} has a class without a LabelName: {str(node)[:60]!r}; fetch the file again")
    return name
