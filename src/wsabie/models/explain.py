"""Why this label: a score traced back to visual terms, and from there to places in the picture.

For "dot", f_y(x) = sum_t x_t (V_t . W_y) + bias: term t contributes x_t (V_t . W_y), and the contributions sum to the
score (up to the bias). A term's contribution is shared equally among the blocks of the picture that carry it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.arrays import Csr, Float32
from wsabie.base.errors import InputError
from wsabie.features.explain import heat_map, overlay
from wsabie.models.annotator import Annotator
from wsabie.models.wsabie import Wsabie
from wsabie.storage.atomic import replacing


@dataclass(frozen=True)
class Explanation:
    """A label's heat map over a picture.

    Attributes
    ----------
    label : str
    score : float
    heat : (h, w) float32
        Contribution per pixel; sums to the score without the label's bias.
    picture : PIL.Image.Image
        The picture with the heat drawn over it.
    """

    label: str
    score: float
    heat: Float32
    picture: Any

    def save(self, path: str | Path) -> None:
        """Write the drawing as PNG, atomically."""
        with replacing(path) as draft:
            self.picture.save(draft, "PNG")


def contributions(model: Wsabie, X: Any, label: str) -> Float32:
    """What each stored feature of one row adds to the score of a label.

    Parameters
    ----------
    model : Wsabie
        With similarity "dot".
    X : csr_matrix (1, n_features)
    label : str

    Returns
    -------
    (nnz,) float32
        In the order of the row's columns; the sum is the score without bias.

    Raises
    ------
    InputError
        The similarity is no sum over features.
    """
    if model.similarity != "dot":
        raise InputError(f'scores by {model.similarity} are no sum over features; train with similarity "dot" to explain')
    scaled = model.scaling_(Csr(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.float32)))
    if not isinstance(scaled, Csr):
        raise InputError("only sparse rows can be explained")
    y = int(model.vocabulary_.ids([label])[0])
    points = model.space_.features[scaled.indices, : model.dim]
    return scaled.data * (points @ model.label_vectors[y])


def explain_picture(annotator: Annotator, content: Path | bytes, label: str | None = None) -> Explanation:
    """Where in a picture a label (by default the best one) is seen.

    Raises
    ------
    InputError
        The model was not trained on pictures, or the label is unknown.
    """
    from scipy.sparse import csr_matrix

    if annotator.terms is None:
        raise InputError("this model was trained on rows of features, so there is no picture to draw on")
    model = annotator.model
    terms, values = annotator.terms.transform_one(content)
    X = csr_matrix((values, terms, [0, len(terms)]), shape=(1, model.n_features_in_))
    chosen = label or model.annotate(X, 1)[0][0][0]
    y = int(model.vocabulary_.ids([chosen])[0])
    score = float(model.scores(X)[0, y])
    blocks = annotator.terms.block_map(content)
    heat = heat_map(terms, contributions(model, X, chosen), blocks)
    return Explanation(chosen, score, heat, overlay(content, heat))
