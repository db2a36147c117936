"""Occlusion heat maps: the mean fall of the score for each covered pixel."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import wsabie
from wsabie.features.extractor_registry import create_extractor
from wsabie.features.images.image_decoder import decode_image
from wsabie.io.records import Item, ItemList
from wsabie.models.annotators import Annotator
from wsabie.models.explanations import compute_occlusion_map, explain_picture, list_windows
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.samples import get_sample_path

KINDS = ("light skin tone", "fruit", "heart", "moon", "clock")


@pytest.fixture(scope="module")
def colour_annotator() -> tuple[Annotator, dict[str, list[Item]]]:
    """A model of colours that knows five kinds of drawings, by distance: no score is a sum."""
    emoji = wsabie.open_source(get_sample_path("emoji"))
    pictures = [Item(p.id, p.content, k) for p in emoji if len(k := tuple(w for w in KINDS if w in p.labels)) == 1]
    items = ItemList(emoji.path, pictures)
    colours = create_extractor("colour", size=96).fit(items)
    rows = colours.transform(items)
    model = Wsabie(dim=16, epochs=15, threads=1, similarity="euclidean").fit(
        rows.X, rows.Y, label_names=rows.label_names
    )
    return Annotator(model, colours), {kind: [p for p in pictures if p.labels == (kind,)] for kind in KINDS}


@given(st.integers(1, 700), st.integers(1, 700))
def test_every_pixel_is_covered(width: int, height: int) -> None:
    times, boxes = np.zeros((height, width), int), list_windows(width, height)
    for left_edge, top, right, bottom in boxes:
        assert 0 <= left_edge < right <= width
        assert 0 <= top < bottom <= height
        times[top:bottom, left_edge:right] += 1
    assert times.min() >= 1
    assert len(boxes) <= 81


def test_heat_is_the_mean_fall_of_the_score(colour_annotator: tuple[Annotator, dict[str, list[Item]]]) -> None:
    annotator, pictures_by_label = colour_annotator
    picture = decode_image(pictures_by_label["fruit"][0].content, size=20)
    label = int(annotator.model.vocabulary_.ids(["fruit"])[0])

    def score(pixels: np.ndarray) -> float:
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "PNG")
        scores = annotator.model.scores(annotator.rows_of_items([Item("p", out.getvalue(), ())]))[0]
        return float(scores[label] - scores.mean())

    height, width = picture.shape[:2]
    falls, weights = np.zeros((height, width)), np.zeros((height, width))
    for left_edge, top, right, bottom in list_windows(width, height):
        covered = picture.copy()
        covered[top:bottom, left_edge:right] = np.rint(picture.reshape(-1, 3).mean(axis=0))
        fall = score(picture) - score(covered)
        for y in range(top, bottom):
            for x in range(left_edge, right):
                weight = min(y - top + 1, bottom - y) * min(x - left_edge + 1, right - x)
                falls[y, x] += fall * weight
                weights[y, x] += weight
    heat = compute_occlusion_map(annotator, picture, label)
    assert heat.shape == picture.shape[:2]
    assert np.allclose(heat, falls / weights, atol=1e-5)
    assert np.ptp(heat) > 0.01


def test_heat_lies_on_the_half_with_the_object(colour_annotator: tuple[Annotator, dict[str, list[Item]]]) -> None:
    annotator, pictures_by_label = colour_annotator
    right, rng = [], np.random.default_rng(0)
    for _ in range(12):
        first, second = rng.choice(KINDS, 2, replace=False)
        halves = [decode_image(pictures_by_label[kind][rng.integers(12)].content, size=96) for kind in (first, second)]
        height = min(half.shape[0] for half in halves)
        out = io.BytesIO()
        Image.fromarray(np.hstack([half[:height] for half in halves])).save(out, "PNG")
        explanation = explain_picture(annotator, out.getvalue(), first)
        assert not explanation.adds_up
        assert explanation.picture.size == explanation.heat.shape[::-1]
        middle = halves[0].shape[1]
        right.append(explanation.heat[:, :middle].mean() > explanation.heat[:, middle:].mean())
    assert np.mean(right) >= 0.75
