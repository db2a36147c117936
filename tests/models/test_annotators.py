"""The front door: `load(...).annotate(...)` takes files, folders, pictures, texts and rows; `predict` names them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import wsabie
from wsabie.models.annotators import compute_probabilities, rank_above

TEXTS = {
    "sea": "waves and salt water with ships and fish",
    "wood": "trees and leaves and moss with deer and birds",
    "town": "streets and houses and shops with trams",
}


@pytest.fixture(scope="module")
def of_pictures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A model of the bundled pictures, and a folder with some of these."""
    folder = tmp_path_factory.mktemp("pictures")
    emoji = wsabie.open_source(wsabie.get_sample_path("emoji"))
    items = [item for item in emoji if {"fruit", "animal"} & set(item.labels)][:60]
    words = wsabie.VisualWords(n_words=100, size=96).fit(wsabie.ItemList(emoji.path, items))
    rows = words.transform(wsabie.ItemList(emoji.path, items))
    model = wsabie.Wsabie(dim=8, epochs=3, threads=1).fit(
        rows.X, rows.Y, label_names=rows.label_names, validation=(rows.X, rows.Y)
    )
    wsabie.Annotator(model, words).save(folder / "model")
    (folder / "photos").mkdir()
    for item in items[:3]:
        (folder / "photos" / f"{item.id}.webp").write_bytes(item.content)
    return wsabie.load(folder / "model"), folder / "photos"


@pytest.fixture(scope="module")
def of_texts() -> wsabie.Annotator:
    items = [wsabie.Item(f"{label} {i}", text.encode(), (label,)) for i in range(20) for label, text in TEXTS.items()]
    source = wsabie.ItemList(Path("texts"), items, "documents")
    bag = wsabie.create_extractor("words", modality="documents").fit(source)
    rows = bag.transform(source)
    return wsabie.Annotator(wsabie.Wsabie(dim=4, threads=1).fit(rows.X, rows.Y, label_names=rows.label_names), bag)


def test_folders_files_bytes_and_pictures_get_the_same_labels(of_pictures: tuple[Any, Path]) -> None:
    annotator, folder = of_pictures
    files = sorted(folder.iterdir())
    by_id = annotator.annotate(folder, k=5)
    assert list(by_id) == [file.name for file in files]
    expected = list(by_id.values())
    assert all(len(labels) == 5 for labels in expected)
    assert annotator.annotate(str(folder), k=5) == by_id
    assert annotator.annotate(files, k=5) == expected
    assert annotator.annotate(list(map(str, files)), k=5) == expected
    assert annotator.annotate([file.read_bytes() for file in files], k=5) == expected
    assert list(annotator.annotate(files[0], k=5).values()) == expected[:1]
    pictures = [Image.open(file) for file in files]
    assert annotator.annotate(pictures, k=5) == expected
    assert annotator.predict(files).tolist() == [labels[0][0] for labels in expected]
    assert annotator.predict(files, k=2).tolist() == [[name for name, _ in labels[:2]] for labels in expected]
    probabilities = annotator.predict_proba(files)
    assert probabilities.shape == (3, len(annotator.model.vocabulary_))
    assert (probabilities.argmax(axis=1) >= 0).all()


def test_exif_rotated_photo_equals_its_file(of_pictures: tuple[Any, Path], tmp_path: Path) -> None:
    annotator, folder = of_pictures
    picture = Image.open(sorted(folder.iterdir())[0]).convert("RGB").resize((96, 64))
    exif = Image.Exif()
    exif[0x0112] = 6
    picture.save(tmp_path / "turned.png", exif=exif)
    by_file = annotator.annotate([tmp_path / "turned.png"])
    assert annotator.annotate([Image.open(tmp_path / "turned.png")]) == by_file
    assert annotator.annotate([picture]) != by_file


def test_unreadable_files_of_a_folder_are_counted(of_pictures: tuple[Any, Path], tmp_path: Path) -> None:
    annotator, folder = of_pictures
    file = sorted(folder.iterdir())[0]
    (tmp_path / "good.webp").write_bytes(file.read_bytes())
    (tmp_path / "bad.webp").write_bytes(file.read_bytes()[:40])
    with pytest.warns(UserWarning, match=r"1 skipped: .*; annotate\(\.\.\., rejects=wsabie\.Rejects\(\)\) lists them"):
        labels = annotator.annotate(tmp_path)
    assert list(labels) == ["good.webp"]
    rejects = wsabie.Rejects()
    assert annotator.annotate(tmp_path, rejects=rejects) == labels
    assert rejects.listed[0][0].endswith("bad.webp")
    (tmp_path / "good.webp").unlink()
    with pytest.raises(wsabie.InputError, match="nothing to annotate"):
        annotator.annotate(tmp_path)
    with pytest.raises(wsabie.InputError, match=r"bad\.webp"):
        annotator.annotate([tmp_path / "bad.webp"])


def test_texts_are_annotated_and_paths_are_no_texts(of_texts: wsabie.Annotator, tmp_path: Path) -> None:
    texts = ["fish and salt water", "houses with shops"]
    assert of_texts.predict(texts).tolist() == ["sea", "town"]
    assert [labels[0][0] for labels in of_texts.annotate(texts, k=1)] == ["sea", "town"]
    (tmp_path / "note.txt").write_text("moss and deer")
    (by_file,) = of_texts.annotate(tmp_path / "note.txt", k=1).values()
    assert by_file[0][0] == "wood"
    with pytest.raises(wsabie.InputError, match="fish and salt water"):
        of_texts.annotate("fish and salt water")


def test_rows_are_annotated_as_by_the_model(of_texts: wsabie.Annotator) -> None:
    assert of_texts.extractor is not None
    source = wsabie.ItemList(Path("texts"), [wsabie.Item("a", TEXTS["sea"].encode(), ())], "documents")
    rows = of_texts.extractor.transform(source)
    assert of_texts.annotate(rows.X, k=2) == of_texts.model.annotate(rows.X, k=2)
    assert of_texts.annotate(rows, k=2) == {"a": of_texts.model.annotate(rows.X, k=2)[0]}
    by_rows = wsabie.Annotator(wsabie.Wsabie(dim=2, threads=1).fit(np.eye(2), ["a", "b"]))
    assert by_rows.annotate([[1.0, 0.0]], k=1) == by_rows.annotate(np.eye(2)[:1], k=1)


def test_other_modalities_are_refused_in_one_sentence(
    of_texts: wsabie.Annotator, of_pictures: tuple[Any, Path]
) -> None:
    by_rows = wsabie.Annotator(wsabie.Wsabie(dim=2, threads=1).fit(np.eye(2), ["a", "b"]))
    with pytest.raises(wsabie.InputError, match="trained on rows of features, and the list holds str; give rows"):
        by_rows.annotate(["a text"])
    with pytest.raises(wsabie.InputError, match="item 1 of the list is int"):
        of_texts.annotate(["a text", 7])  # type: ignore[list-item]
    for lone in ("a text", Path("note.txt")):
        with pytest.raises(wsabie.InputError, match="that is one item, or the name of one; give a list"):
            of_texts.predict(lone)  # type: ignore[arg-type]
    with pytest.raises(wsabie.InputError, match="the list is empty; give items or rows"):
        of_texts.annotate([])
    assert of_texts.annotate(iter(["moss and deer"]), k=1)[0][0][0] == "wood"
    with pytest.raises(wsabie.InputError, match="one of documents"):
        of_texts.annotate(wsabie.ItemList(of_pictures[1], [], "pictures"))


def test_predict_returns_names_or_fitted_numbers() -> None:
    X = np.eye(3, dtype=np.float32)
    model = wsabie.Wsabie(dim=8, epochs=30, threads=1).fit(X, ["red", "green", "blue"])
    assert model.predict(X).tolist() == ["red", "green", "blue"]
    assert model.predict(X, k=3).shape == (3, 3)
    assert model.predict(X, k=4)[:, 3].tolist() == [None] * 3
    numbered = wsabie.Popularity().fit(X, [0, 1, 1])
    assert numbered.predict(X).tolist() == [1, 1, 1]
    assert numbered.predict(X, k=3).tolist() == [[1, 0, -1]] * 3


@pytest.mark.parametrize("options", [{}, {"candidates": [1, 2, 7]}])
def test_probabilities_hang_on_all_labels_however_few_are_ranked(options: dict[str, Any]) -> None:
    X = np.eye(8, dtype=np.float32)
    model = wsabie.Wsabie(dim=8, epochs=30, threads=1).fit(X, list("abcdefgh"), validation=(X, list("abcdefgh")))
    model.calibration_ = replace(model.calibration_, competition=0.7)
    every = model.predict_proba(X)
    for k in (1, 2, 3):
        labels, scores = model.rank(X, k, **options)
        probabilities = compute_probabilities(model, X, labels, scores, **options)
        np.testing.assert_allclose(probabilities, np.take_along_axis(every, labels, axis=1), rtol=1e-5)
        chosen, _, above = rank_above(model, X, k, lambda columns: np.full(columns.shape, 0.3), **options)
        np.testing.assert_array_equal(chosen, np.where(probabilities >= 0.3, labels, -1)[:, : chosen.shape[1]])
        np.testing.assert_allclose(above, np.where(chosen < 0, 0, probabilities[:, : chosen.shape[1]]), rtol=1e-5)
    assert (every.max(axis=1) > 0.3).any()
