"""Hierarchy of a collection's folders or categories, as an is-a list over its labels.

A label that is the name of a folder is a kind of the folder above it. Any other label belongs to the deepest
folder that holds more than half of its pictures, so that "owl" is a kind of "animals/birds" and "brown",
which is everywhere, of nothing. Training sees folders of labels (`animal/dog/1.jpg` has both labels), but not
a column `category`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise, repeat
from pathlib import Path, PurePosixPath
from typing import Any

from wsabie.core.errors import InputError
from wsabie.core.input_limits import make_limit_error, read_limits
from wsabie.io.formats.media_folder import SPLITS, read_folder
from wsabie.io.formats.parquet.tables import open_parquet_table
from wsabie.io.parsers.text_files import format_path
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.hierarchy import Hierarchy, make_lookup_key

CATEGORY, LABELS = "category", "labels"


def read_folder_hierarchy(folder: Path, hierarchy: Hierarchy) -> None:
    """Add the tree of a folder of pictures; a first level of splits (train, test) is left out.

    Raises
    ------
    InputError
        There are no labelled pictures, or no sub-folders one inside the other.
    """
    source = read_folder(folder, rejects=Rejects())
    label_places = ((picture.labels, _split_levels(str(PurePosixPath(picture.id).parent))) for picture in source)
    _add_tree(label_places, hierarchy, folder, "its pictures do not lie in sub-folders of sub-folders")


def read_table_hierarchy(path: Path, hierarchy: Hierarchy) -> None:
    """Add the tree of Parquet with the columns `labels` and `category`, whose levels slashes separate.

    Raises
    ------
    InputError
        There are no such columns, or they hold something else.
    """
    table = open_parquet_table(path)
    missing = [name for name in (LABELS, CATEGORY) if not table.has(name)]
    if missing:
        raise InputError(
            f"{format_path(path)} has no column {missing[0]!r}; Parquet is an is-a list by its columns "
            f"{LABELS!r} and {CATEGORY!r}: give those, or a list of child TAB parent"
        )
    label_places: list[tuple[Sequence[str], Sequence[str]]] = []
    for batch in table.batches([LABELS, CATEGORY], 1 << 14):
        rows = zip(batch.column(LABELS), batch.column(CATEGORY), strict=True)
        label_places += [_parse_row(path, labels, category) for labels, category in rows if labels and category]
    _add_tree(label_places, hierarchy, path, "no label has most of its rows in one category")


def add_image_hierarchy(label_places: Iterable[tuple[Sequence[str], Sequence[str]]], hierarchy: Hierarchy) -> None:
    """Add the tree of pictures, each with its labels and the levels of its place.

    Examples
    --------
    >>> tree, place = Hierarchy(), ("animals", "birds")
    >>> add_image_hierarchy([(["owl", "brown"], place), (["hawk", "brown"], place), (["brown"], ("trees",)),
    ...              (["brown"], ("trees",))], tree)
    >>> tree.parents("owl"), tree.parents("brown"), tree.parents("birds")
    (['animals/birds'], [], ['animals'])
    """
    counts, chains = Counter[tuple[str, str]](), dict[str, list[str]]()
    for labels, levels in label_places:
        if len(levels) > read_limits().depth:
            excess = f"{format_path('/'.join(levels))[:100]}... has {len(levels):,} levels"
            raise make_limit_error("depth", excess, len(levels))
        place = "/".join(levels)
        if place not in chains:
            chains[place] = ["/".join(levels[: depth + 1]) for depth in range(len(levels))]
        counts.update(zip(labels, repeat(place)))
    names = {node: node.rpartition("/")[2] for chain in chains.values() for node in chain}
    for node, name in names.items():
        hierarchy.also_called(node, [name])
    for chain in chains.values():
        for parent, child in pairwise(chain):
            hierarchy.add(child, parent)
    folder_keys = {"", *map(make_lookup_key, [*names, *names.values()])}
    for label, inside in _group_by_label(counts).items():
        node = _find_deepest(inside, chains)
        if node and make_lookup_key(label) not in folder_keys:
            hierarchy.add(label, node)


def _group_by_label(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    counts_by_label: dict[str, dict[str, int]] = {}
    for (label, place), n in counts.items():
        counts_by_label.setdefault(label, {})[place] = n
    return counts_by_label


def _find_deepest(inside: dict[str, int], chains: dict[str, list[str]]) -> str:
    """Return the deepest folder that holds more than half of a label's pictures; empty when none does."""
    totals = Counter[str]()
    for place, n in inside.items():
        for node in chains[place]:
            totals[node] += n
    most = [node for node, n in totals.items() if 2 * n > sum(inside.values())]
    return max(most, key=lambda node: node.count("/"), default="")


def _add_tree(
    label_places: Iterable[tuple[Sequence[str], Sequence[str]]], hierarchy: Hierarchy, path: Path, otherwise: str
) -> None:
    n_pairs = len(hierarchy)
    add_image_hierarchy(label_places, hierarchy)
    if len(hierarchy) == n_pairs:
        raise InputError(f"{format_path(path)} is no is-a list: {otherwise}; give a list of child TAB parent")


def _parse_row(path: Path, labels: Any, category: Any) -> tuple[Sequence[str], Sequence[str]]:
    names: list[str] = labels if isinstance(labels, list) else [labels]
    if not isinstance(category, str) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{format_path(path)} holds a category or label that is no text; write both as texts")
    return names, _split_levels(category)


def _split_levels(place: str) -> list[str]:
    levels = [level.strip() for level in place.split("/") if level.strip(" .")]
    return levels[1:] if levels and levels[0].casefold() in SPLITS else levels
