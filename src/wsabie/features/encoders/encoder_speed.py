"""Speed of the image encoders on this machine."""

import io
import time
from pathlib import Path

import numpy as np

from wsabie.features.extractor_registry import create_extractor
from wsabie.io.records import Item, ItemList

N_PHOTOS = 32
"""Photos of a measurement."""


def measure_speed(name: str, n_photos: int = N_PHOTOS) -> float:
    """Return the photos a second of an encoder in this process, with their decoding.

    Photos are of 1,024 x 768 pixels. The network is opened before the clock starts.
    """
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).resize((1024, 768)).save(file, "JPEG")
    photos = ItemList(Path(), [Item(str(number), file.getvalue(), ()) for number in range(n_photos)])
    encoder = create_extractor(name)
    encoder.prepare()
    start = time.perf_counter()
    encoder.transform(photos)
    return n_photos / (time.perf_counter() - start)
