"""Features of pictures from an encoder of the Hugging Face Hub, by its name."""

import json
from dataclasses import KW_ONLY, asdict, dataclass, field
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.json_conversion import JsonObject
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.encoders.encoder_list import PREPROCESSOR_CONFIG
from wsabie.features.encoders.encoder_store import find_encoder, load_file
from wsabie.features.encoders.onnx_network import OnnxContent, open_network
from wsabie.features.encoders.preprocessing import Preprocessing
from wsabie.features.extractors.onnx_encoder import MAX_ENLARGEMENT, OnnxEncoder
from wsabie.features.images.image_extractor import ImageView
from wsabie.storage.schema_validation import check_schema


@dataclass(eq=False, repr=False)
class HubEncoder(OnnxEncoder):
    """Features of pictures from an encoder that `wsabie encoders get NAME` has installed.

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

    model: str | Path | None = field(default=None, init=False)
    encoder: str = ""
    _: KW_ONLY
    preprocessing: JsonObject = field(default_factory=dict)
    normalise: str | tuple[tuple[float, ...], tuple[float, ...]] | None = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        facts = find_encoder(self.encoder)
        self.name = self.encoder  # type: ignore[misc]  # of the instance, not of the class
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
        network = open_network(self._get_model(), self.side, self.output, find_encoder(self.encoder).pooling)
        pixels = self._preprocessing.scale(view.scale_to(MAX_ENLARGEMENT * self._preprocessing.side))
        values = network.features(pixels, *self._get_moments(), self._get_trial())
        return np.arange(len(values), dtype=np.int32), values

    def _get_moments(self) -> tuple[Float32, Float32]:
        return self._preprocessing.moments() if self.normalise is None else super()._get_moments()

    def _get_model(self) -> OnnxContent:
        if not hasattr(self, "model_"):
            facts = find_encoder(self.encoder)
            self.model_ = load_file(facts, facts.network)
        return self.model_
