"""Writes the golden folder of a version: models as that version saves them, and what they answer.

    python tests/golden/make.py

It is run once for each released version and its folder never changes again: a later version that cannot read it, or
answers otherwise, breaks the promise of the format.
"""

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import wsabie
from wsabie.io.records import Item, ItemList
from wsabie.models.annotators import Annotator

FOLDER = Path(__file__).parent
COLOURS = {"sky": (90, 150, 240), "grass": (40, 150, 50), "brick": (170, 60, 40)}
SMALL: dict[str, Any] = {"dim": 6, "epochs": 3, "learning_rate": 0.3, "threads": 1}


def picture(name: str, number: int) -> bytes:
    """A small picture of a colour, with stripes that tell the numbers apart, as PNG."""
    pixels = np.full((20, 24, 3), COLOURS[name], np.uint8)
    pixels[:: 2 + number] //= 2
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def annotator() -> Annotator:
    """For pictures, with tf-idf extractor and two labels a picture."""
    colour_numbers = [(name, number) for number in range(4) for name in COLOURS]
    pictures = [Item(f"{name} {n}", picture(name, n), (name, "Bild 犬")) for name, n in colour_numbers]
    source = ItemList(Path("pictures"), pictures)
    extractor = wsabie.VisualWords(12, weighting="tfidf", size=64).fit(source)
    rows = extractor.transform(source)
    model = wsabie.Wsabie(**SMALL).fit(rows.X, rows.Y, label_names=rows.label_names)
    return Annotator(model, extractor, None, {"source": "pictures", "rows": len(rows)}, rows.extractor_fingerprint)


def vectors(n: int) -> Any:
    """Rows of four features, two of them high for each of two labels."""
    X = np.tile([[3, 2, 0, 0], [0, 0, 2, 3]], (n, 1)).astype(np.float32)
    return X + np.arange(len(X), dtype=np.float32)[:, None] / 16


def estimator() -> wsabie.Wsabie:
    """For dense rows, with biases and probabilities."""
    labels = ["wood", "sea"] * 6
    model = wsabie.Wsabie(**SMALL, label_bias=True, similarity="euclidean")
    return model.fit(vectors(6), labels, validation=(vectors(3), labels[:6]))


def answers(folder: Path, pictures: list[bytes], rows: Any) -> dict[str, Any]:
    """Return the answers of the saved models about pictures and rows."""
    items = ItemList(folder, [Item(str(n), content, ()) for n, content in enumerate(pictures)])
    loaded, bare = Annotator.load(folder / "annotator"), wsabie.load(folder / "estimator")
    return {
        "annotations": loaded.model.annotate(loaded.rows(items).rows.X, 3),
        "ranked": bare.annotate(rows, 2),
        "probabilities": bare.predict_proba(rows).tolist(),
        "neighbours": bare.neighbours("sea", 1),
    }


if __name__ == "__main__":
    new = FOLDER / wsabie.__version__
    annotator().save(new / "annotator")
    estimator().save(new / "estimator")
    example_pictures, rows = [picture(name, 1) for name in COLOURS], vectors(2)
    inputs = {"pictures": [base64.b64encode(content).decode() for content in example_pictures], "rows": rows.tolist()}
    document = json.dumps({**inputs, **answers(new, example_pictures, rows)}, ensure_ascii=False, indent=1)
    (new / "answers.json").write_text(document + "\n", "utf-8")
