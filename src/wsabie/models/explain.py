"""Why this label: a score traced back to visual terms, and from there to places in the picture.

For "dot", f_y(x) = sum_t x_t (V_t . W_y) + bias: term t contributes x_t (V_t . W_y), and the contributions sum to the
score (up to the bias); a weight per label and feature contributes x_t w_yt. A term's contribution is shared equally
among the blocks of the picture that carry it. Of other models parts of the picture are covered in turn (`occlusion`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.arrays import Csr, Float32, Float64
from wsabie.base.errors import InputError
from wsabie.base.validation import check_features, require
from wsabie.features.decode import decode
from wsabie.features.explain import heat_map, overlay
from wsabie.features.visual_terms import VisualTerms
from wsabie.models.annotator import Annotator
from wsabie.models.base import LabelModel
from wsabie.models.ensemble import Ensemble
from wsabie.models.full_rank import FullRank
from wsabie.models.inputs import n_rows
from wsabie.models.linear import LinearRanker
from wsabie.models.occlusion import occlusion
from wsabie.models.wsabie import Wsabie
from wsabie.sources.records import Item
from wsabie.sources.regions import Content
from wsabie.storage.atomic import replacing

DRAWN = 512
"""Longer side of the drawing, in pixels, at most."""


@dataclass(frozen=True)
class Explanation:
    """A label's heat map over a picture.

    Attributes
    ----------
    label : str
    score : float
    heat : (h, w) float64
        Contribution per pixel, which sum to the score without the label's bias; or, where `adds_up` is False, how far
        the score falls, against the mean of all labels', when what is around a pixel is covered.
    adds_up : bool
        The scores of the model are sums over visual terms.
    picture : PIL.Image.Image
        The picture with the heat drawn over it.
    """

    label: str
    score: float
    heat: Float64
    adds_up: bool
    picture: Any

    def save(self, path: str | Path) -> None:
        """Write the drawing as PNG, atomically."""
        with replacing(path) as draft:
            self.picture.save(draft, "PNG")


def contributions(model: LabelModel, X: Any, label: str) -> Float32:
    """What each feature of one row adds to the score of a label.

    Parameters
    ----------
    model : Wsabie, Ensemble, LinearRanker or FullRank
        With similarity "dot".
    X : csr_matrix (1, n_features)
    label : str

    Returns
    -------
    (n_features,) float32
        Zero where the row has nothing; the sum is the score without bias.

    Raises
    ------
    InputError
        The model's scores are no sum over features, or X is not one sparse row.
    """
    if isinstance(model, FullRank):
        points: Float32 = np.float32(model.blend_) * contributions(model.embedding_, X, label)
        return points + contributions(model.linear_, X, label)
    model = model.joined_ if isinstance(model, Ensemble) else model
    if not isinstance(model, (Wsabie, LinearRanker)) or not _is_sum(model):
        by = f"by {model.similarity}" if isinstance(model, Wsabie) else f"of a model of kind {model.kind}"
        raise InputError(
            f'scores {by} are no sum over features; train a kind whose scores are, such as wsabie with similarity "dot"'
        )
    checked = check_features(X, n_features=model.n_features_in_)
    require(n_rows(checked) == 1, f"X has {n_rows(checked)} rows; give one, of which a score is explained")
    scaled = model.scaling_(checked)
    if not isinstance(scaled, Csr):
        raise InputError("only sparse rows can be explained; this model was trained on dense rows")
    y = int(model.vocabulary_.ids([label])[0])
    out = np.zeros(model.n_features_in_, np.float32)
    at = scaled.indices
    if isinstance(model, LinearRanker):
        weights = model.coef_[y, at]
    else:
        weights = model.space_.features[at, : model.dim] @ model.label_vectors[y]
    out[at] = scaled.data * weights
    return out


def explain_picture(annotator: Annotator, content: Content, label: str | None = None) -> Explanation:
    """Where in a picture a label (by default the best one) is seen.

    Raises
    ------
    InputError
        The model was not trained on pictures.
    RejectedItem
        The picture cannot be read.
    UnknownLabelError
        The label is none of the model.
    """
    model, terms = annotator.model, annotator.terms
    if terms is None or terms.things != "pictures":
        seen = "rows of features" if terms is None else terms.things
        raise InputError(f"this model was trained on {seen}, so there is no picture to draw on")
    picture = decode(content, size=DRAWN)
    X = annotator.rows_of_all([Item("the picture", content, ())])
    chosen = label or model.annotate(X, 1)[0][0][0]
    y = int(model.vocabulary_.ids([chosen])[0])
    score = float(model.scores(X)[0, y])
    if isinstance(terms, VisualTerms) and _is_sum(model):
        heat, adds_up = heat_map(contributions(model, X, chosen), terms.block_map(content)), True
    else:
        heat, adds_up = occlusion(annotator, picture, y), False
    return Explanation(chosen, score, heat, adds_up, overlay(picture, heat))


def _is_sum(model: LabelModel) -> bool:
    """Whether scores are sums over features."""
    if isinstance(model, Ensemble):
        return _is_sum(model.joined_)
    if isinstance(model, FullRank):
        return _is_sum(model.embedding_)
    return isinstance(model, LinearRanker) or (isinstance(model, Wsabie) and model.similarity == "dot")
