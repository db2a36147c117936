"""Explanation of a score by occlusion: parts of the picture are covered, and the score falls.

M. Zeiler and R. Fergus, *Visualizing and Understanding Convolutional Networks*, ECCV 2014, section 4.2. The cover has
the mean colour of the picture. The score of a label counts less the mean score of all labels, because a cover that
moves the picture away from all labels says nothing about one of them.
"""

import io
from typing import Any

import numpy as np
from PIL import Image

from wsabie.core.arrays import Float64, UInt8
from wsabie.io.records import Item
from wsabie.models.annotators.annotator import Annotator

ACROSS = 4
"""Windows along the longer side of a picture; as many again lie half a window further."""


def list_windows(width: int, height: int) -> list[tuple[int, int, int, int]]:
    """Return left, top, right and bottom of the squares that are covered, which reach every pixel.

    Examples
    --------
    >>> list_windows(8, 4)
    [(0, 0, 2, 2), (1, 0, 3, 2), (2, 0, 4, 2), (3, 0, 5, 2), (4, 0, 6, 2), (5, 0, 7, 2), (6, 0, 8, 2), \
(0, 1, 2, 3), (1, 1, 3, 3), (2, 1, 4, 3), (3, 1, 5, 3), (4, 1, 6, 3), (5, 1, 7, 3), (6, 1, 8, 3), \
(0, 2, 2, 4), (1, 2, 3, 4), (2, 2, 4, 4), (3, 2, 5, 4), (4, 2, 6, 4), (5, 2, 7, 4), (6, 2, 8, 4)]
    """
    side = max(1, -(-max(width, height) // ACROSS))
    across, down = min(side, width), min(side, height)
    return [
        (left, top, left + across, top + down)
        for top in _list_starts(height, down)
        for left in _list_starts(width, across)
    ]


def compute_occlusion_map(annotator: Annotator, picture: UInt8, label: int) -> Float64:
    """Measure how far the score of a label falls, against the mean of all labels, if a window is covered.

    Parameters
    ----------
    annotator : Annotator
        Any model of pictures.
    picture : (h, w, 3) uint8
    label : int

    Returns
    -------
    (h, w) float64
        Mean over the windows that a pixel is in, weighted by nearness to their middles, which hides the edges of
        windows; negative where the score rises.
    """
    height, width = picture.shape[:2]
    boxes, mean = list_windows(width, height), np.rint(picture.mean(axis=(0, 1))).astype(np.uint8)
    pictures = [_encode_png(picture)]
    for left, top, right, bottom in boxes:
        covered = picture.copy()
        covered[top:bottom, left:right] = mean
        pictures.append(_encode_png(covered))
    rows = annotator.rows_of_all([Item("the picture", content, ()) for content in pictures])
    model: Any = annotator.model
    every = model.scores(rows).astype(np.float64)
    scores = every[:, label] - every.mean(axis=1)
    fallen, weights = np.zeros((height, width)), np.zeros((height, width))
    for (left, top, right, bottom), score in zip(boxes, scores[1:], strict=True):
        weight = np.outer(_compute_nearness(bottom - top), _compute_nearness(right - left))
        fallen[top:bottom, left:right] += (scores[0] - score) * weight
        weights[top:bottom, left:right] += weight
    return fallen / weights


def _list_starts(length: int, side: int) -> list[int]:
    """Return the starts of windows, half a window apart."""
    n = 1 + -(-2 * (length - side) // side)
    return [int(start) for start in np.rint(np.linspace(0, length - side, n))]


def _compute_nearness(side: int) -> Float64:
    """Return weights along a side: 1 in the middle, almost 0 at the ends."""
    return 1 - np.abs(2 * np.arange(side) + 1 - side) / (side + 1)


def _encode_png(picture: UInt8) -> bytes:
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "PNG", compress_level=1)
    return out.getvalue()
