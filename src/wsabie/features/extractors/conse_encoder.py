"""Points of photos among sentence vectors, by class names (Norouzi et al. 2014)."""

from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from wsabie.core.arrays import Array, Float32
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.encoders.sentence_encoder import SentenceEncoder
from wsabie.features.extractors.lite0_encoder import Lite0Encoder
from wsabie.features.images.image_extractor import ImageView

TOP = 10
"""Classes whose names are joined; T of the paper."""


@dataclass(eq=False, repr=False)
class ConseEncoder(Lite0Encoder):
    """Convex combination of class names: photos as points among the vectors of a sentence encoder.

    f(x) = sum of p(y | x) s(y) over the `TOP` most probable classes of `Lite0Encoder`'s network, at unit length, where
    s(y) is the sentence vector of a class name. A label fits a photo if the vector of its name is near f(x).
    A saved folder includes the network and the vectors, and needs no sentence encoder.

    Parameters
    ----------
    model, normalise, output, side, crop, max_pixels, seed
        As in `Lite0Encoder`; the output is "classes".
    """

    name = "lite0-names"
    kind = "conse_encoder"

    _: KW_ONLY
    output: str | None = "classes"
    vectors_: Float32 = field(init=False)

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return int(self._get_vectors().shape[1])

    def prepare(self, augment: int = 0) -> None:
        """Encode the class names too, so that workers get their vectors."""
        super().prepare(augment)
        self._get_vectors()

    def encode(self, view: ImageView) -> EncodedRow:
        """Return the point of a view."""
        _, logits = super().encode(view)
        best = np.argsort(-logits, kind="stable")[:TOP]
        point = np.exp(logits[best] - logits[best[0]]) @ self._get_vectors()[best]
        return np.arange(len(point), dtype=np.int32), point / np.linalg.norm(point)

    def _get_vectors(self) -> Float32:
        if not hasattr(self, "vectors_"):
            encoder = SentenceEncoder()
            from wsabie_lite0 import CLASS_NAMES_FILE

            self.vectors_ = encoder.encode(CLASS_NAMES_FILE.read_text(encoding="utf-8").splitlines())
        return self.vectors_

    def _dump_tensors(self) -> dict[str, Array]:
        return {**super()._dump_tensors(), "vectors": self._get_vectors()}

    def _restore(self, tensors: dict[str, Array]) -> None:
        super()._restore(tensors)
        self.vectors_ = tensors["vectors"]
