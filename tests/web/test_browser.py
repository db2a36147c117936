"""A user's way through the pages in a real browser: a new collection, learning, gallery, review, search.

What is done and looked at stands in `web/tests/flow.mjs`. Screenshots go to the folder that WSABIE_SCREENSHOTS names.
"""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image
from tests.server.conftest import run_service

import wsabie.samples
from benchmarks.first_use import SCREENSHOTS
from wsabie.features.encoders.text_encoders import is_sentence_encoder_installed
from wsabie.samples import get_sample_path
from wsabie.server.static_files import STATIC_FOLDER

PHOTOS = Path(wsabie.samples.__file__).parent / "photos"
WEB = Path(__file__).parents[2] / "web"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")

pytestmark = [
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="there is no Chromium; install Debian's package chromium"),
    pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node"),
    pytest.mark.skipif(not (STATIC_FOLDER / "index.html").exists(), reason="the pages are not built; run `make web`"),
    pytest.mark.skipif(not (WEB / "node_modules" / "playwright-core").exists(), reason="run `npm ci` in web/"),
]

needs_words = pytest.mark.skipif(
    not is_sentence_encoder_installed(), reason="the extra `words` is not installed; run `make setup`"
)


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """160 emoji in three folders, 110 of them with tags."""
    folder = tmp_path / "emoji"
    table = pq.read_table(get_sample_path("emoji"), columns=["image", "labels"]).slice(400, 160).to_pylist()
    for name in "abc":
        (folder / name).mkdir(parents=True)
    with (folder / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["file_name", "labels"])
        for number, row in enumerate(table):
            name = f"{'abc'[number % 3]}/{number:03d}.webp"
            (folder / name).write_bytes(row["image"])
            if number % 3:
                lines.writerow([name, ";".join(label.replace(";", " ") for label in row["labels"][:6])])
    subprocess.run([sys.executable, "-m", "wsabie", "collection", "init", folder], check=True, capture_output=True)
    return folder


def test_from_a_new_collection_to_reviewed_suggestions(collection: Path) -> None:
    shots = os.environ.get("WSABIE_SCREENSHOTS")
    with run_service(collection) as service:
        address = str(service.base_url).rstrip("/")
        words = ["node", "tests/flow.mjs", address, str(collection / "a" / "003.webp"), *([shots] if shots else [])]
        process = subprocess.run(
            words, cwd=WEB, env={**os.environ, "CHROMIUM": CHROMIUM}, capture_output=True, text=True, timeout=600
        )
    assert process.returncode == 0, process.stdout + process.stderr
    assert "every page: ok" in process.stdout


@pytest.fixture
def photos_with_bursts(tmp_path: Path) -> Path:
    """91 photos with tags, and 12 without: three bursts of four, whose first photo is a sample."""
    folder, samples = tmp_path / "photos", PHOTOS
    folder.mkdir()
    with (samples / "metadata.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    rows = rows[::2][:94]
    with (folder / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["file_name", *header[1:]], *([Path(row[0]).name, *row[1:]] for row in rows[3:])])
    for row in rows[3:]:
        shutil.copy(samples / row[0], folder / Path(row[0]).name)
    for burst, row in enumerate(rows[:3]):
        with Image.open(samples / row[0]) as photo:
            for shot in range(4):
                exif = Image.Exif()
                exif[0x0132] = exif.get_ifd(0x8769)[0x9003] = f"2026:05:0{burst + 1} 12:00:0{shot}"
                cropped = photo.convert("RGB").crop((shot, shot, photo.width, photo.height))
                cropped.save(folder / f"burst{burst}-{shot}.jpg", quality=90, exif=exif)
    for command in ("init", "train"):
        subprocess.run([sys.executable, "-m", "wsabie", "collection", command, folder], check=True, capture_output=True)
    return folder


def test_a_burst_is_one_card_and_each_of_its_pictures_can_be_changed_alone(photos_with_bursts: Path) -> None:
    shots = os.environ.get("WSABIE_SCREENSHOTS")
    with run_service(photos_with_bursts) as service:
        words = ["node", "tests/bursts.mjs", str(service.base_url).rstrip("/"), *([shots] if shots else [])]
        environment = {**os.environ, "CHROMIUM": CHROMIUM}
        process = subprocess.run(words, cwd=WEB, env=environment, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stdout + process.stderr


@needs_words
def test_suggestions_by_names_alone_are_marked_as_guesses(tmp_path: Path) -> None:
    names = ("cheetah", "gorilla", "penguin", "squirrel", "toucan")
    photos, shots = tmp_path / "photos", os.environ.get("WSABIE_SCREENSHOTS")
    photos.mkdir()
    for name in names:
        shutil.copy(PHOTOS / "animal" / f"erase_{name}.jpg", photos)
    (tmp_path / "labels.txt").write_text("\n".join(names), encoding="utf-8")
    for words in (("init", photos, "--labels", tmp_path / "labels.txt"), ("apply", photos)):
        subprocess.run([sys.executable, "-m", "wsabie", "collection", *words], check=True, capture_output=True)
    with run_service(photos) as service:
        address = str(service.base_url).rstrip("/")
        script = ["node", "tests/guesses.mjs", address, "toucan", *([shots] if shots else [])]
        environment = {**os.environ, "CHROMIUM": CHROMIUM}
        process = subprocess.run(script, cwd=WEB, env=environment, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stdout + process.stderr


def test_a_new_user_reviews_after_three_commands(tmp_path: Path) -> None:
    """Makes the pictures of the documentation too, of fewer photos."""
    command = [sys.executable, "-m", "benchmarks.first_use", "--pictures", "150", "--screenshots", tmp_path]
    settings = {**os.environ, "CHROMIUM": CHROMIUM}
    process = subprocess.run(command, cwd=WEB.parent, env=settings, capture_output=True, text=True, timeout=600)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "the first suggestions to review, in a browser: after" in process.stdout
    for name in SCREENSHOTS.values():
        with Image.open(tmp_path / f"{name}.webp") as shot:
            assert shot.width >= 1200
            assert len(shot.convert("RGB").getcolors(1 << 24) or ()) > 1000, f"{name} shows no pictures"
