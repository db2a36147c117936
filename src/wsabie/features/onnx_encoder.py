"""Any image encoder in an ONNX file as the description of pictures: dense rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from wsabie.base.arrays import Float32, Int32
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.features.onnx_network import NORMALISATIONS, Model, Network, Trial, opened
from wsabie.features.onnx_trial import try_network
from wsabie.features.pictures import MAX_PIXELS, PictureDescriber
from wsabie.features.viewer import Look
from wsabie.sources.records import ItemSource
from wsabie.storage.folder import Array
from wsabie.storage.rejects import Rejects

_LONGEST = 3  # decoded at this many input sides: the shorter side of most pictures is then not enlarged


@dataclass(frozen=True)
class _Encoded:
    model: Model
    side: int | None
    output: str | None
    trial: Trial
    mean: Float32
    deviation: Float32

    def __call__(self, look: Look) -> tuple[Int32, Float32]:
        network = opened(self.model, self.side, self.output)
        pixels = look.at(_LONGEST * max(network.wanted.height, network.wanted.width))
        values = network.features(pixels, self.mean, self.deviation, self.trial)
        return np.arange(len(values), dtype=np.int32), values


class OnnxEncoder(PictureDescriber):
    """Pictures as what a network in an ONNX file says of them.

    The centre of the picture in the shape of the network's input is scaled to it (bicubic), with values from 0 to 1
    normalised; a network that takes uint8 gets bytes. (batch, 3, h, w) and (batch, h, w, 3) are told apart, any batch
    size goes; maps and tokens are averaged. Runs on one thread a process, on the CPU; operators and weights outside the
    file are never loaded. When it is saved the whole file travels along, so that a model folder needs nothing else.

    Parameters
    ----------
    model : str or Path
        The ONNX file.
    normalise : {"imagenet", "clip", "symmetric", "unit", "bytes"} or (mean, deviation)
        Of values from 0 to 1, three numbers each: what the network was trained with. "symmetric": -1 to 1, "unit": 0 to
        1, "bytes": 0 to 255.
    output : str or None
        Which output, by name; None: the first.
    side : int or None
        Of the input in pixels, where the network leaves it open; None: 224.
    crop, max_pixels, seed
        As in `VisualTerms`. The usual "resize to 256, crop 224" is crop=0.875.

    Examples
    --------
    >>> OnnxEncoder("missing.onnx").encoder()
    Traceback (most recent call last):
    ...
    wsabie.base.errors.InputError: there is no ONNX file at missing.onnx; give the file of an image encoder
    """

    name = "onnx"
    kind = "onnx_encoder"
    dense = True
    _names = ("normalise", "output", "side")
    _common = ("crop", "max_pixels", "seed")

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        normalise: str | tuple[tuple[float, ...], tuple[float, ...]] = "imagenet",
        output: str | None = None,
        side: int | None = None,
        crop: float = 1.0,
        max_pixels: int = MAX_PIXELS,
        seed: int = 0,
    ) -> None:
        super().__init__(crop=crop, max_pixels=max_pixels, seed=seed)
        self.model = model
        self.normalise = normalise
        self.output = output
        self.side = side

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return self._trial().width

    def fit(
        self,
        source: ItemSource,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
    ) -> Self:
        """Read the file and try it.

        Raises
        ------
        InputError
            A parameter is out of range, or the network cannot be used.
        """
        super().fit(source)
        self._network()
        return self

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        mean, deviation = self._moments()
        if mean.shape != (3,) or deviation.shape != (3,) or not (deviation > 0).all():
            raise InputError("normalise is no (mean, deviation) of three channels each, deviations above 0")
        if self.side is not None and not 8 <= self.side <= 1365:
            raise InputError(f"side is {self.side}; give the input's side in pixels, from 8 to 1365")
        super().check()

    def encoder(self) -> _Encoded:
        """The part that travels to workers, the whole file with it."""
        self.check()
        return _Encoded(self._model(), self.side, self.output, self._trial(), *self._moments())

    def _moments(self) -> tuple[Float32, Float32]:
        found = NORMALISATIONS.get(self.normalise) if isinstance(self.normalise, str) else self.normalise
        if found is None:
            raise InputError(f"normalise is {self.normalise!r}; choose from {', '.join(NORMALISATIONS)}")
        return np.array(found[0], np.float32), np.array(found[1], np.float32)

    def _trial(self) -> Trial:
        return try_network(self._model(), self.side, self.output)

    def _network(self) -> Network:
        self._trial()
        return opened(self._model(), self.side, self.output)

    def _model(self) -> Model:
        if not hasattr(self, "model_"):
            if self.model is None:
                raise InputError("no ONNX file is named; give the file of an image encoder")
            self.model_ = Model.read(self.model)
        return self.model_

    def _tensors(self) -> dict[str, Array]:
        return {"model": self._model().content}

    def _restore(self, tensors: dict[str, Any]) -> None:
        self.model_ = Model(tensors["model"])

    def identity(self) -> dict[str, Any]:
        """What is described: by which file."""
        return {**super().identity(), "model": self._model().sha256[:16]}
