"""Visual words: equal rows for every method, saved or not, complete or in part."""

import json
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError, ModelFolderError, UnreadableItemError
from wsabie.core.execution import ProcessExecutor
from wsabie.features.extractors.visual_words import VisualWords
from wsabie.features.images.image_decoder import decode_image
from wsabie.io.records import FeatureTable, Item, ItemList
from wsabie.storage.rejects import Rejects


def are_equal(a, b):
    assert (a.X != b.X).nnz == 0
    assert (a.Y != b.Y).nnz == 0
    assert (a.ids, a.label_names, a.groups, a.times, a.counts) == (b.ids, b.label_names, b.groups, b.times, b.counts)


def test_rows_are_counts_of_blocks(extractor, collection):
    rows = extractor.transform(collection)
    assert rows.X.shape == (24, 60)
    assert rows.X.dtype == np.float32
    assert rows.counts
    assert rows.ids == [picture.id for picture in collection]
    assert rows.groups == [picture.group for picture in collection]
    assert rows.times is None
    assert rows.label_names == ["bricks", "grass", "photo", "sky"]
    assert rows.Y.sum(axis=0).tolist() == [[8, 8, 24, 8]]
    for row, picture in zip(rows.X, collection, strict=True):
        assert row.sum() == len(extractor.block_map(picture.content).words)
        assert (np.diff(row.indices) > 0).all()


def test_pictures_of_a_kind_are_similar(extractor, collection):
    rows = extractor.transform(collection)
    X = rows.X.toarray()
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    likeness = X @ X.T - 2 * np.eye(len(X))
    kinds = np.array([picture.labels[1] for picture in collection])
    assert (kinds[likeness.argmax(axis=1)] == kinds).all()


def test_single_picture_equals_its_row(extractor, collection):
    rows = extractor.transform(collection)
    for i, picture in enumerate(collection):
        for content in (picture.content, picture.content.read_bytes()):
            indices, values = extractor.transform_one(content)
            assert indices.tolist() == rows.X[i].indices.tolist()
            assert values.tolist() == rows.X[i].data.tolist()
        counts = np.bincount(extractor.block_map(picture.content).words, minlength=60)
        np.testing.assert_array_equal(counts, rows.X[i].toarray()[0])


def test_worker_processes_learn_and_give_the_same(collection, spoilt, extractor, tmp_path):
    fitted = VisualWords(n_words=60).fit(collection, executor=ProcessExecutor(2, local_seconds=0))
    np.testing.assert_array_equal(fitted.codebook_.centres, extractor.codebook_.centres)
    fitted.save(tmp_path)  # its arrays are memory-mapped when they travel to the workers
    rejects, other_rejects, loaded = Rejects(), Rejects(), VisualWords.load(tmp_path)
    are_equal(
        loaded.transform(spoilt, executor=ProcessExecutor(2, local_seconds=0), rejects=rejects),
        extractor.transform(spoilt, rejects=other_rejects),
    )
    assert rejects.listed == other_rejects.listed


def test_bad_pictures_are_listed_and_skipped(extractor, spoilt, collection):
    rejects = Rejects()
    are_equal(extractor.transform(spoilt, rejects=rejects), extractor.transform(collection))
    reasons = [("words.jpg", "not a picture"), ("gone.jpg", "unreadable file"), ("cut.png", "truncated picture")]
    assert [(where, reason) for where, reason, _ in rejects.listed] == reasons
    rejects = Rejects()
    VisualWords(n_words=60).fit(spoilt, rejects=rejects)
    assert len(rejects) == 3


def test_strict_stops_at_the_first_bad_picture(extractor, spoilt):
    with pytest.raises(InputError, match=r"words\.jpg: not a picture"):
        extractor.transform(spoilt, rejects=Rejects(strict=True))


def test_source_without_readable_pictures_is_refused(extractor):
    bad = ItemList("here", [Item("a", b"words", ("x",))])
    with pytest.raises(InputError, match="none of the pictures of here can be read: a is refused as not a picture"):
        VisualWords().fit(bad)
    with pytest.raises(InputError, match="here holds no pictures"):
        VisualWords().fit(ItemList("here", []))
    rows = extractor.transform(bad)
    assert rows.X.shape == (0, 60)
    assert len(rows) == 0


def test_pictures_without_labels_have_rows(extractor, collection):
    plain = ItemList(collection.path, [p._replace(labels=(), group=None) for p in collection])
    rows = extractor.transform(plain)
    assert rows.Y.shape == (24, 0)
    assert rows.groups is None


def test_extraction_takes_bounded_memory(extractor, collection):
    class Endless:
        path = collection.path
        read = 0

        def __len__(self):
            return 10**9

        def __iter__(self):
            while True:
                for picture in collection:
                    self.read += 1
                    yield picture._replace(id=str(self.read))

    source = Endless()
    rows = extractor.iterate(source)
    for i in range(40):
        assert next(rows).id == str(i + 1)
    assert source.read <= 64
    rows.close()


def test_sample_is_spread_over_the_source(collection):
    places = []

    class Watched(ItemList):
        def __iter__(self):
            for place, picture in enumerate(self.items):
                places.append(place)
                yield picture

    words = VisualWords(n_words=20)
    words.max_blocks = 6 * 64  # type: ignore[misc]
    words.fit(Watched(collection.path, collection.items))
    assert places[-1] == 20  # 0, 4, 8, 12, 16, 20


def test_tfidf_equals_its_formula(collection, extractor):
    counts = extractor.transform(collection).X.toarray()
    weighted = VisualWords(n_words=60, weighting="tfidf").fit(collection)
    rows = weighted.transform(collection)
    idf = np.log((1 + 24) / (1 + (counts > 0).sum(axis=0))) + 1
    expected = np.log1p(counts) * idf
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(rows.X.toarray(), expected, rtol=1e-5)
    assert not rows.counts
    row = weighted.transform_one(collection.items[0].content)
    np.testing.assert_array_equal(row[1], rows.X[0].data)


@pytest.mark.parametrize("weighting", ["counts", "tfidf"])
def test_loaded_extractor_gives_the_same_rows(tmp_path, collection, weighting):
    extractor = VisualWords(40, size=40, weighting=weighting, cells=(9, 3), crop=0.9, seed=5).fit(collection)
    extractor.save(tmp_path / "extractor")
    loaded = VisualWords.load(tmp_path / "extractor")
    are_equal(loaded.transform(collection, augment=1), extractor.transform(collection, augment=1))
    assert loaded.fingerprint() == extractor.fingerprint()
    assert loaded.to_state().config == extractor.to_state().config


def test_fingerprint_changes_with_the_settings(collection, extractor):
    prints = {extractor.fingerprint()}
    for change in ({"seed": 1}, {"size": 40}, {"crop": 0.5}, {"contrast": 9}, {"weighting": "tfidf"}):
        prints.add(VisualWords(60, **change).fit(collection).fingerprint())
    assert len(prints) == 6


def test_folder_of_another_kind_is_refused(tmp_path, extractor):
    extractor.save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for change in ({"kind": "wsabie"}, {"config": {**config["config"], "version": 99}}):
        (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
        with pytest.raises(ModelFolderError):
            VisualWords.load(tmp_path)


def test_rows_of_features_are_refused(extractor):
    rows = FeatureTable(csr_matrix((1, 3)), csr_matrix((1, 1)), ["a"], ["b"])
    for use in (extractor.transform, VisualWords().fit):
        with pytest.raises(
            InputError, match="visual-words takes pictures and these are rows of features; give pictures"
        ):
            use(rows)


def test_unfitted_extractor_is_refused(collection):
    for use in (lambda t: t.transform(collection), lambda t: t.to_state(), lambda t: t.n_features_):
        with pytest.raises(InputError, match="call fit"):
            use(VisualWords())


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"n_words": 0}, "n_words"),
        ({"weighting": "binary"}, "weighting"),
        ({"size": 0}, "size"),
        ({"crop": 0.0}, "crop"),
        ({"across": 0}, "across"),
        ({"n_words": 10**5}, "distinct blocks"),
        ({"n_words": 10**6}, "1,000,000 visual words are asked for, but at most 300,000 blocks are sampled"),
        ({"n_words": 2.5}, "n_words"),
        ({"seed": -1}, "seed is -1; choose a whole number from 0 to 9223372036854775807"),
        ({"seed": 2**63}, "seed"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_values_out_of_range_are_refused(collection, parameters, name):
    with pytest.raises(InputError, match=name):
        VisualWords(**parameters).fit(collection)


def test_auto_chooses_the_number_of_words(collection):
    extractor = VisualWords("auto").fit(collection)
    assert 10 < extractor.n_features_ < 1000
    assert extractor.transform(collection).X.shape[1] == extractor.n_features_


def test_augmented_rows_stay_with_their_picture(extractor, collection):
    plain, more = extractor.transform(collection), extractor.transform(collection, augment=2)
    assert more.ids[:4] == ["sky-0.png", "sky-0.png#1", "sky-0.png#2", "grass-0.png"]
    assert more.groups == [group for group in plain.groups for _ in range(3)]
    are_equal(more.take(range(0, 72, 3)), plain)
    assert (more.X[0] != more.X[1]).nnz
    assert (more.Y[::3] != more.Y[1::3]).nnz == 0
    single = ItemList(collection.path, [collection.items[5]._replace(group=None)])
    single_rows = extractor.transform(single, augment=2)
    assert (more.X[15:18] != single_rows.X).nnz == 0
    assert single_rows.groups == [collection.items[5].id] * 3


def test_block_map_is_in_pixels_of_the_upright_picture(extractor, tmp_path):
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6
    picture = Image.new("RGB", (900, 1200), (40, 90, 220))
    picture.paste((30, 150, 40), (0, 0, 900, 300))  # stored lying; upright, its right quarter is green
    picture.save(tmp_path / "turned.jpg", exif=exif, quality=95)
    where = extractor.block_map(tmp_path / "turned.jpg")
    assert (where.width, where.height) == (1200, 900)
    assert where.boxes.min(axis=0).tolist()[:2] == [0, 0]
    np.testing.assert_allclose(where.boxes.max(axis=0)[2:], [1200, 900])
    green = extractor.transform_one(make_png(decode_image(tmp_path / "turned.jpg")[:, -40:]))[0]
    right = np.unique(where.words[where.boxes[:, 0] > 905])
    assert set(right) <= set(green)


def make_png(pixels):
    import io

    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def test_crop_takes_the_centre(collection):
    extractor = VisualWords(40, crop=0.5).fit(collection)
    where = extractor.block_map(make_png(np.zeros((100, 200, 3), np.uint8)))
    assert where.boxes.min(axis=0)[:2].tolist() == [50, 25]
    assert where.boxes.max(axis=0)[2:].tolist() == [150, 75]


def test_block_map_of_a_bad_picture_is_refused(extractor):
    with pytest.raises(UnreadableItemError):
        extractor.block_map(b"words")


def test_extraction_emits_no_warning(extractor, spoilt):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        extractor.transform(spoilt)
