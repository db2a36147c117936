"""Small collections of made-up pictures."""

import io

import numpy as np
import pytest
from PIL import Image

from wsabie.io.records import Item, ItemList

KINDS = ("sky", "grass", "bricks")


def draw_picture(kind, number, side=48):
    """A picture of one of three kinds, each different from the next."""
    draw = np.random.default_rng([KINDS.index(kind), number])
    height, width = side, side + int(draw.integers(0, side // 2))
    if kind == "sky":
        pixels = np.linspace([40, 90, 220], [170, 200, 255], height)[:, None].repeat(width, axis=1)
    elif kind == "grass":
        pixels = np.array([30, 150, 40]) + draw.integers(-40, 60, (height, width, 1))
    else:
        y, x = np.mgrid[:height, :width]
        mortar = (y % 12 < 2) | ((x + 6 * (y // 12 % 2)) % 12 < 2)
        pixels = np.where(mortar[..., None], [210, 205, 200], [150, 50, 35])
    pixels = np.clip(pixels + draw.integers(-6, 7, (height, width, 1)), 0, 255)
    return Image.fromarray(pixels.astype(np.uint8))


def make_png(image):
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="session")
def collection(tmp_path_factory):
    """24 pictures on disk, labelled with their kind and "photo"; with groups and without times."""
    folder = tmp_path_factory.mktemp("pictures")
    pictures = []
    for number in range(8):
        for kind in KINDS:
            path = folder / f"{kind}-{number}.png"
            path.write_bytes(make_png(draw_picture(kind, number)))
            pictures.append(Item(path.name, path, ("photo", kind), group=f"{kind}{number // 2}"))
    return ItemList(folder, pictures)


@pytest.fixture(scope="session")
def spoilt(collection):
    """The collection with three files that are not pictures in between."""
    bad = [
        Item("words.jpg", b"only words", ("sky",)),
        Item("gone.jpg", collection.path / "gone.jpg", ("sky",)),
        Item("cut.png", make_png(draw_picture("grass", 0))[:400], ("grass",)),
    ]
    pictures = list(collection.items)
    for place, picture in zip((0, 11, 20), bad, strict=True):
        pictures.insert(place, picture)
    return ItemList(collection.path, pictures)


@pytest.fixture(scope="session")
def extractor(collection):
    """A dictionary of 60 visual words."""
    from wsabie.features.extractors.visual_words import VisualWords

    return VisualWords(n_words=60).fit(collection)
