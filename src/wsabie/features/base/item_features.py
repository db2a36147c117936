"""Features of items: rows and rejections, as worker processes return them, and tables of rows."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from wsabie.core.arrays import Float32, Int32, Matrix
from wsabie.core.errors import InputError, UnreadableItemError, make_printable
from wsabie.core.execution import Stage
from wsabie.io.parsers.array_builders import GrowingArray, LabelIndex, build_feature_matrix, build_label_matrix
from wsabie.io.records import FeatureTable, Item, ItemSource
from wsabie.storage.column_files import compute_offsets
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.label_names import normalise_label_name

Result = TypeVar("Result")


class ItemFeatures(NamedTuple):
    """Sparse row of an item, or of a further view of one."""

    id: str
    labels: tuple[str, ...]
    group: str | None
    time: str | None
    indices: Int32  # (nnz,) columns, ascending
    values: Float32  # (nnz,)


class ItemRejection(NamedTuple):
    """Skipped item with the reason."""

    id: str
    reason: str
    detail: str


def process_or_reject(item: Item, process: Callable[[Item], Result]) -> Result | ItemRejection:
    """Return the result for an item with normalised labels, or the rejection of an unreadable item."""
    item = item._replace(id=make_printable(item.id), group=item.group and make_printable(item.group))
    try:
        labels = tuple(dict.fromkeys(name for name in map(normalise_label_name, item.labels) if name))
    except InputError:
        return ItemRejection(item.id, "label that is not valid text", ascii(item.labels)[:200])
    try:
        return process(item._replace(labels=labels))
    except UnreadableItemError as rejected:
        return ItemRejection(item.id, rejected.reason, make_printable(rejected.detail))


def iterate_results(
    batches: Iterable[list[Result | ItemRejection]], stage: Stage, rejects: Rejects | None
) -> Iterator[Result]:
    """Yield the results of batches of items; advance the stage and list rejections."""
    for batch in batches:
        for result in batch:
            if not isinstance(result, ItemRejection):
                yield result
            elif rejects is not None:
                rejects.add(*result)
        stage.advance(len(batch))


def build_feature_table(
    item_features: Iterable[ItemFeatures], n_features: int, *, dense: bool = False, **facts: Any
) -> FeatureTable:
    """Collect a stream into a `FeatureTable`, label names in the order of their code points.

    Parameters
    ----------
    item_features : iterable of ItemFeatures
    n_features : int
    dense : bool
        Every row holds every column; X is then an array.
    **facts
        `counts`, `extractor_fingerprint`, `augment` and `near_equality` of the table.
    """
    labels, ids, groups, times = LabelIndex(), list[str](), list[str | None](), list[str | None]()
    sizes, indices, values = GrowingArray(np.int64), GrowingArray(np.int32), GrowingArray(np.float32)
    label_counts, label_numbers = GrowingArray(np.int64), GrowingArray(np.int32)
    for row in item_features:
        numbers = labels.assign_ids(row.labels)
        label_counts.extend(np.array([len(numbers)]))
        label_numbers.extend(np.array(numbers, np.int32))
        ids.append(row.id)
        groups.append(row.group)
        times.append(row.time)
        sizes.extend(np.array([len(row.indices)]))
        indices.extend(row.indices)
        values.extend(row.values)
    names, final = labels.finish()
    if dense:
        X: Matrix = values.finish().reshape(len(ids), n_features)
    else:
        X = build_feature_matrix(compute_offsets(sizes.finish()), indices.finish(), values.finish(), n_features)
    Y: Matrix = build_label_matrix(label_counts.finish(), final[label_numbers.finish()], len(names))
    missing_times = [""] * len(ids)
    return FeatureTable(X, Y, names, ids, _fill_missing(groups, ids), _fill_missing(times, missing_times), **facts)


def build_label_table(source: ItemSource) -> FeatureTable:
    """Return a table without features: ids, labels, groups and times of items that are not decoded."""
    empty_row = np.empty(0, np.int32), np.empty(0, np.float32)
    return build_feature_table((ItemFeatures(p.id, p.labels, p.group, p.time, *empty_row) for p in source), 0)


def _fill_missing(values: list[str | None], otherwise: list[str]) -> list[str] | None:
    """Return None when all values are missing, else replace each missing one."""
    if all(value is None for value in values):
        return None
    return [default if value is None else value for value, default in zip(values, otherwise, strict=True)]
