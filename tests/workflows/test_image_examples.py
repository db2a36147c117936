"""Image data sets: split first, then extracted with the training side's codebook."""

import io

import numpy as np
import pytest
from PIL import Image as Pillow

from wsabie.evaluation.splits import Split
from wsabie.features.extractors.visual_words import VisualWords
from wsabie.io.data_sources import open_source
from wsabie.io.records import FeatureTable, Item, ItemList, ItemSubset
from wsabie.samples import get_sample_path
from wsabie.storage.rejects import Rejects
from wsabie.workflows.report.report_input import extract_split, extract_split_by_burst, render_thumbnail

SIDES = Split(np.arange(24), np.arange(24, 27), np.arange(27, 30))


@pytest.fixture(scope="module")
def emoji() -> ItemList:
    source = open_source(get_sample_path("emoji"))
    assert not isinstance(source, FeatureTable)
    return ItemList(source.path, [picture for picture, _ in zip(source, range(30), strict=False)])


def make_visual_words() -> VisualWords:
    return VisualWords(n_words=40, size=64)


def test_codebook_is_learned_from_training_pictures_only(emoji: ItemList) -> None:
    taught = make_visual_words()
    rows, sides = extract_split(emoji, taught, lambda rows: SIDES)
    assert taught.fingerprint() == make_visual_words().fit(ItemSubset(emoji, range(24))).fingerprint()
    assert taught.fingerprint() != make_visual_words().fit(emoji).fingerprint()
    assert rows.ids == [picture.id for picture in emoji]
    assert sides.test.tolist() == [27, 28, 29]


def test_bursts_stay_together_and_the_codebook_is_learned_from_training_pictures_only(emoji: ItemList) -> None:
    shots = [
        item._replace(content=emoji.items[number // 10].content, time=f"2024-05-01T00:{number // 10:02}:0{number % 2}")
        for number, item in enumerate(emoji)
    ]
    taught, bad = make_visual_words(), Item("bad", b"no picture", emoji.items[0].labels)
    pictures, rejects = ItemList(emoji.path, [*shots, bad]), Rejects()
    chosen: list[FeatureTable] = []

    def choose(rows: FeatureTable) -> Split:
        chosen.append(rows)
        return Split(*(np.arange(start, start + 10) for start in ((0, 10, 20) if len(chosen) == 1 else (20, 0, 10))))

    rows, sides, n_bursts = extract_split_by_burst(pictures, taught, choose, rejects=rejects)
    assert (n_bursts, len(set(chosen[1].groups or ())), len(rejects)) == (3, 3, 1)
    assert sides.train.tolist() == list(range(20, 30))
    expected = make_visual_words().fit(ItemSubset(pictures, range(20, 30)))
    assert taught.fingerprint() == rows.extractor_fingerprint == expected.fingerprint()


def test_split_uses_labels_and_groups_without_features(emoji: ItemList) -> None:
    outlines: list[FeatureTable] = []

    def choose(rows: FeatureTable) -> Split:
        outlines.append(rows)
        return SIDES

    rows, _ = extract_split(emoji, make_visual_words(), choose)
    (outline,) = outlines
    assert outline.X.shape == (30, 0)
    assert outline.groups == rows.groups
    assert (outline.Y != rows.Y).nnz == 0


def test_unreadable_picture_is_on_no_side(emoji: ItemList) -> None:
    bad = Item("bad", b"no picture", emoji.items[25].labels)
    pictures = ItemList(emoji.path, [*emoji.items[:25], bad, *emoji.items[26:]])
    rejects = Rejects()
    rows, sides = extract_split(pictures, make_visual_words(), lambda rows: SIDES, rejects=rejects)
    assert len(rejects) == 1
    assert [rows.ids[i] for i in sides.valid] == [emoji.items[24].id, emoji.items[26].id]
    assert [rows.ids[i] for i in sides.test] == [picture.id for picture in emoji.items[27:]]


def test_thumbnails_are_small_and_upright() -> None:
    file, exif = io.BytesIO(), Pillow.Exif()
    exif[0x0112] = 6  # lies on its side
    Pillow.new("RGB", (900, 600), "teal").save(file, "JPEG", exif=exif)
    small = render_thumbnail(file.getvalue())
    with Pillow.open(io.BytesIO(small.content)) as opened:
        assert (opened.size, opened.format, small.mime) == ((213, 320), "WEBP", "image/webp")
