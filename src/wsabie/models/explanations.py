"""Explanation of a score by the contributions of visual words and their blocks in the picture.

For "dot", f_y(x) = sum_t x_t (V_t . W_y) + bias: word t contributes x_t (V_t . W_y), and the contributions sum to the
score (up to the bias). A weight per label and feature contributes x_t w_yt. The blocks of the picture with a word share
its contribution equally. For other models, parts of the picture are covered in turn (`compute_occlusion_map`). A heat
map draws the result.
"""

import io
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image
from scipy.ndimage import gaussian_filter

from wsabie.core.arrays import Csr, Float32, Float64, Matrix, UInt8, count_rows
from wsabie.core.errors import InputError, require
from wsabie.core.validation import check_features
from wsabie.features.extractors.visual_words import VisualWords
from wsabie.features.images.image_decoder import decode_image
from wsabie.features.images.image_extractor import BlockMap
from wsabie.io.records import Item
from wsabie.io.regions import ItemContent
from wsabie.models.annotators import Annotator
from wsabie.models.base.label_model import LabelModel
from wsabie.models.ensemble import Ensemble
from wsabie.models.full_rank import FullRank
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.linear_ranker import LinearRanker
from wsabie.storage.atomic_files import replace_file

_LONGER_SIDE = 512  # of a heat map, unless its shape is given
_STOPS = (-1, -0.5, -0.0001, 0.0001, 0.5, 1)  # of the heat: strongly, fairly and weakly against, then for a label
_COLOURS = np.array([[20, 30, 130], [40, 110, 235], [120, 200, 255], [255, 214, 64], [255, 92, 0], [176, 0, 24]])
_MAX_COVER = 0.82  # of a picture under the strongest heat
_GREY = 0.55  # loss of colour of the picture behind the heat
ACROSS = 4
"""Windows along the longer side of a picture; as many again lie half a window further."""
MAX_DRAWING_SIZE = 512
"""Longest side of the drawing in pixels."""


def share_among_blocks(contributions: ArrayLike, block_map: BlockMap) -> Float64:
    """Share the contribution of each visual word equally among its blocks.

    Parameters
    ----------
    contributions : (n_words,) real
        Part of each word in the score; for a linear score v_t * weight_t, which sum to it.
    block_map : BlockMap
        Blocks of the scored picture.

    Returns
    -------
    ndarray, (n_blocks,), float64
        Sums to the sum of `contributions`.

    Raises
    ------
    InputError
        A word without blocks contributes: contributions and picture do not belong together.

    Examples
    --------
    >>> block_map = BlockMap(np.zeros((3, 4)), np.array([1, 1, 0], np.int32), 9, 9)
    >>> share_among_blocks([2.0, 3.0, 0.0], block_map).tolist()
    [1.5, 1.5, 2.0]
    """
    contributions = np.asarray(contributions, np.float64)
    block_counts = np.bincount(block_map.words, minlength=len(contributions))
    if len(block_counts) > len(contributions):
        raise InputError(
            f"the picture has the visual word {len(block_counts) - 1}, but contributions are given for "
            f"{len(contributions):,} visual words; take both from the same model"
        )
    missing_words = np.flatnonzero((contributions != 0) & (block_counts == 0))
    if len(missing_words):
        fact = f"the visual word {missing_words[0]} contributes but lies nowhere in the picture"
        raise InputError(f"{fact}; take the contributions of this picture")
    return contributions[block_map.words] / block_counts[block_map.words]


def build_heat_map(contributions: ArrayLike, block_map: BlockMap, shape: tuple[int, int] | None = None) -> Float64:
    """Spread each block's share of the score evenly over its area.

    Parameters
    ----------
    contributions : (n_words,) real
        As in `share_among_blocks`.
    block_map : BlockMap
    shape : (int, int) or None
        Height and width of the result; None: the picture's, scaled so that the longer side is at most 512.

    Returns
    -------
    ndarray, (h, w), float64
        Score per pixel: sums to the sum of `contributions`.

    Raises
    ------
    InputError
        As in `share_among_blocks`.

    Examples
    --------
    >>> block_map = BlockMap(np.array([[0.0, 0, 2, 2], [1, 0, 3, 2]]), np.array([0, 1], np.int32), 4, 2)
    >>> build_heat_map([4.0, -2.0], block_map)
    array([[ 1. ,  0.5, -0.5,  0. ],
           [ 1. ,  0.5, -0.5,  0. ]])
    """
    shares = share_among_blocks(contributions, block_map)
    scale = min(1.0, _LONGER_SIDE / max(block_map.width, block_map.height))
    height, width = shape or [max(1, round(side * scale)) for side in (block_map.height, block_map.width)]
    across, down = width / block_map.width, height / block_map.height
    edges = np.rint(block_map.boxes * [across, down, across, down]).astype(np.int64)
    left, top = np.minimum(edges[:, 0], width - 1), np.minimum(edges[:, 1], height - 1)
    right, bottom = np.maximum(edges[:, 2], left + 1), np.maximum(edges[:, 3], top + 1)
    density = shares / ((right - left) * (bottom - top))
    corners = np.zeros((height + 1, width + 1))  # summed twice, it fills each block
    for rows, columns, sign in ((top, left, 1), (bottom, right, 1), (top, right, -1), (bottom, left, -1)):
        np.add.at(corners, (rows, columns), sign * density)
    return corners.cumsum(axis=0).cumsum(axis=1)[:height, :width]


def draw_overlay(picture: Image.Image | UInt8, heat: Float64, *, strongest: float | None = None) -> Image.Image:
    """Draw a heat map over its picture: yellow to red speaks for the label, blue against it.

    Parameters
    ----------
    picture : PIL image or ndarray (h, w, 3) uint8
        Scaled to the heat map's size.
    heat : (h, w) float64
    strongest : float or None
        The heat, for or against, that gets the strongest colour; give the same one to pictures that are compared.
        None: the strongest of this heat map.

    Returns
    -------
    Image
        RGB, of the heat map's size.

    Examples
    --------
    >>> draw_overlay(np.full((4, 6, 3), 99, np.uint8), np.eye(4, 6)).size
    (6, 4)
    """
    height, width = heat.shape
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    background = np.asarray(image.convert("RGB").resize((width, height), Image.Resampling.LANCZOS), np.float64)
    luma = background @ [0.299, 0.587, 0.114]
    background = (1 - _GREY) * background + _GREY * luma[..., None]
    smooth = gaussian_filter(heat, max(heat.shape) / 64)  # edges of blocks have no meaning
    top = float(np.abs(smooth).max()) if strongest is None else strongest
    share = np.clip(smooth / top, -1, 1) if top > 0 else np.zeros_like(smooth)
    colour = np.stack([np.interp(share, _STOPS, channel) for channel in _COLOURS.T], axis=-1)
    cover = (_MAX_COVER * np.abs(share))[..., None]
    return Image.fromarray(np.rint((1 - cover) * background + cover * colour).astype(np.uint8))


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
    corners = product(_list_starts(height, down), _list_starts(width, across))
    return [(left, top, left + across, top + down) for top, left in corners]


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
    rows = annotator.rows_of_items([Item("the picture", content, ()) for content in pictures])
    model: Any = annotator.model
    all_scores = model.scores(rows).astype(np.float64)
    scores = all_scores[:, label] - all_scores.mean(axis=1)
    losses, weights = np.zeros((height, width)), np.zeros((height, width))
    for (left, top, right, bottom), score in zip(boxes, scores[1:], strict=True):
        weight = np.outer(_compute_nearness(bottom - top), _compute_nearness(right - left))
        losses[top:bottom, left:right] += (scores[0] - score) * weight
        weights[top:bottom, left:right] += weight
    return losses / weights


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


@dataclass(frozen=True)
class LabelExplanation:
    """A label's heat map over a picture.

    Attributes
    ----------
    label : str
    score : float
    heat : (h, w) float64
        Contributions of the pixels, whose sum is the score without the label's bias. If `adds_up` is False: how far
        the score falls, against the mean of all labels, when the area around a pixel is covered.
    adds_up : bool
        Scores of the model are sums over visual words.
    picture : PIL.Image.Image
        The picture with the heat drawn over it.
    """

    label: str
    score: float
    heat: Float64
    adds_up: bool
    picture: Image.Image

    def save(self, path: str | Path) -> None:
        """Write the drawing as PNG, atomically."""
        with replace_file(path) as draft:
            self.picture.save(draft, "PNG")


def compute_contributions(model: LabelModel, X: Matrix, label: str) -> Float32:
    """Return the contribution of each feature of one row to the score of a label.

    Parameters
    ----------
    model : Wsabie, Ensemble, LinearRanker or FullRank
        With similarity "dot".
    X : csr_matrix (1, n_features)
    label : str

    Returns
    -------
    (n_features,) float32
        0 for features that the row lacks; the sum is the score without bias.

    Raises
    ------
    InputError
        The model's scores are not sums over features, or X is not one sparse row.
    """
    if isinstance(model, FullRank):
        points: Float32 = np.float32(model.blend_) * compute_contributions(model.embedding_, X, label)
        return points + compute_contributions(model.linear_, X, label)
    model = model.joined_ if isinstance(model, Ensemble) else model
    if not isinstance(model, (Wsabie, LinearRanker)) or not _is_sum(model):
        by = f"by {model.similarity}" if isinstance(model, Wsabie) else f"of a model of kind {model.kind}"
        fact = f"scores {by} are not a sum over features"
        raise InputError(f'{fact}; train one whose scores are, such as wsabie with similarity "dot"')
    checked = check_features(X, n_features=model.n_features_in_)
    require(count_rows(checked) == 1, f"X has {count_rows(checked)} rows; give one, of which a score is explained")
    scaled = model.scaling_(checked)
    if not isinstance(scaled, Csr):
        raise InputError("only sparse rows can be explained; this model was trained on dense rows")
    y = int(model.vocabulary_.ids([label])[0])
    out = np.zeros(model.n_features_in_, np.float32)
    columns = scaled.indices
    if isinstance(model, LinearRanker):
        weights = model.coef_[y, columns]
    else:
        weights = model.space_.features[columns, : model.dim] @ model.label_vectors[y]
    out[columns] = scaled.data * weights
    return out


def explain_picture(annotator: Annotator, content: ItemContent, label: str | None = None) -> LabelExplanation:
    """Build a heat map of the parts of a picture that speak for a label.

    Parameters
    ----------
    annotator : Annotator
        Of pictures.
    content : Path, bytes or RegionCrop
        The picture: a file, its content, or a region of either.
    label : str or None
        Name; None: the best label.

    Returns
    -------
    LabelExplanation

    Raises
    ------
    InputError
        The model was not trained on pictures.
    UnreadableItemError
        The picture cannot be read.
    UnknownLabelError
        The model does not know the label.
    """
    model, extractor = annotator.model, annotator.extractor
    if extractor is None or extractor.modality != "pictures":
        modality = "rows of features" if extractor is None else extractor.modality
        raise InputError(f"this model was trained on {modality}, so there is no picture to draw on")
    picture = decode_image(content, size=MAX_DRAWING_SIZE)
    X = annotator.rows_of_items([Item("the picture", content, ())])
    label_name = label or model.annotate(X, 1)[0][0][0]
    y = int(model.vocabulary_.ids([label_name])[0])
    score = float(model.scores(X)[0, y])
    if isinstance(extractor, VisualWords) and _is_sum(model):
        heat, adds_up = build_heat_map(compute_contributions(model, X, label_name), extractor.block_map(content)), True
    else:
        heat, adds_up = compute_occlusion_map(annotator, picture, y), False
    return LabelExplanation(label_name, score, heat, adds_up, draw_overlay(picture, heat))


def _is_sum(model: LabelModel) -> bool:
    """Return True if scores are sums over features."""
    if isinstance(model, Ensemble):
        return _is_sum(model.joined_)
    if isinstance(model, FullRank):
        return _is_sum(model.embedding_)
    return isinstance(model, LinearRanker) or (isinstance(model, Wsabie) and model.similarity == "dot")
