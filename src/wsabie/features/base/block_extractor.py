"""Base of feature extractors that learn a codebook from the blocks of items."""

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import require
from wsabie.features.base import sampling
from wsabie.features.base.extraction_tasks import ItemRejection, iterate_results, process_or_reject
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.base.sampling import BATCH, WorkContext
from wsabie.io.records import Item, ItemSource

_MIN_BLOCKS = 64  # of an item, while there are more items than a sample can take in full


class BlockExtractor(FeatureExtractor):
    """Base of extractors that learn a codebook from the blocks of items."""

    @abstractmethod
    def cut(self, view: Any) -> Float32:
        """Return the blocks of a view, (n, n_bins), that a codebook is learned from."""

    def _sample_blocks(self, source: ItemSource, most: int, context: WorkContext) -> tuple[list[int], Float32]:
        """Sample about `most` random blocks, an equal number from each of some items.

        Returns
        -------
        list of int
            Positions of the items.
        ndarray, (n, n_bins), float32
        """
        positions = sampling.select_evenly(len(source), max(1, most // _MIN_BLOCKS))
        work = partial(_sample_batch, per_item=-(-most // max(1, len(positions))))
        items = sampling.iterate_batches(sampling.iterate_at_positions(source, positions), BATCH)
        with context.progress.stage(f"sampling {source.modality}", len(positions), source.modality) as stage:
            blocks = list(iterate_results(context.executor.map_with(work, self, items), stage, context.rejects))
        require(len(blocks) > 0, sampling.format_nothing_readable(source, context.rejects))
        return positions, np.concatenate(blocks)


def _sample_batch(
    extractor: BlockExtractor, batch: tuple[tuple[int, Item], ...], per_item: int
) -> list[Float32 | ItemRejection]:
    """Return up to `per_item` random blocks of each (position, item), or its rejection."""

    def sample(item: Item, position: int) -> Float32:
        blocks = extractor.cut(next(extractor.iterate_views(item)))
        block_ids = np.random.default_rng([extractor.seed, position]).permutation(len(blocks))[:per_item]
        return blocks[np.sort(block_ids)]

    return [process_or_reject(item, partial(sample, position=position)) for position, item in batch]
