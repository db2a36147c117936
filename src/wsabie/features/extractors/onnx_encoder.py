"""Features of pictures from any image encoder in an ONNX file: dense rows."""

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Array, Float32
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.base.sampling import WorkContext
from wsabie.features.encoders.onnx_network import NORMALISATIONS, OnnxContent, TrialCost, open_network, try_network
from wsabie.features.images.image_extractor import ImageFeatureExtractor, ImageView
from wsabie.io.records import ItemSource

MAX_ENLARGEMENT = 3
"""Input sides at which pictures are decoded, so that the shorter side of most pictures is not enlarged."""


@dataclass(eq=False, repr=False)
class OnnxEncoder(ImageFeatureExtractor):
    """Features of pictures from a network in an ONNX file.

    The largest centred part with the shape of the input is scaled to it (bicubic), with normalised values from 0 to 1;
    a network that takes uint8 gets bytes. Inputs may be (batch, 3, h, w) or (batch, h, w, 3) with any batch size. Maps
    and tokens are averaged. The network runs on one thread a process, on the CPU; operators and weights outside the
    file are never loaded. A saved folder includes the whole file, so that a model folder needs nothing else.

    Parameters
    ----------
    model : str or Path
        The ONNX file.
    normalise : {"imagenet", "clip", "symmetric", "unit", "bytes", "lite"} or (mean, deviation)
        Normalisation of values from 0 to 1 in the training of the network, three numbers each. "symmetric": -1 to 1,
        "unit": 0 to 1, "bytes": 0 to 255, "lite": (byte - 127) / 128.
    output : str or None
        Name of the output; None: the first.
    side : int or None
        Side of the input in pixels, where the network leaves it open; None: 224.
    crop, max_pixels, seed
        As in `VisualWords`. The usual "resize to 256, crop 224" is crop=0.875.

    Examples
    --------
    >>> OnnxEncoder("missing.onnx").prepare()
    Traceback (most recent call last):
    ...
    wsabie.core.errors.InputError: there is no ONNX file at missing.onnx; give the file of an image encoder
    """

    name = "onnx"
    kind = "onnx_encoder"
    is_dense = True

    model: str | Path | None = None
    _: KW_ONLY
    normalise: str | tuple[tuple[float, ...], tuple[float, ...]] = "imagenet"
    output: str | None = None
    side: int | None = None
    model_: OnnxContent = field(init=False)
    trial_: TrialCost = field(init=False)

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return self._get_trial().width

    def _learn(self, source: ItemSource, context: WorkContext) -> None:
        """Read the file and run the network once."""
        self._get_trial()

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        mean, deviation = self._get_moments()
        are_moments = mean.shape == (3,) and deviation.shape == (3,) and bool((deviation > 0).all())
        require(are_moments, "normalise is not a (mean, deviation) of three channels each, deviations above 0")
        is_side = self.side is None or 8 <= self.side <= 1365
        require(is_side, f"side is {self.side}; give the input's side in pixels, from 8 to 1365")
        super().check()

    def prepare(self, augment: int = 0) -> None:
        """Read the file and run the network once; workers get the file and the result."""
        super().prepare(augment)
        self._get_trial()

    def encode(self, view: ImageView) -> EncodedRow:
        """Return the row of a view."""
        network = open_network(self._get_model(), self.side, self.output)
        pixels = view.scale_to(MAX_ENLARGEMENT * max(network.input.height, network.input.width))
        values = network.features(pixels, *self._get_moments(), self._get_trial())
        return np.arange(len(values), dtype=np.int32), values

    def parameters(self) -> JsonObject:
        """Return the parameters without the file, which is stored as an array."""
        return {name: value for name, value in super().parameters().items() if name != "model"}

    def _get_moments(self) -> tuple[Float32, Float32]:
        moments = NORMALISATIONS.get(self.normalise) if isinstance(self.normalise, str) else self.normalise
        if moments is None:
            raise InputError(f"normalise is {self.normalise!r}; choose from {', '.join(NORMALISATIONS)}")
        return np.array(moments[0], np.float32), np.array(moments[1], np.float32)

    def _get_trial(self) -> TrialCost:
        if not hasattr(self, "trial_"):
            self.trial_ = try_network(self._get_model(), self.side, self.output)
        return self.trial_

    def _get_model(self) -> OnnxContent:
        if not hasattr(self, "model_"):
            if self.model is None:
                raise InputError("no ONNX file is named; give the file of an image encoder")
            self.model_ = OnnxContent.load(self.model)
        return self.model_

    def _dump_tensors(self) -> dict[str, Array]:
        return {"model": self._get_model().content}

    def _restore(self, tensors: dict[str, Array]) -> None:
        self.model_ = OnnxContent(tensors["model"])

    def identity(self) -> JsonObject:
        """Return the settings without defaults: the name, and the hash of the file."""
        return {**super().identity(), "model": self._get_model().sha256[:16]}
