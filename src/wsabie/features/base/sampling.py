"""Samples of items to learn from, and batches of items for workers."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, Self, TypedDict, TypeVar

import numpy as np

from wsabie.core.errors import require
from wsabie.core.execution import SILENT, Executor, Progress, SerialExecutor
from wsabie.io.records import Item, ItemSource
from wsabie.storage.rejects import Rejects

BATCH = 16
"""Pictures of a batch for a worker."""

Element = TypeVar("Element")


class WorkContext(NamedTuple):
    """Executor, progress and rejects of an extraction."""

    executor: Executor
    progress: Progress
    rejects: Rejects

    @classmethod
    def from_options(
        cls, executor: Executor | None = None, progress: Progress = SILENT, rejects: Rejects | None = None
    ) -> Self:
        """Return the context of `RunOptions`; by default items are decoded in this process, without a display."""
        return cls(executor or SerialExecutor(), progress, Rejects() if rejects is None else rejects)


class RunOptions(TypedDict, total=False):
    """Options of an extraction, which functions pass on.

    Attributes
    ----------
    executor : Executor or None
        Decodes items and extracts their features; None: this process.
    progress : Progress
    rejects : Rejects or None
        Lists items that cannot be read; they are left out.
    """

    executor: Executor | None
    progress: Progress
    rejects: Rejects | None


def check_seed(seed: int) -> None:
    """Raise InputError for a seed that random numbers cannot be drawn by."""
    is_seed = isinstance(seed, int | np.integer) and 0 <= seed < 2**63
    require(is_seed, f"seed is {seed}; choose a whole number from 0 to {2**63 - 1}")


def iterate_batches(elements: Iterable[Element], size: int) -> Iterator[tuple[Element, ...]]:
    """Yield tuples of `size` elements; the last may be shorter.

    Examples
    --------
    >>> list(iterate_batches("abc", 2))
    [('a', 'b'), ('c',)]
    """
    iterator = iter(elements)
    while batch := tuple(islice(iterator, size)):
        yield batch


def iterate_item_batches(items: Iterable[Item], size: int, most: int = 1 << 23) -> Iterator[tuple[Item, ...]]:
    """Yield tuples of `size` items, or fewer where their contents reach `most` bytes in memory.

    Examples
    --------
    >>> items = [Item(str(n), b"12", ()) for n in range(5)]
    >>> [[len(batch) for batch in iterate_item_batches(items, 3, most=most)] for most in (100, 4)]
    [[3, 2], [2, 2, 1]]
    """
    batch: list[Item] = []
    n_bytes = 0
    for item in items:
        batch.append(item)
        n_bytes += len(item.content) if isinstance(item.content, bytes) else 0
        if len(batch) == size or n_bytes >= most:
            yield tuple(batch)
            batch, n_bytes = [], 0
    if batch:
        yield tuple(batch)


def select_evenly(n: int, at_most: int) -> list[int]:
    """Return up to `at_most` positions out of `n`, evenly spread.

    Examples
    --------
    >>> select_evenly(10, 3)
    [0, 3, 6]
    """
    n_positions = min(n, at_most)
    return [i * n // n_positions for i in range(n_positions)]


def iterate_at_positions(elements: Iterable[Element], positions: list[int]) -> Iterator[tuple[int, Element]]:
    """Yield (position, element) at ascending positions.

    Examples
    --------
    >>> list(iterate_at_positions("abcd", [0, 2]))
    [(0, 'a'), (2, 'c')]
    """
    selection = set(positions)
    for i, element in enumerate(islice(elements, positions[-1] + 1 if positions else 0)):
        if i in selection:
            yield i, element


def format_nothing_readable(source: ItemSource, rejects: Rejects) -> str:
    """Return the error message for a source without usable items."""
    if not rejects.listed:
        return f"{source.path} holds no {source.modality}; give a folder or file that has some"
    where, reason, _ = rejects.listed[-1]
    return f"none of the {source.modality} of {source.path} can be read: {where} is refused as {reason}; give others"
