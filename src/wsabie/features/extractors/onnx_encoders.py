"""Features of pictures from networks in ONNX files: dense rows.

They are any image encoder (`OnnxEncoder`), EfficientNet-Lite0 of the distribution wsabie-lite0 (`Lite0Encoder`), points
among sentence vectors by class names (`ConseEncoder`; Norouzi et al. 2014) and encoders of the Hugging Face Hub
(`HubEncoder`), whose pictures are prepared as their `preprocessor_config.json` states (`Preprocessing`).
"""

import json
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from PIL import Image

from wsabie.core.arrays import Array, Float32, UInt8
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.base.sampling import WorkContext
from wsabie.features.encoders import onnx_network
from wsabie.features.encoders.encoder_list import PACKAGED_ENCODER, PREPROCESSOR_CONFIG, Pooling
from wsabie.features.encoders.encoder_store import find_encoder, load_file
from wsabie.features.encoders.text_encoders import SentenceEncoder
from wsabie.features.images.image_extractor import ImageFeatureExtractor, ImageView
from wsabie.io.records import ItemSource
from wsabie.storage.schema_validation import PositiveCount, check_schema

MAX_SIDE = 1365
"""Largest side of an input, in pixels."""
_MAX_RATIO = 16  # of the sides of a picture that is scaled whole; of others, the ends are cut off first


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing of pictures, with the fields and defaults of `transformers`.

    Attributes
    ----------
    size : int or dict
        The shorter side after scaling, as a number or "shortest_edge"; or "height" and "width", to which a picture is
        scaled whatever its shape.
    crop_size : int, dict or None
        Centred part that the network takes; None: the size.
    do_center_crop : bool or None
    resample : int
        Filter, as Pillow numbers them.
    rescale_factor : float
        Multiplier of bytes, before normalisation.
    image_mean, image_std : tuple of float
        Mean and deviation of red, green and blue after that.
    """

    size: PositiveCount | dict[str, PositiveCount | None]
    crop_size: PositiveCount | dict[str, PositiveCount] | None = None
    do_center_crop: bool | None = None
    resample: Literal[0, 1, 2, 3, 4, 5] = 3
    rescale_factor: float = 1 / 255
    image_mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    image_std: tuple[float, float, float] = (1.0, 1.0, 1.0)

    @property
    def shorter_side(self) -> int | None:
        """Shorter side after scaling; None where the shape of pictures changes."""
        return self.size if isinstance(self.size, int) else self.size.get("shortest_edge")

    @property
    def side(self) -> int:
        """Side of the input."""
        size = self.crop_size if self.do_center_crop and self.crop_size is not None else self.size
        sides = {size} if isinstance(size, int) else set(size.values()) - {None}
        require(len(sides) == 1, f"the encoder takes pictures of {size}; choose one that takes squares")
        return int(sides.pop() or 0)

    def check(self) -> None:
        """Raise InputError for settings that no encoder has."""
        is_inside = self.side <= (self.shorter_side or self.side) <= MAX_SIDE
        require(is_inside, f"the encoder scales pictures to {self.size} and takes {self.crop_size}; choose another")

    def moments(self) -> tuple[Float32, Float32]:
        """Return the mean and deviation of values from 0 to 1, (3,) each."""
        factor = 255 * self.rescale_factor
        mean, deviation = (np.array(values) / factor for values in (self.image_mean, self.image_std))
        return mean.astype(np.float32), deviation.astype(np.float32)

    def scale(self, pixels: UInt8) -> UInt8:
        """Return the part that the network takes, (side, side, 3), of a picture (h, w, 3).

        Examples
        --------
        >>> Preprocessing(size=8, crop_size=4, do_center_crop=True).scale(np.zeros((9, 20, 3), np.uint8)).shape
        (4, 4, 3)
        """
        resample, side = Image.Resampling(self.resample), self.side
        if self.shorter_side is None:
            return np.asarray(Image.fromarray(pixels).resize((side, side), resample))
        height, width = (min(length, _MAX_RATIO * min(pixels.shape[:2])) for length in pixels.shape[:2])
        left, top = (pixels.shape[1] - width) // 2, (pixels.shape[0] - height) // 2
        picture = Image.fromarray(pixels[top : top + height, left : left + width])
        target = [int(self.shorter_side * length / min(height, width)) for length in (width, height)]
        left, top = ((length - side) // 2 for length in target)
        scaled = picture.resize((target[0], target[1]), resample)
        return np.asarray(scaled.crop((left, top, left + side, top + side)))


MAX_ENLARGEMENT = 3
"""Input sides at which pictures are decoded, so that the shorter side of most pictures is not enlarged."""


@dataclass(eq=False, repr=False)
class OnnxEncoder(ImageFeatureExtractor):
    """Features of pictures from a network in an ONNX file.

    The largest centred part with the shape of the input is scaled to it (bicubic), with normalised values from 0 to 1;
    a network that takes uint8 gets bytes. Inputs may be (batch, 3, h, w) or (batch, h, w, 3) with any batch size. Maps
    and tokens are averaged. The network runs on one thread a process, on the CPU or the device that `WSABIE_DEVICE`
    names; operators and weights outside the file are never loaded. A saved folder includes the whole file, so that a
    model folder needs nothing else.

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
    near_equality: ClassVar[float | None] = 0.85  # benchmarks/pages/collections.md
    pooling: ClassVar[Pooling] = "mean"
    """Joining of tokens."""
    licence: ClassVar[str | None] = None
    """SPDX identifier of the licence of the weights; None: unknown."""

    model: str | Path | None = None
    _: KW_ONLY
    normalise: str | tuple[tuple[float, ...], tuple[float, ...]] = "imagenet"
    output: str | None = None
    side: int | None = None

    @cached_property
    def model_(self) -> onnx_network.OnnxContent:
        """Content of the file."""
        if self.model is None:
            raise InputError("no ONNX file is named; give the file of an image encoder")
        return onnx_network.OnnxContent.load(self.model)

    @cached_property
    def trial_(self) -> onnx_network.TrialCost:
        """Costs of the first picture."""
        return onnx_network.try_network(self.model_, self.side, self.output)

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return self.trial_.width

    def _learn(self, source: ItemSource, context: WorkContext) -> None:
        """Read the file and run the network once."""
        _ = self.trial_

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        mean, deviation = self.moments()
        are_moments = mean.shape == (3,) and deviation.shape == (3,) and bool((deviation > 0).all())
        require(are_moments, "normalise is not a (mean, deviation) of three channels each, deviations above 0")
        is_side = self.side is None or 8 <= self.side <= 1365
        require(is_side, f"side is {self.side}; give the input's side in pixels, from 8 to 1365")
        super().check()

    @property
    def network(self) -> onnx_network.OnnxNetwork:
        """The network, opened once in a process."""
        return onnx_network.open_network(self.model_, self.side, self.output, self.pooling)

    def prepare(self, augment: int = 0) -> None:
        """Read the file and run the network once; workers get the file and the result."""
        super().prepare(augment)
        onnx_network.list_providers()  # refuses the device before any work
        _ = self.trial_

    def encode(self, view: ImageView) -> EncodedRow:
        """Return the row of a view."""
        shape = self.network.input
        return self._encode_pixels(view.scale_to(MAX_ENLARGEMENT * max(shape.height, shape.width)))

    def parameters(self) -> JsonObject:
        """Return the parameters without the file, which is stored as an array."""
        return {name: value for name, value in super().parameters().items() if name != "model"}

    def moments(self) -> tuple[Float32, Float32]:
        """Return the mean and deviation of values from 0 to 1, (3,) each."""
        moments = onnx_network.NORMALISATIONS.get(self.normalise) if isinstance(self.normalise, str) else self.normalise
        if moments is None:
            raise InputError(f"normalise is {self.normalise!r}; choose from {', '.join(onnx_network.NORMALISATIONS)}")
        return np.array(moments[0], np.float32), np.array(moments[1], np.float32)

    def describe_pixels(self) -> JsonObject:
        """Return how a picture becomes the pixels of the input, before they are normalised.

        Returns
        -------
        dict
            longest: longer side to which a larger picture is scaled first; crop: share of the sides that is cut out of
            the centre; height, width: those of the input, to which the largest centred part of its shape is scaled.
        """
        height, width = self.network.input.height, self.network.input.width
        return {"longest": MAX_ENLARGEMENT * max(height, width), "crop": self.crop, "height": height, "width": width}

    def _encode_pixels(self, pixels: UInt8) -> EncodedRow:
        values = self.network.features(pixels, *self.moments(), self.trial_)
        return np.arange(len(values), dtype=np.int32), values

    def _dump_tensors(self) -> dict[str, Array]:
        return {"model": self.model_.content}

    def _restore(self, tensors: dict[str, Array]) -> None:
        self.model_ = onnx_network.OnnxContent(tensors["model"])

    def identity(self) -> JsonObject:
        """Return the settings without defaults: the name, and the hash of the file."""
        return {**super().identity(), "model": self.model_.sha256[:16]}


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
    licence = PACKAGED_ENCODER.licence

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

    def describe_pixels(self) -> JsonObject:
        """Return how a picture becomes the pixels of the input, before they are normalised."""
        return {**super().describe_pixels(), "crop": CENTRE * self.crop}

    @cached_property
    def model_(self) -> onnx_network.OnnxContent:
        """Content of the file."""
        return onnx_network.OnnxContent.load(self.model or find_network())


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


TOP = 10
"""Classes whose names are joined; T of the paper."""


@cache
def _encode_class_names() -> Float32:
    """Return the vectors of the network's 1,000 class names; encoding them takes a second."""
    encoder = SentenceEncoder()
    from wsabie_lite0 import CLASS_NAMES_FILE

    return encoder.encode(CLASS_NAMES_FILE.read_text(encoding="utf-8").splitlines())


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
    near_equality = None  # different pictures of one kind of thing are at one point

    _: KW_ONLY
    output: str | None = "classes"

    @cached_property
    def vectors_(self) -> Float32:
        """Vectors of the class names, (1000, dim)."""
        return _encode_class_names()

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return int(self.vectors_.shape[1])

    def prepare(self, augment: int = 0) -> None:
        """Encode the class names too, so that workers get their vectors."""
        super().prepare(augment)
        _ = self.vectors_

    def encode(self, view: ImageView) -> EncodedRow:
        """Return the point of a view."""
        _, logits = super().encode(view)
        best = np.argsort(-logits, kind="stable")[:TOP]
        point = np.exp(logits[best] - logits[best[0]]) @ self.vectors_[best]
        return np.arange(len(point), dtype=np.int32), point / np.linalg.norm(point)

    def _dump_tensors(self) -> dict[str, Array]:
        return {**super()._dump_tensors(), "vectors": self.vectors_}

    def _restore(self, tensors: dict[str, Array]) -> None:
        super()._restore(tensors)
        self.vectors_ = tensors["vectors"]


@dataclass(eq=False, repr=False)
class HubEncoder(OnnxEncoder):
    """Features of pictures from an encoder that `encoders.get(name)` has installed.

    Pictures are scaled, cut and normalised as in the training of the encoder. Views are cut out before, so `crop` stays
    free for them. A picture whose longer side is over three times the input's is reduced first. A saved folder includes
    the network and its preprocessing.

    Parameters
    ----------
    encoder : str
        Name of the encoder.
    preprocessing : dict
        Content of its `preprocessor_config.json`; empty: of the installed one.
    normalise, output, side
        As in `OnnxEncoder`; None: those of the encoder.
    crop, max_pixels, seed
        As in `OnnxEncoder`.
    """

    name = "hub"
    kind = "hub_encoder"
    near_equality = None  # rows of different pictures may be near each other

    model: str | Path | None = field(default=None, init=False)
    encoder: str = ""
    _: KW_ONLY
    preprocessing: JsonObject = field(default_factory=dict)
    normalise: str | tuple[tuple[float, ...], tuple[float, ...]] | None = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        facts = find_encoder(self.encoder)
        # of the instance, not of the class
        self.name, self.pooling, self.licence = self.encoder, facts.pooling, facts.licence  # type: ignore[misc]
        where, remedy = f"{PREPROCESSOR_CONFIG} of {self.name}", "get the encoder again"
        config = self.preprocessing or json.loads(load_file(facts, PREPROCESSOR_CONFIG).to_bytes())
        self._preprocessing = check_schema(Preprocessing, config, where, remedy)
        self.preprocessing = asdict(self._preprocessing)
        self.side = self.side or self._preprocessing.side
        self.output = self.output or facts.output

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        self._preprocessing.check()
        super().check()

    def encode(self, view: ImageView) -> EncodedRow:
        """Return the row of a view."""
        pixels = view.scale_to(MAX_ENLARGEMENT * self._preprocessing.side)
        return self._encode_pixels(self._preprocessing.scale(pixels))

    def describe_pixels(self) -> JsonObject:
        """Return how a picture becomes the pixels of the input, before they are normalised."""
        return {**super().describe_pixels(), "preprocessing": self.preprocessing}

    def moments(self) -> tuple[Float32, Float32]:
        """Return the mean and deviation of values from 0 to 1, (3,) each."""
        return self._preprocessing.moments() if self.normalise is None else super().moments()

    @cached_property
    def model_(self) -> onnx_network.OnnxContent:
        """Content of the network's file."""
        facts = find_encoder(self.encoder)
        return load_file(facts, facts.network)
