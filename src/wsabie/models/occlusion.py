"""Where a score comes from when it is no sum over the places of a picture: parts are covered, and the score falls.

M. Zeiler and R. Fergus, *Visualizing and Understanding Convolutional Networks*, ECCV 2014, section 4.2; covered with
the mean colour of the picture, and with the score of a label less the mean score of all: where a cover moves the
picture away from everything that the model knows (distances fall with it), that says nothing about one label.
"""

import io
from typing import Any

import numpy as np
from PIL import Image

from wsabie.base.arrays import Float64, UInt8
from wsabie.models.annotator import Annotator
from wsabie.sources.records import Item

ACROSS = 4
"""Windows side by side along the longer side of a picture; there are as many again between these."""


def windows(width: int, height: int) -> list[tuple[int, int, int, int]]:
    """Left, top, right and bottom of the squares that are covered in turn; each pixel is in one at least.

    Examples
    --------
    >>> windows(8, 4)
    [(0, 0, 2, 2), (1, 0, 3, 2), (2, 0, 4, 2), (3, 0, 5, 2), (4, 0, 6, 2), (5, 0, 7, 2), (6, 0, 8, 2), \
(0, 1, 2, 3), (1, 1, 3, 3), (2, 1, 4, 3), (3, 1, 5, 3), (4, 1, 6, 3), (5, 1, 7, 3), (6, 1, 8, 3), \
(0, 2, 2, 4), (1, 2, 3, 4), (2, 2, 4, 4), (3, 2, 5, 4), (4, 2, 6, 4), (5, 2, 7, 4), (6, 2, 8, 4)]
    """
    side = max(1, -(-max(width, height) // ACROSS))
    across, down = min(side, width), min(side, height)
    return [(left, top, left + across, top + down) for top in _starts(height, down) for left in _starts(width, across)]


def occlusion(annotator: Annotator, picture: UInt8, label: int) -> Float64:
    """How far the score of a label falls, against those of all labels, when a window around a pixel is covered.

    Parameters
    ----------
    annotator : Annotator
        Any model of pictures, however it describes and scores them.
    picture : (h, w, 3) uint8
    label : int

    Returns
    -------
    (h, w) float64
        The mean over the windows that a pixel is in, weighted by how near it is to their middles, so that the edges of
        windows are not seen; negative where the score rises.
    """
    height, width = picture.shape[:2]
    boxes, mean = windows(width, height), np.rint(picture.mean(axis=(0, 1))).astype(np.uint8)
    pictures = [_png(picture)]
    for left, top, right, bottom in boxes:
        covered = picture.copy()
        covered[top:bottom, left:right] = mean
        pictures.append(_png(covered))
    rows = annotator.rows_of_all([Item("the picture", content, ()) for content in pictures])
    model: Any = annotator.model
    every = model.scores(rows).astype(np.float64)
    scores = every[:, label] - every.mean(axis=1)
    fallen, weights = np.zeros((height, width)), np.zeros((height, width))
    for (left, top, right, bottom), score in zip(boxes, scores[1:], strict=True):
        weight = np.outer(_nearness(bottom - top), _nearness(right - left))
        fallen[top:bottom, left:right] += (scores[0] - score) * weight
        weights[top:bottom, left:right] += weight
    return fallen / weights


def _starts(length: int, side: int) -> list[int]:
    """Where windows of a side begin, half of it apart."""
    n = 1 + -(-2 * (length - side) // side)
    return [int(start) for start in np.rint(np.linspace(0, length - side, n))]


def _nearness(side: int) -> Float64:
    """To the middle of a side: 1 there, and almost 0 at its ends."""
    return 1 - np.abs(2 * np.arange(side) + 1 - side) / (side + 1)


def _png(picture: UInt8) -> bytes:
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "PNG", compress_level=1)
    return out.getvalue()
