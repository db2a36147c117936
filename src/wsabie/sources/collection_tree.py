"""The tree that a collection of pictures stands in, its folders or categories, as an is-a list over its labels.

A label that is the name of a folder is a kind of the folder above it. Any other label belongs to the deepest folder
that holds more than half of its pictures, so that "owl" is a kind of "animals/birds" and "brown", which is everywhere,
of nothing. Folders of labels are seen in training, where `animal/dog/1.jpg` has both labels; a column `category`
is not.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise, repeat
from pathlib import Path, PurePosixPath
from typing import Any

from wsabie.base.errors import InputError
from wsabie.base.limits import current_limits, limit_error
from wsabie.labels.hierarchy import Hierarchy, spelling
from wsabie.sources.folders import SPLITS, read_folder
from wsabie.sources.parquet_file import open_table
from wsabie.sources.text import shown
from wsabie.storage.rejects import Rejects

CATEGORY, LABELS = "category", "labels"


def of_folder(folder: Path, found: Hierarchy) -> None:
    """Add the tree of a folder of pictures; a first level that names sides of a split (train, test) is none.

    Raises
    ------
    InputError
        There are no labelled pictures, or no sub-folders one inside the other.
    """
    source = read_folder(folder, rejects=Rejects())
    placed = ((picture.labels, _levels(str(PurePosixPath(picture.id).parent))) for picture in source)
    _add(placed, found, folder, "its pictures do not lie in sub-folders of sub-folders")


def of_table(path: Path, found: Hierarchy) -> None:
    """Add the tree of Parquet with the columns `labels` and `category`, whose levels stand between slashes.

    Raises
    ------
    InputError
        There are no such columns, or they hold something else.
    """
    table = open_table(path)
    missing = [name for name in (LABELS, CATEGORY) if not table.has(name)]
    if missing:
        raise InputError(
            f"{shown(path)} has no column {missing[0]!r}; Parquet is an is-a list by its columns "
            f"{LABELS!r} and {CATEGORY!r}: give those, or a list of child TAB parent"
        )
    placed: list[tuple[Sequence[str], Sequence[str]]] = []
    for batch in table.batches([LABELS, CATEGORY], 1 << 14):
        rows = zip(batch.column(LABELS), batch.column(CATEGORY), strict=True)
        placed += [_placed(path, labels, category) for labels, category in rows if labels and category]
    _add(placed, found, path, "no label has most of its rows in one category")


def of_pictures(placed: Iterable[tuple[Sequence[str], Sequence[str]]], found: Hierarchy) -> None:
    """Add the tree of pictures, each with its labels and the levels of its place.

    Examples
    --------
    >>> tree, place = Hierarchy(), ("animals", "birds")
    >>> of_pictures([(["owl", "brown"], place), (["hawk", "brown"], place), (["brown"], ("trees",)),
    ...              (["brown"], ("trees",))], tree)
    >>> tree.parents("owl"), tree.parents("brown"), tree.parents("birds")
    (['animals/birds'], [], ['animals'])
    """
    counts, chains = Counter[tuple[str, str]](), dict[str, list[str]]()
    for labels, levels in placed:
        if len(levels) > current_limits().depth:
            excess = f"{shown('/'.join(levels))[:100]}... has {len(levels):,} levels"
            raise limit_error("depth", excess, len(levels))
        place = "/".join(levels)
        if place not in chains:
            chains[place] = ["/".join(levels[: depth + 1]) for depth in range(len(levels))]
        counts.update(zip(labels, repeat(place)))
    names = {node: node.rpartition("/")[2] for chain in chains.values() for node in chain}
    for node, name in names.items():
        found.also_called(node, [name])
    for chain in chains.values():
        for parent, child in pairwise(chain):
            found.add(child, parent)
    own = {"", *map(spelling, [*names, *names.values()])}
    for label, inside in _by_label(counts).items():
        node = _deepest(inside, chains)
        if node and spelling(label) not in own:
            found.add(label, node)


def _by_label(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (label, place), n in counts.items():
        found.setdefault(label, {})[place] = n
    return found


def _deepest(inside: dict[str, int], chains: dict[str, list[str]]) -> str:
    """The deepest folder that holds more than half of a label's pictures; empty when none does."""
    held = Counter[str]()
    for place, n in inside.items():
        for node in chains[place]:
            held[node] += n
    most = [node for node, n in held.items() if 2 * n > sum(inside.values())]
    return max(most, key=lambda node: node.count("/"), default="")


def _add(placed: Iterable[tuple[Sequence[str], Sequence[str]]], found: Hierarchy, path: Path, otherwise: str) -> None:
    before = len(found)
    of_pictures(placed, found)
    if len(found) == before:
        raise InputError(f"{shown(path)} is no is-a list: {otherwise}; give a list of child TAB parent")


def _placed(path: Path, labels: Any, category: Any) -> tuple[Sequence[str], Sequence[str]]:
    names: list[str] = labels if isinstance(labels, list) else [labels]
    if not isinstance(category, str) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{shown(path)} holds a category or label that is no text; write both as texts")
    return names, _levels(category)


def _levels(place: str) -> list[str]:
    levels = [level.strip() for level in place.split("/") if level.strip(" .")]
    return levels[1:] if levels and levels[0].casefold() in SPLITS else levels
