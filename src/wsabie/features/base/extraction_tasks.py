"""Rows and rejections of items, as worker processes return them."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from wsabie.core.arrays import Float32, Int32
from wsabie.core.errors import InputError, UnreadableItemError, make_printable
from wsabie.core.execution import Stage
from wsabie.io.records import Item
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
