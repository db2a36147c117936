"""Names and paths that --data accepts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from papers import synthetic_images
from papers.claims import OrderingClaim
from papers.datasets import open_data
from papers.record import RecordEntry
from papers.record_run import run_record
from papers.records.record_index import find_record
from wsabie.core.errors import InputError
from wsabie.storage.rejects import Rejects


def test_a_generated_task_has_families(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    size = synthetic_images.ImageTaskSize(400, 60, 40)
    monkeypatch.setitem(synthetic_images.SIZES, "tiny", size)
    data = open_data("visterm:tiny")
    assert (len(data.train), len(data.valid), len(data.test)) == (360, 40, 60)
    assert data.train.X.shape[1] == synthetic_images.N_WORDS
    parents = synthetic_images.build_truth(size).parents
    assert data.train.label_names[7] == f"family {parents[7]} label 7"
    assert data.similar is not None
    similar = data.similar(data.train.label_names)
    alike = np.stack([similar.max_similarity([y]) for y in range(40)])
    assert np.array_equal(alike > 0, parents[:, None] == parents)
    monkeypatch.delattr(synthetic_images, "generate_task")  # the second time it comes from the cache
    assert (open_data("visterm:tiny").train.X != data.train.X).nnz == 0


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wsabie").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(synthetic_images.SIZES, "tiny", synthetic_images.ImageTaskSize(50, 10, 8))
    assert len(open_data("visterm:tiny").test) == 10


@pytest.mark.parametrize("name", ["visterm:", "visterm:S:12", "visterm:S:many", "visterm:S:99999999999"])
def test_bad_tasks(name: str) -> None:
    with pytest.raises(InputError, match=r"no visual-word task|not a number of training rows"):
        open_data(name)


def test_a_collection_is_split(tmp_path: Path) -> None:
    file = tmp_path / "rows.txt"
    file.write_text("50 4 2\n" + "".join(f"{i % 2} {i % 4}:{1 + i}\n" for i in range(50)))
    data = open_data(str(file))
    assert (data.name, len(data.train), len(data.valid), len(data.test)) == ("rows.txt", 40, 5, 5)


def test_a_missing_path() -> None:
    with pytest.raises(InputError, match="no-such-file"):
        open_data("no-such-file")


def test_published_rows_of_mulan_stay_the_test(data_dir: Path) -> None:
    data = open_data(str(data_dir / "corel5k_mulan"))
    assert (data.name, len(data.train), len(data.valid), len(data.test)) == ("corel5k", 4050, 450, 500)
    assert data.published_split


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A folder of 40 pictures, red and green by folder, with noise."""
    rng = np.random.default_rng(0)
    for i in range(40):
        pixels = rng.integers(0, 120, (32, 32, 3), np.uint8)
        pixels[..., i % 2] += 120
        folder = tmp_path / "photos" / ("red", "green")[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / f"{i}.png")
    return tmp_path / "photos"


def test_pictures_are_extracted_again_on_the_same_sides(pictures: Path) -> None:
    (pictures / "red" / "broken.png").write_bytes(b"no picture")
    rejects = Rejects()
    data = open_data(str(pictures), rejects=rejects)
    assert data.extract is not None
    colour = data.extract("colour")
    for original, colour_part in ((data.train, colour.train), (data.valid, colour.valid), (data.test, colour.test)):
        assert original.ids == colour_part.ids
        assert (original.Y != colour_part.Y).nnz == 0
    assert colour.train.extractor_fingerprint != data.train.extractor_fingerprint
    assert len(rejects) == 1


def test_features_are_compared_on_the_same_pictures(pictures: Path) -> None:
    entries = tuple(RecordEntry(f"k-NN, {name}", "nearest", {"k": 1}) for name in ("visterms", "colour"))
    claims = (OrderingClaim("k-NN, colour > k-NN, visterms in p@1"),)
    features = replace(find_record("slides-features"), entries=entries, claims=claims)
    run = run_record(features, open_data(str(pictures)), threads=1)
    assert [finding.row for finding in run.findings.rows] == ["k-NN, visterms", "k-NN, colour"]
    assert run.findings["k-NN, colour"].figures["p@1"] == 1
    assert run.verdicts[0].difference is not None
    density, *features_told = run.findings.notes
    assert density.startswith("32 training rows for 2 labels")
    assert [note.partition(":")[0] for note in features_told] == ["visterms", "colour"]


def test_kernel_components_are_compared_on_the_same_pictures(pictures: Path, tmp_path: Path) -> None:
    entries = (RecordEntry("k-NN", "nearest", {"k": 1}), RecordEntry("k-NN, Ensemble+KPCA", "nearest", {"k": 1}))
    summary = replace(find_record("parts-table1"), entries=entries, claims=())
    findings = run_record(summary, open_data(str(pictures)), threads=1).findings
    assert [finding.row for finding in findings.rows] == ["k-NN", "k-NN, Ensemble+KPCA"]
    assert findings["k-NN, Ensemble+KPCA"].figures["p@1"] == 1
    assert findings.notes[1] == "Ensemble+KPCA: 31 kernel components of visual-words,colour,textons,hog."
    (tmp_path / "rows.txt").write_text("50 4 2\n" + "".join(f"{i % 2} {i % 4}:{1 + i}\n" for i in range(50)))
    findings = run_record(summary, open_data(str(tmp_path / "rows.txt")), threads=1).findings
    assert findings.missing == {"k-NN, Ensemble+KPCA": "the rows are no pictures"}


def test_rows_that_are_no_pictures_have_no_features_to_compare(tmp_path: Path) -> None:
    file = tmp_path / "rows.txt"
    file.write_text("50 4 2\n" + "".join(f"{i % 2} {i % 4}:{1 + i}\n" for i in range(50)))
    with pytest.raises(InputError, match=r"cannot be compared on rows.txt, whose rows are not pictures"):
        run_record(find_record("slides-features"), open_data(str(file)), threads=1)
