"""Near-copies of photos, and shots of one moment, stay on one side of every hold-out."""

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.cli.conftest import Cli

from wsabie.io.data_sources import open_source
from wsabie.samples import get_photo_folder

QUICK = ("--threads", 1, "--dim", 20, "--epochs", 20)
N_PHOTOS, N_SHOTS, N_LABELS = 48, 3, 6
_EXIF, _TIME = 0x8769, 0x9003  # the part of a camera, and the time of the shot in it


def needs_network() -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("wsabie_lite0", reason="wsabie-lite0 is not installed; run `make setup`")


def write_copies(folder: Path, *, times: bool = False) -> Path:
    """Write photos, each in crops of another brightness, with one label by chance for all of them."""
    draw, lines = np.random.default_rng(0), ["file_name,labels"]
    sources = sorted(get_photo_folder().glob("*/*.jpg"))
    folder.mkdir()
    for photo in range(N_PHOTOS):
        label = f"label {draw.integers(N_LABELS)}"
        with Image.open(sources[photo * len(sources) // N_PHOTOS]) as image:
            image.thumbnail((256, 256))
            pixels = np.asarray(image.convert("RGB"), np.float32)
        for shot in range(N_SHOTS):
            cut = draw.integers(1, 8, 2)
            copy = Image.fromarray((pixels[cut[0] :, cut[1] :] * draw.uniform(0.9, 1)).astype(np.uint8))
            exif = copy.getexif()
            if times:
                time = datetime(2024, 5, 1) + timedelta(minutes=photo, seconds=2 * shot)
                exif.get_ifd(_EXIF)[_TIME] = f"{time:%Y:%m:%d %H:%M:%S}"
            copy.save(folder / f"{photo}-{shot}.jpg", quality=90, exif=exif)
            lines.append(f"{photo}-{shot}.jpg,{label}")
    (folder / "metadata.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder


def list_parted(parts: Path) -> set[str]:
    """Photos with shots on several sides of a split."""
    sides = [{name.partition("-")[0] for name in open_source(file).ids} for file in parts.glob("*.parquet")]
    assert len(sides) == 3
    return {photo for i, side in enumerate(sides) for other in sides[:i] for photo in side & other}


def test_chance_labels_of_near_copies_are_not_recognised_by_a_model_of_photos(cli: Cli, tmp_path: Path) -> None:
    needs_network()
    photos = write_copies(tmp_path / "photos")
    trained = cli(
        "train", photos, "--model", tmp_path / "m", "--features", "lite0", *QUICK, "--hold-out", 0.3, "--json"
    )
    assert trained.code == 0, trained.err
    assert trained.json["bursts"] == pytest.approx(N_PHOTOS, abs=1)  # a scene or two are in several photos
    assert f"{trained.json['bursts']} bursts of near-copies" in trained.err.replace("\n", " ")
    assert trained.json["validation_map"] < 0.6  # with near-copies on both sides it is .9
    assert cli("info", tmp_path / "m", "--json").json["bursts"] == trained.json["bursts"]


def test_rows_of_photos_are_split_by_burst(cli: Cli, tmp_path: Path) -> None:
    needs_network()
    photos, rows = write_copies(tmp_path / "photos"), tmp_path / "rows.parquet"
    assert cli("features", "images", photos, "--features", "lite0", "--out", rows, "--threads", 1).code == 0
    for number, option in enumerate([(), ("--by", "burst"), ("--by", "row")]):
        result = cli("split", rows, "--out", tmp_path / f"{number}", *option, "--valid", 0.2, "--test", 0.2)
        assert result.code == 0, result.err
        assert ("bursts of near-copies" in result.err.replace("\n", " ")) == (option != ("--by", "row"))
        n_parted = len(list_parted(tmp_path / f"{number}"))
        assert n_parted > 15 if option == ("--by", "row") else n_parted <= 1  # a copy may have a low cosine
    compared = cli("compare", rows, "--models", "nearest", "--threads", 1, "--json")
    assert compared.code == 0, compared.err
    assert "bursts of near-copies" in compared.err.replace("\n", " ")
    assert compared.json["models"][0]["metrics"]["p@1"] < 0.5  # by chance .17, with near-copies in the training .9
    tuned = cli("tune", rows, "--kind", "one-vs-rest", "--out", tmp_path / "tuned", "--trials", 2, "--threads", 1)
    assert tuned.code == 0, tuned.err
    assert "bursts of near-copies" in tuned.err.replace("\n", " ")
    again = cli("split", tmp_path / "1" / "train.parquet", "--by", "burst", "--out", tmp_path / "again")
    assert again.code == 0, again.err  # the parts still know their nearness
    components = tmp_path / "components.parquet"
    assert cli("features", "kpca", rows, "--dim", 16, "--out", components, "--threads", 1).code == 0
    refused = cli("split", components, "--by", "burst", "--out", tmp_path / "refused")
    assert refused.code == 1
    assert "its features show no near-copies" in refused.err.replace("\n", " ")


def test_compare_holds_out_photos_of_a_folder_by_burst(cli: Cli, tmp_path: Path) -> None:
    needs_network()
    photos = write_copies(tmp_path / "photos")
    (photos / "bad.jpg").write_bytes(b"no picture")
    table = photos / "metadata.csv"
    table.write_text(f"{table.read_text(encoding='utf-8')}\nbad.jpg,label 1", encoding="utf-8")
    lite0 = ("--features", "lite0", "--models", "nearest", "--threads", 1, "--json")
    compared = cli("compare", photos, *lite0)
    assert compared.code == 0, compared.err
    message = compared.err.replace("\n", " ")
    assert "bursts of near-copies" in message
    assert "1 skipped" in message
    assert compared.json["models"][0]["metrics"]["p@1"] < 0.5  # by chance .17, with near-copies in the training .9
    by_row = cli("compare", photos, *lite0, "--by", "row")
    assert by_row.code == 0, by_row.err
    assert "bursts of near-copies" not in by_row.err.replace("\n", " ")
    assert by_row.json["models"][0]["metrics"]["p@1"] > 0.7


def test_capture_times_join_shots_whose_features_show_no_near_copies(cli: Cli, tmp_path: Path) -> None:
    photos, rows = write_copies(tmp_path / "photos", times=True), tmp_path / "rows.parquet"
    colour = ("--features", "colour", "--threads", 1)
    assert cli("features", "images", photos, *colour, "--out", rows).code == 0
    assert open_source(rows).times[0] == "2024-05-01T00:00:00"
    assert cli("split", rows, "--out", tmp_path / "parts", "--by", "burst", "--valid", 0.2, "--test", 0.2).code == 0
    assert len(list_parted(tmp_path / "parts")) <= 1  # the colours of a copy may differ much
    trained = cli("train", photos, "--model", tmp_path / "m", "--features", "colour", *QUICK, "--json")
    assert trained.code == 0, trained.err
    assert trained.json["bursts"] == N_PHOTOS
    compared = cli("compare", photos, *colour, "--models", "nearest", "--json")
    assert compared.code == 0, compared.err
    assert f"{N_PHOTOS} bursts of near-copies" in compared.err.replace("\n", " ")


def test_photos_without_times_and_such_features_are_held_out_one_by_one(cli: Cli, tmp_path: Path) -> None:
    photos, rows = write_copies(tmp_path / "photos"), tmp_path / "rows.parquet"
    assert cli("features", "images", photos, "--features", "colour", "--out", rows, "--threads", 1).code == 0
    refused = cli("split", rows, "--by", "burst", "--out", tmp_path / "parts")
    assert refused.code == 1
    assert "no row has a time of day" in refused.err.replace("\n", " ")
    trained = cli("train", photos, "--model", tmp_path / "m", "--features", "colour", *QUICK, "--json")
    assert trained.code == 0, trained.err
    assert "bursts" not in trained.json


def test_a_fusion_holds_out_by_burst(cli: Cli, tmp_path: Path) -> None:
    photos = write_copies(tmp_path / "photos", times=True)
    trained = cli(
        "train", photos, "--model", tmp_path / "m", "--kind", "auto", "--features", "colour", "--threads", 1, "--json"
    )
    assert trained.code == 0, trained.err
    assert trained.json["bursts"] == N_PHOTOS
    best = max(trial["ndcg"] for trial in trained.json["trials"])
    assert best < 0.75  # with other shots of its moments among the rows it is above .9
