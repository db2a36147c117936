"""Suggestions by the names of labels alone, their end with the first training, and searches in free words."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sqlalchemy import bindparam, func, select

from picture_collections import add_item, tag
from wsabie.collection.annotations.decisions import make_no_model_error, tag_items
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry
from wsabie.collection.db.tables import bursts, items, models, suggestions
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.collection.labels.label_edits import add_labels
from wsabie.collection.learning import training, zero_shot
from wsabie.collection.learning.bursts import assign_bursts
from wsabie.collection.learning.feature_store import Resources, extract_missing_features, open_feature_store
from wsabie.collection.learning.model_fitting import FitResult, fit_model
from wsabie.collection.learning.retrain_plan import forecast_training
from wsabie.collection.learning.suggestions import apply_model
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.registry.item_index import ItemEmbeddings, load_item_embeddings, save_item_embeddings
from wsabie.collection.registry.model_registry import load_model, load_model_in_use
from wsabie.collection.search.text_search import search_items
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.features.encoders import text_encoders
from wsabie.features.encoders.encoder_list import HUB_ENCODERS
from wsabie.features.encoders.encoder_store import install_encoder
from wsabie.features.encoders.text_encoders import SentenceEncoder, TextEncoder
from wsabie.features.extractor_registry import load_extractor
from wsabie.features.extractors.onnx_encoders import ConseEncoder, Lite0Encoder
from wsabie.models.annotators import Annotator
from wsabie.samples import get_photo_folder

needs_words = pytest.mark.skipif(
    not text_encoders.is_sentence_encoder_installed(), reason="the extra `words` is not installed; run `make setup`"
)
ANIMALS = ("bee", "butterfly", "cheetah", "crab", "gorilla", "penguin", "squirrel", "toucan")


@pytest.fixture
def animals(collection: Collection) -> dict[int, str]:
    """Untagged photos of eight animals, and their names, which are labels; the animal of each item."""
    files = {get_photo_folder() / "animal" / f"erase_{name}.jpg": name for name in ANIMALS}
    add_labels(collection, ANIMALS, by="eve")
    return {add_item(collection, Path(shutil.copy(file, collection.folder))): name for file, name in files.items()}


def install_tower(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a tiny encoder with a text tower."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    monkeypatch.setenv("WSABIE_ENCODERS", str(folder / "encoders"))
    source = Path(__file__).parents[2] / "features/encoders/tiny/clip-base"
    install_encoder(HUB_ENCODERS["clip-base"], source, words=True)


def first_labels(collection: Collection, model: int) -> dict[int, str]:
    """The most probable label of each item."""
    s = suggestions.c
    query = select(s.item_id, s.label_id).where(s.model_id == model).order_by(s.probability)
    with begin_read(collection.engine) as connection:
        names = label_store.read_label_names(connection)
        return {item: names[label] for item, label in connection.execute(query)}


@needs_words
def test_names_of_things_leave_bursts_to_the_features_of_the_first_training(
    collection: Collection, animals: dict[int, str]
) -> None:
    """Different photos of an animal are at one point among names, and near-copies are near for the network too."""
    for name in ANIMALS:
        with Image.open(get_photo_folder() / "animal" / f"erase_{name}.jpg") as photo:
            photo.crop((9, 9, *photo.size)).save(collection.folder / f"copy of {name}.jpg", quality=90)
            add_item(collection, collection.folder / f"copy of {name}.jpg")
    assert apply_model(collection, by="eve", threads=1).is_zero_shot
    with begin_read(collection.engine) as connection:
        assert not connection.execute(select(bursts)).all()
    store, resources = open_feature_store(collection, Lite0Encoder()), Resources()
    with begin_read(collection.engine) as connection:
        hash_of = {path: name for path, name in connection.execute(select(items.c.path, items.c.hash))}  # noqa: C416
    extract_missing_features(collection, store, list(hash_of.values()), resources)
    assign_bursts(collection, open_feature_store(collection, store.extractor))
    with begin_read(collection.engine) as connection:
        leaders = {name: leader for name, leader in connection.execute(select(bursts.c.hash, bursts.c.leader))}  # noqa: C416
    assert {hash_of[f"copy of {name}.jpg"]: hash_of[f"erase_{name}.jpg"] for name in ANIMALS}.items() <= leaders.items()
    assert len(set(leaders.values())) == len(ANIMALS)


@needs_words
def test_labels_are_suggested_before_the_first_tag(collection: Collection, animals: dict[int, str]) -> None:
    result = apply_model(collection, by="eve", threads=1)
    assert result.is_zero_shot
    assert result.inference.items == len(ANIMALS)
    best = first_labels(collection, result.model)
    assert sum(best.get(item) == name for item, name in animals.items()) >= 7
    with pytest.raises(InputError, match="nobody knows how often it is right"):
        apply_model(collection, by="eve", min_precision=0.9)
    assert apply_model(collection, by="eve", threads=1).inference.items == 0


@needs_words
def test_probabilities_follow_decisions_from_twenty_on(collection: Collection, animals: dict[int, str]) -> None:
    first = apply_model(collection, by="eve", threads=1)
    assert first.calibrated_on == 0
    wrong = [name for name in ANIMALS if name != "bee"]
    items = list(animals)
    tag_items(collection, items[:2], accept=["bee"], reject=wrong, by="eve")  # names mean nothing here
    assert apply_model(collection, by="eve", threads=1).model == first.model
    tag_items(collection, items[2:3], reject=wrong, by="eve")
    second = apply_model(collection, by="eve", threads=1)
    assert (second.calibrated_on, second.model) == (23, first.model + 1)
    assert apply_model(collection, by="eve", threads=1).model == second.model
    sigmoids = [load_model(collection, model).model.calibration_ for model in (first.model, second.model)]
    assert sigmoids[1].slope > 0
    assert sigmoids[1].label_offsets[ANIMALS.index("bee")] > 0 > sigmoids[1].label_offsets[ANIMALS.index("crab")]
    s = suggestions.c
    with begin_read(collection.engine) as connection:
        query = select(func.max(s.probability)).where(s.model_id == bindparam("model"), s.item_id.in_(items[3:]))
        best = [connection.scalar(query, {"model": model}) for model in (first.model, second.model)]
    assert best[1] < best[0]


@needs_words
def test_rejections_alone_calibrate_nothing(collection: Collection, animals: dict[int, str]) -> None:
    first = apply_model(collection, by="eve", threads=1)
    tag_items(collection, list(animals)[:3], reject=ANIMALS, by="eve")
    assert apply_model(collection, by="eve", threads=1).calibrated_on == 0
    assert first.is_zero_shot


def test_a_text_tower_places_names_and_synonyms_among_photos(
    collection: Collection, animals: dict[int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its weights are random, so that the order of labels is that of the cosines and says nothing else."""
    install_tower(tmp_path, monkeypatch)
    with begin_entry(collection.engine, "eve", "label", "a synonym") as change:
        label_store.add_synonyms(change, label_store.find_label(change.connection, "bee"), {"Biene": "de"})
    result = apply_model(collection, by="eve", floor=0.0, threads=1)
    loaded = load_model(collection, result.model)
    assert (result.is_zero_shot, loaded.extractor.name) == (True, "clip-base")
    assert list(loaded.model.vocabulary_) == ["bee", "Biene", *ANIMALS[1:]]
    assert loaded.labels[0] == loaded.labels[1]
    photo = (collection.folder / "erase_bee.jpg").read_bytes()
    _, row = loaded.extractor.transform_one(photo)
    texts = [f"a photo of a {name}." for name in loaded.model.vocabulary_]
    expected = TextEncoder("clip-base").encode(texts) @ row / np.linalg.norm(row)
    np.testing.assert_allclose(loaded.model.scores(row[np.newaxis])[0], expected, atol=1e-5)
    item = next(item for item, name in animals.items() if name == "bee")
    assert first_labels(collection, result.model)[item] == ["bee", "bee", *ANIMALS[1:]][int(expected.argmax())]
    monkeypatch.setattr(zero_shot, "NEAR", -np.inf)
    group = search_items(collection, "zzzqqq", len(ANIMALS)).groups[0]
    assert len(group.hits) == len(ANIMALS)


@needs_words
def test_names_that_change_renew_the_model(collection: Collection, animals: dict[int, str]) -> None:
    first = apply_model(collection, by="eve", threads=1)
    add_labels(collection, ["bird", "bee"], by="eve")
    second = apply_model(collection, by="eve", threads=1)
    assert (second.model, second.inference.items) == (first.model + 1, len(ANIMALS))
    with begin_entry(collection.engine, "eve", "label", "a synonym") as change:
        label_store.add_synonyms(change, label_store.find_label(change.connection, "bird"), {"Vogel": "de"})
    third = apply_model(collection, by="eve", threads=1)
    assert third.model == second.model + 1
    assert load_model_in_use(collection).annotator.facts["label_texts"][-1] == "bird, Vogel"
    assert apply_model(collection, by="eve", threads=1).model == third.model


@needs_words
def test_a_trained_model_replaces_it_and_free_words_go_on(collection: Collection, animals: dict[int, str]) -> None:
    first = apply_model(collection, by="eve", threads=1)
    with pytest.raises(UnknownLabelError):
        search_items(collection, "zzzqqq")
    tag(collection, {item: [name] for item, name in animals.items()})
    for number in range(60):
        path = Path(shutil.copy(get_photo_folder() / "fish/cat_fish1.jpg", collection.folder / f"{number}.jpg"))
        path.write_bytes(path.read_bytes() + number.to_bytes(2, "big"))
        tag(collection, {add_item(collection, path): [ANIMALS[number % 2]]})
    forecast = forecast_training(collection)
    assert (forecast.method, forecast.reason) == ("full", f"model {first.model} knows only the names of labels")
    trained = train_collection_model(collection, by="eve", features="colour", epochs=1, dim=4, threads=1)
    assert trained.is_in_use
    assert trained.figures["previous_metrics"] is None
    assert trained.model == load_model_in_use(collection).id != first.model
    group, alike = search_items(collection, "flying insect", 1).groups
    assert animals[group.hits[0].item] == "butterfly"
    assert group.reason == "what the network sees is near 'flying insect'"
    assert alike.reason == "looks like erase_butterfly.jpg, the first of these"
    reasons = [group.reason for group in search_items(collection, "butterfly", 1).groups]
    assert "what the network sees is near 'butterfly'" in reasons  # beside what the trained model finds
    dolphin = add_item(
        collection, Path(shutil.copy(get_photo_folder() / "animal/erase_dolphin.jpg", collection.folder))
    )
    assert not apply_model(collection, by="eve", threads=1).is_zero_shot
    assert search_items(collection, "sea mammal", 1).groups[0].hits[0].item == dolphin


@needs_words
def test_free_words_leave_out_items_of_excluded_labels(collection: Collection, animals: dict[int, str]) -> None:
    apply_model(collection, by="eve", threads=1)
    assert animals[search_items(collection, "flying insect").groups[0].hits[0].item] == "butterfly"
    tag(collection, {item: [name] for item, name in animals.items() if name == "butterfly"})
    assert search_items(collection, "flying insect").query.notes == ["'flying insect' is not a label"]
    (note,) = search_items(collection, "insects").query.notes
    assert note.startswith("there is no label 'insects' among the 8 labels")
    with pytest.raises(UnknownLabelError):
        search_items(collection, "flying insect -butterfly")


@needs_words
def test_unwanted_words_leave_out_every_item_that_is_nearer_to_them(
    collection: Collection, animals: dict[int, str]
) -> None:
    model = load_model(collection, apply_model(collection, by="eve", threads=1).model)
    embeddings = load_item_embeddings(model.path, model.model.dim)
    text, *unwanted = texts = ["wild animal", "insect", "sea bird"]
    points = embeddings.vectors / np.linalg.norm(embeddings.vectors, axis=1, keepdims=True)
    wanted, *others = (SentenceEncoder().encode(texts) @ points.T).tolist()
    nearer = [
        item
        for item, score, *rivals in zip(embeddings.items.tolist(), wanted, *others, strict=True)
        if max(rivals) > score and zero_shot.SLOPE * max(rivals) + zero_shot.OFFSET >= zero_shot.NEAR
    ]
    assert {"butterfly", "toucan"} <= {animals[item] for item in nearer} < {*ANIMALS}
    n = 3_000  # copies of each point, more than a search by an index would return
    ids = np.concatenate([embeddings.items, 1_000 + np.arange(n * len(animals))])
    rows = np.concatenate([np.arange(len(animals)), np.tile(np.arange(len(animals)), n)])
    save_item_embeddings(model.path, ItemEmbeddings(ids, embeddings.hashes[rows], embeddings.vectors[rows]))
    found = zero_shot.find_unwanted_items(collection, text, unwanted)
    assert found is not None
    assert len(found) == (n + 1) * len(nearer)
    assert found[: len(nearer)] == nearer


def test_labels_also_begin_at_their_names_where_items_are_points_among_words(
    collection: Collection, animals: dict[int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_tower(tmp_path, monkeypatch)
    names = load_model(collection, apply_model(collection, by="eve", threads=1).model).model
    for number in range(60):
        path = collection.folder / f"{number}.jpg"
        photo = get_photo_folder() / f"animal/erase_{ANIMALS[number % 2]}.jpg"
        path.write_bytes(photo.read_bytes() + number.to_bytes(2, "big"))
        tag(collection, {add_item(collection, path): [ANIMALS[number % 2]]})
    fits: list[FitResult] = []

    def record_fit(*arguments: Any) -> FitResult:
        fits.append(fit_model(*arguments))
        return fits[-1]

    monkeypatch.setattr(training, "fit_model", record_fit)
    result = train_collection_model(collection, by="eve", features="clip-base", epochs=1, dim=4, threads=1)
    assert [fit.model.dim for fit in fits] == [4, names.dim]
    best = max(fits, key=lambda fit: fit.curve.best_figure)
    trained = load_model(collection, result.model).model
    np.testing.assert_array_equal(trained.label_vectors, best.model.label_vectors)
    shift = fits[1].model.label_vectors - names.label_vectors[:2]
    assert 0 < np.linalg.norm(shift) < 0.5 * np.linalg.norm(names.label_vectors[:2])


def test_without_the_extra_the_first_model_has_to_learn(
    collection: Collection, animals: dict[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_encoders, "_PACKAGES", ("missing_package",))
    with begin_read(collection.engine) as connection:
        message = str(make_no_model_error(connection, collection.folder))
    with pytest.raises(InputError, match="has no model yet") as caught:
        apply_model(collection, by="eve")
    assert str(caught.value) == message
    with pytest.raises(UnknownLabelError):
        search_items(collection, "honey maker insect")
    with pytest.raises(InputError, match=r"needs a sentence encoder.*pip install 'wsabie\[words\]'"):
        apply_model(collection, by="eve", free_words=True)
    with begin_read(collection.engine) as connection:
        assert connection.execute(select(models.c.id)).all() == []


@needs_words
def test_labels_are_what_is_missing(collection: Collection) -> None:
    with pytest.raises(InputError, match="has no model yet"):
        apply_model(collection, by="eve")


@needs_words
def test_a_saved_encoder_needs_no_sentence_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, photo = ConseEncoder(), (get_photo_folder() / "animal/erase_bee.jpg").read_bytes()
    columns, point = encoder.transform_one(photo)
    assert (len(columns), encoder.n_features_) == (384, 384)
    assert np.linalg.norm(point) == pytest.approx(1)
    encoder.save(tmp_path / "encoder")
    monkeypatch.setattr("wsabie.features.extractors.onnx_encoders.SentenceEncoder", None)
    loaded = load_extractor(tmp_path / "encoder")
    assert loaded.fingerprint() == encoder.fingerprint()
    np.testing.assert_array_equal(loaded.transform_one(photo)[1], point)


def test_a_model_of_given_points_is_saved_whole(tmp_path: Path) -> None:
    vectors = np.eye(3, dtype=np.float32)
    Annotator(zero_shot.place_labels(vectors, ["a", "b", "c"])).save(tmp_path / "model")
    model = Annotator.load(tmp_path / "model").model
    np.testing.assert_array_equal(model.label_vectors, vectors)
    np.testing.assert_allclose(model.transform(vectors), vectors)
    assert model.calibration_.slope == zero_shot.SLOPE
