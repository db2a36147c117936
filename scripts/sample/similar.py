"""Pictures that look alike: thumbnails as unit vectors, compared by cosine in two ways."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image

Features = npt.NDArray[np.float32]
Pairs = npt.NDArray[np.int64]

_SIDE = 24  # pixels of a thumbnail
_FLAT = 0.02  # contrast (root mean square) below which a thumbnail is taken for plain
_ASPECT = 0.1  # |log| of the ratio of two pictures' aspect ratios up to which they can be alike
_BLOCK = 1024


def ink(picture: Image.Image) -> Features:
    """Return the drawn part, fitted to a square: (1728,) float32 of unit length, zeros when blank."""
    vector = _thumbnail(picture).ravel()
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-6), np.float32)


def contrast(picture: Image.Image) -> Features:
    """Ink less its mean in each channel, of unit length; shorter for plain pictures, where noise decides."""
    thumbnail = _thumbnail(picture)
    vector = (thumbnail - thumbnail.mean((0, 1))).ravel()
    return np.asarray(vector / max(float(np.linalg.norm(vector)), _FLAT * _SIDE), np.float32)


def _thumbnail(picture: Image.Image) -> Features:
    small = picture.convert("RGB").resize((_SIDE, _SIDE), Image.Resampling.BOX)
    return 1 - np.asarray(small, np.float32) / np.float32(255)


def close_pairs(features: Features, threshold: float, tick: Callable[[int], None] = lambda n: None) -> Pairs:
    """Pairs i < j, (n_pairs, 2) int64, whose cosine is at least `threshold`; memory is bounded by the block.

    `tick` is called with the number of pictures done.
    """
    pairs_by_block = [np.empty((0, 2), np.int64)]
    for start in range(0, len(features), _BLOCK):
        i, j = np.nonzero(features[start : start + _BLOCK] @ features[start:].T >= threshold)
        pairs_by_block.append(np.stack([i, j], 1)[i < j] + start)
        tick(min(_BLOCK, len(features) - start))
    return np.concatenate(pairs_by_block)


def alike_pairs(pictures: Sequence[Image.Image], threshold: float) -> tuple[Pairs, Features]:
    """Pairs of like shape whose ink and contrast have cosines of `threshold` or more; and the smaller one."""
    inks = np.array([ink(picture) for picture in pictures], np.float32)
    contrasts = np.array([contrast(picture) for picture in pictures], np.float32)
    aspects = np.log([picture.width / picture.height for picture in pictures])
    pairs = close_pairs(inks, threshold)
    first, second = pairs[:, 0], pairs[:, 1]
    cosines = np.minimum(_cosines(inks, first, second), _cosines(contrasts, first, second))
    is_alike = (cosines >= threshold) & (np.abs(aspects[first] - aspects[second]) <= _ASPECT)
    return pairs[is_alike], cosines[is_alike]


def _cosines(features: Features, first: Pairs, second: Pairs) -> Features:
    return np.asarray(np.einsum("ij,ij->i", features[first], features[second]), np.float32)


def components(n: int, pairs: Pairs) -> npt.NDArray[np.int64]:
    """For each of n items the smallest index of its connected component, (n,) int64.

    Examples
    --------
    >>> components(4, np.array([[1, 3]])).tolist()
    [0, 1, 2, 1]
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    _, component = connected_components(graph, directed=False)
    first = np.full(n, n, np.int64)
    np.minimum.at(first, component, np.arange(n))
    return np.asarray(first[component], np.int64)


def merge_groups(groups: Sequence[str], pairs: Pairs) -> list[str]:
    """Groups joined wherever a pair links two of them; a joined group takes the name of its first member.

    Examples
    --------
    >>> merge_groups(["a", "b", "c", "b"], np.array([[2, 3]]))
    ['a', 'b', 'b', 'b']
    """
    names = list(dict.fromkeys(groups))
    numbers = {name: number for number, name in enumerate(names)}
    group_ids = np.array([numbers[name] for name in groups], np.int64)
    merged = components(len(names), np.stack([group_ids[pairs[:, 0]], group_ids[pairs[:, 1]]], 1))
    return [names[merged[number]] for number in group_ids]
