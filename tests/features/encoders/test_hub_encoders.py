"""Encoders of the hub: pixels and embeddings of the reference, downloads from a stand-in of the hub, refusals.

`tiny/` has encoders with random weights, and results of `transformers` (`scripts/build_tiny_encoders.py`).
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from wsabie.core.errors import InputError
from wsabie.features.encoders.encoder_list import HUB_ENCODERS, ImageEncoder
from wsabie.features.encoders.encoder_speed import measure_speed
from wsabie.features.encoders.encoder_store import (
    find_encoder_folder,
    install_encoder,
    is_encoder_installed,
    is_tower_installed,
)
from wsabie.features.encoders.text_encoders import TextEncoder
from wsabie.features.extractor_registry import create_extractor, load_extractor
from wsabie.features.extractors.onnx_encoders import Preprocessing
from wsabie.features.images.image_decoder import decode_image
from wsabie.io.records import Item, ItemList
from wsabie.storage.atomic_files import lock_folder

pytest.importorskip("onnxruntime")
TINY = Path(__file__).parent / "tiny"
PICTURES = TINY / "pictures"
NAMES = ["clip-base", "dinov2-small", "siglip2-base"]


@pytest.fixture(autouse=True)
def encoder_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of encoders."""
    monkeypatch.setenv("WSABIE_ENCODERS", str(tmp_path / "encoders"))
    return tmp_path / "encoders"


def install(name: str, *, words: bool = False) -> dict[str, str]:
    return install_encoder(HUB_ENCODERS[name], TINY / name, words=words)


def list_pictures() -> ItemList:
    return ItemList(PICTURES, [Item(name, PICTURES / name, ()) for name in ("90x61.png", "47x95.png")])


@pytest.mark.parametrize("name", NAMES)
def test_pixels_are_those_of_the_reference_processor(name: str) -> None:
    settings = Preprocessing(
        **{
            key: value
            for key, value in json.loads((TINY / name / "preprocessor_config.json").read_text()).items()
            if key in Preprocessing.__dataclass_fields__
        }
    )
    pictures = [decode_image(picture.content, size=96) for picture in list_pictures()]
    mean, deviation = settings.moments()
    values = [(settings.scale(pixels).astype(np.float32) / 255 - mean) / deviation for pixels in pictures]
    expected = np.load(TINY / name / "reference.npz")["pixels"]
    np.testing.assert_allclose(np.stack(values).transpose(0, 3, 1, 2), expected, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_embeddings_are_those_of_the_reference_model(name: str, tmp_path: Path) -> None:
    install(name)
    extractor = create_extractor(name).fit(list_pictures())
    rows = extractor.transform(list_pictures()).X
    expected = np.load(TINY / name / "reference.npz")["embeddings"]
    cosines = (rows * expected).sum(axis=1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > 0.9999
    np.testing.assert_allclose(rows, expected, atol=1e-4)
    extractor.save(tmp_path / "saved")
    shutil.rmtree(find_encoder_folder(HUB_ENCODERS[name]))
    loaded = load_extractor(tmp_path / "saved")
    assert (loaded.name, loaded.fingerprint()) == (name, extractor.fingerprint())
    np.testing.assert_array_equal(loaded.transform(list_pictures()).X, rows)


@pytest.mark.parametrize("name", ["clip-base", "siglip2-base"])
def test_tokens_and_text_embeddings_are_those_of_the_reference(name: str) -> None:
    install(name, words=True)
    reference, encoder = np.load(TINY / name / "text_reference.npz"), TextEncoder(name)
    tokens = np.split(reference["tokens"], reference["lengths"].cumsum()[:-1])
    for text, expected_ids in zip(reference["texts"].tolist(), tokens, strict=True):
        assert encoder.tokenize(text) == expected_ids.tolist(), text
    points = encoder.encode(reference["texts"].tolist())
    expected = reference["embeddings"] / np.linalg.norm(reference["embeddings"], axis=1, keepdims=True)
    assert (points * expected).sum(axis=1).min() > 0.9999
    np.testing.assert_allclose(points, expected, atol=1e-4)
    pictures = create_extractor(name).transform(list_pictures()).X
    assert points.shape[1] == pictures.shape[1]


def test_a_text_tower_is_installed_when_told_to(encoder_folder: Path) -> None:
    install("clip-base")
    assert not is_tower_installed(HUB_ENCODERS["clip-base"])
    with pytest.raises(
        InputError, match=r"text tower of clip-base is not installed; run: .*get\('clip-base', words=True"
    ):
        TextEncoder("clip-base")
    with pytest.raises(InputError, match="dinov2-small reads no words; choose from clip-base, siglip2-base"):
        install("dinov2-small", words=True)
    install("clip-base", words=True)
    assert is_tower_installed(HUB_ENCODERS["clip-base"])
    (encoder_folder / "clip-base/tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="has changed since its download"):
        TextEncoder("clip-base")


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    shutil.copytree(TINY / "clip-base", tmp_path / "other")
    (tmp_path / "other/tokenizer.json").write_text("{}")
    install_encoder(HUB_ENCODERS["clip-base"], tmp_path / "other", words=True)
    with pytest.raises(InputError, match=r"tokenizer\.json of clip-base is no tokenizer"):
        TextEncoder("clip-base")


def test_options_override_the_preprocessing_of_the_encoder() -> None:
    install("siglip2-base")
    row = create_extractor("siglip2-base").transform(list_pictures()).X
    clip = create_extractor("siglip2-base", normalise="clip").transform(list_pictures()).X
    tokens = create_extractor("siglip2-base", output="last_hidden_state").transform(list_pictures()).X
    part = create_extractor("siglip2-base", crop=0.5).transform(list_pictures()).X
    assert all(not np.allclose(row, other, atol=1e-3) for other in (clip, tokens, part))
    symmetric = create_extractor("siglip2-base", normalise="symmetric").transform(list_pictures()).X
    np.testing.assert_array_equal(symmetric, row)


def test_encoders_stand_beside_each_other_and_beside_colours() -> None:
    for name in NAMES:
        install(name)
    extractor = create_extractor("siglip2-base,colour,clip-base")
    assert extractor.name == "siglip2-base,colour,clip-base"
    assert extractor.transform(list_pictures()).X.shape == (2, 8 + 9072 + 6)
    with pytest.raises(InputError, match="names clip-base twice"):
        create_extractor("clip-base,clip-base")


def test_a_long_picture_is_cut_before_it_is_scaled() -> None:
    settings = Preprocessing(size=224, crop_size=224, do_center_crop=True)
    pixels = np.zeros((1, 4000, 3), np.uint8)
    pixels[:, 2000:] = 255
    scaled = settings.scale(pixels)
    assert scaled.shape == (224, 224, 3)
    assert (scaled[:, 0].max(), scaled[:, -1].min()) == (0, 255)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Preprocessing({"height": 32, "width": 16}), "one that takes squares"),
        (Preprocessing(size=16, crop_size=32, do_center_crop=True), "scales pictures to 16 and takes 32"),
        (Preprocessing(size=5000), "scales pictures to 5000"),
    ],
)
def test_settings_that_no_encoder_has_are_refused(settings: Preprocessing, message: str) -> None:
    with pytest.raises(InputError, match=message):
        settings.check()


def test_an_encoder_that_is_missing_or_changed_says_what_to_run(encoder_folder: Path) -> None:
    with pytest.raises(InputError, match=r"clip-base is not installed; run: `encoders.get\('clip-base'"):
        create_extractor("clip-base")
    install("clip-base")
    assert is_encoder_installed(HUB_ENCODERS["clip-base"])
    network = encoder_folder / "clip-base/onnx/vision_model.onnx"
    network.write_bytes(network.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"has changed since its download; run: `encoders.get\('clip-base'"):
        create_extractor("clip-base").prepare()
    assert install("clip-base")["onnx/vision_model.onnx"] == sha256(network.read_bytes()).hexdigest()
    create_extractor("clip-base").prepare()
    assert measure_speed("clip-base", 2) > 0


def test_a_file_other_than_at_the_first_download_is_refused(encoder_folder: Path, tmp_path: Path) -> None:
    first = install("clip-base")
    shutil.copytree(TINY / "clip-base", tmp_path / "other")
    with (tmp_path / "other/preprocessor_config.json").open("a") as file:
        file.write("\n")
    shutil.rmtree(encoder_folder / "clip-base")
    with pytest.raises(InputError, match=r"not the file of the first download.*remove .*clip-base\.json"):
        install_encoder(HUB_ENCODERS["clip-base"], tmp_path / "other")
    assert not is_encoder_installed(HUB_ENCODERS["clip-base"])
    assert install("clip-base") == first


def test_two_downloads_of_an_encoder_do_not_mix(encoder_folder: Path) -> None:
    (encoder_folder / "clip-base").mkdir(parents=True)
    with lock_folder(encoder_folder / "clip-base"), pytest.raises(InputError, match="another command is changing"):
        install("clip-base")
    assert install("clip-base")


def test_a_folder_that_lacks_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*vision_model\.onnx"):
        install_encoder(HUB_ENCODERS["clip-base"], tmp_path)


def list_files(encoder: ImageEncoder) -> list[str]:
    return [file for file in (*encoder.files, *(encoder.tower.files if encoder.tower else ()))
            if (TINY / encoder.name / file).is_file()]  # fmt: skip


class Hub(ThreadingHTTPServer):
    """Stand-in of the hub on the loopback interface; it serves the tiny encoders by the names of their repositories."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HubHandler)
        self.ranges: list[str | None] = []
        self.files = {
            f"/{HUB_ENCODERS[name].repository}/resolve/main/{file}": (TINY / name / file).read_bytes()
            for name in NAMES
            for file in list_files(HUB_ENCODERS[name])
        }


class HubHandler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.send_file(is_body_sent=False)

    def do_GET(self) -> None:
        self.server.ranges.append(self.headers["Range"])
        self.send_file(is_body_sent=True)

    def send_file(self, *, is_body_sent: bool) -> None:
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        first = int((self.headers["Range"] or "bytes=0-")[6:].split("-")[0])
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(content) - first))
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.send_header("ETag", f'"{sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.end_headers()
        if is_body_sent:
            self.wfile.write(content[first:])

    def log_message(self, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def hub() -> Iterator[Hub]:
    pytest.importorskip("huggingface_hub", reason="the extra `encoders` is not installed; run `make setup`")
    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def run_command(folder: Path, endpoint: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `wsabie encoders get` in a process of its own: the client of the hub reads its settings at its import."""
    names = {"HF_ENDPOINT": endpoint, "WSABIE_ENCODERS": str(folder), "HF_HUB_DISABLE_TELEMETRY": "1"}
    paths = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    command = [sys.executable, "-m", "wsabie", "encoders", "get", *arguments]
    return subprocess.run(command, env={**paths, **names}, capture_output=True, text=True, check=False)


def test_download_shows_the_licence_and_resumes(hub: Hub, encoder_folder: Path) -> None:
    endpoint = f"http://127.0.0.1:{hub.server_port}"
    network = TINY / "dinov2-small/onnx/model.onnx"
    digest = sha256(network.read_bytes()).hexdigest()
    part = encoder_folder / f"dinov2-small/onnx/model.onnx.{digest}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(network.read_bytes()[:10_000])
    first = run_command(encoder_folder, endpoint, "dinov2-small", "--json")
    assert first.returncode == 0, first.stderr
    assert "licence Apache-2.0" in " ".join(first.stderr.split())
    assert json.loads(first.stdout)["files"]["onnx/model.onnx"] == digest
    assert hub.ranges == ["bytes=10000-", None]
    again = run_command(encoder_folder, endpoint, "dinov2-small")
    assert (again.returncode, len(hub.ranges)) == (0, 2)
    assert create_extractor("dinov2-small").transform(list_pictures()).X.shape == (2, 8)


def test_a_download_that_is_damaged_or_changed_is_refused(hub: Hub, encoder_folder: Path) -> None:
    endpoint = f"http://127.0.0.1:{hub.server_port}"
    assert run_command(encoder_folder, endpoint, "clip-base").returncode == 0
    shutil.rmtree(encoder_folder / "clip-base")
    path = next(path for path in hub.files if "clip" in path and path.endswith(".onnx"))
    hub.files[path] += b"\0"
    refused = run_command(encoder_folder, endpoint, "clip-base")
    assert refused.returncode == 1
    assert "is not the file of the first download" in " ".join(refused.stderr.split())
    assert not list(encoder_folder.rglob("*.part"))


def test_without_a_network_the_command_says_what_to_do(encoder_folder: Path) -> None:
    pytest.importorskip("huggingface_hub", reason="the extra `encoders` is not installed; run `make setup`")
    refused = run_command(encoder_folder, "http://127.0.0.1:9", "siglip2-base")
    message = " ".join(refused.stderr.split())
    assert refused.returncode == 1
    assert "cannot be downloaded" in message
    assert "here: wsabie encoders get siglip2-base --from FOLDER" in message
    copied = run_command(encoder_folder, "http://127.0.0.1:9", "siglip2-base", "--from", str(TINY / "siglip2-base"))
    assert copied.returncode == 0, copied.stderr


def test_text_tower_is_downloaded_or_named_where_there_is_no_network(hub: Hub, encoder_folder: Path) -> None:
    tower = HUB_ENCODERS["clip-base"].tower
    assert tower is not None
    refused = run_command(encoder_folder, "http://127.0.0.1:9", "clip-base", "--words")
    message = " ".join(refused.stderr.split())
    assert all(file in message for file in tower.files)
    assert "here: wsabie encoders get clip-base --words --from FOLDER" in message
    got = run_command(encoder_folder, f"http://127.0.0.1:{hub.server_port}", "clip-base", "--words", "--json")
    assert got.returncode == 0, got.stderr
    assert set(tower.files) <= set(json.loads(got.stdout)["files"])


def test_a_missing_client_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"pip install 'wsabie\[encoders\]'"):
        install_encoder(HUB_ENCODERS["clip-base"])
