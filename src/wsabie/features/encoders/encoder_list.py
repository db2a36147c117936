"""Image encoders by name: licence, size and use of each."""

import io
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wsabie.features.extractor_choice import is_network_installed
from wsabie.features.extractors.lite0_encoder import Lite0Encoder
from wsabie.io.records import Item, ItemList

N_PHOTOS = 32
"""Photos of a measurement."""


class ImageEncoder(NamedTuple):
    """Image encoder that features can be made with.

    Attributes
    ----------
    name : str
    purpose : str
    licence : str
        SPDX identifier of the weights.
    megabytes : float
        Size of the ONNX file.
    dimensions : int
    text : str or None
        Languages of its text tower; None without one.
    repository : str or None
        Repository on the Hugging Face Hub with the ONNX file; None: a distribution of this project.
    options : str
        Options of `--features` commands; FILE is the ONNX file.
    is_verified : bool
        True if this project has run the real weights. The facts of others come from their publishers.
    """

    name: str
    purpose: str
    licence: str
    megabytes: float
    dimensions: int
    text: str | None
    repository: str | None
    options: str
    is_verified: bool = False

    @property
    def is_installed(self) -> bool:
        """True if its name alone extracts features on this machine."""
        return self.repository is None and is_network_installed()


_CLIP = "--features onnx:FILE --normalise clip"
_DINO = "--features onnx:FILE --normalise imagenet --crop 0.875"
ENCODERS = (
    ImageEncoder("lite0", "objects in photos, fast", "Apache-2.0", 9.3, 1280, None, None, "--features lite0", True),
    ImageEncoder("dinov2-small", "likeness", "Apache-2.0", 88, 384, None, "Xenova/dinov2-small", _DINO),
    ImageEncoder("dinov2-base", "likeness, fine kinds", "Apache-2.0", 346, 768, None, "Xenova/dinov2-base", _DINO),
    ImageEncoder(
        "clip-base", "photos and words", "MIT", 352, 512, "English",
        "Xenova/clip-vit-base-patch32", f"{_CLIP} --onnx-output image_embeds",
    ),
    ImageEncoder(
        "siglip2-base", "photos and words", "Apache-2.0", 372, 768, "many",
        "onnx-community/siglip2-base-patch16-224-ONNX",
        "--features onnx:FILE --normalise symmetric --onnx-output pooler_output",
    ),
    ImageEncoder(
        "nomic-vision", "photos and words", "Apache-2.0", 374, 768, "English", "nomic-ai/nomic-embed-vision-v1.5", _CLIP
    ),
)  # fmt: skip
"""All encoders; the one that needs no download comes first."""


def measure_speed(n_photos: int = N_PHOTOS) -> float:
    """Return the photos a second of `lite0` in this process, with their decoding.

    Photos are of 1,024 x 768 pixels. The network is opened before the clock starts.
    """
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).resize((1024, 768)).save(file, "JPEG")
    photos = ItemList(Path(), [Item(str(number), file.getvalue(), ()) for number in range(n_photos)])
    encoder = Lite0Encoder()
    encoder.prepare()
    start = time.perf_counter()
    encoder.transform(photos)
    return n_photos / (time.perf_counter() - start)
