"""Tokens, roles and hostile names in the pages, in a real browser: `web/tests/token.mjs`, `web/tests/hostile.mjs`."""

import os
import subprocess
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from tests.server.conftest import draw_picture, run_service, trained_collection  # noqa: F401 - a fixture
from tests.web.test_browser import CHROMIUM, WEB
from tests.web.test_browser import pytestmark as pytestmark

from databases import copied
from wsabie.collection.folder.collection import create_collection
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.scan.scanner import scan_collection
from wsabie.server.tokens import create_token

SCRIPTS = [
    '<img src=x onerror="window.hacked=1">',
    '"><script>window.hacked=1</script>',
    "javascript:window.hacked=1",
    "'-window.hacked=1-'",
    "{{constructor.constructor('window.hacked=1')()}}",
    "<svg onload=window.hacked=1>",
]


def walked(script: str, *words: str, **environment: str) -> str:
    """Output of a walk through the pages, which must end well."""
    shots = os.environ.get("WSABIE_SCREENSHOTS")
    process = subprocess.run(
        ["node", f"tests/{script}", *words, *([shots] if shots else [])],
        cwd=WEB,
        env={**os.environ, "CHROMIUM": CHROMIUM, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_tokens_in_the_pages(trained_collection: Path, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "tokens"
    tokens = {"WRITE": create_token(file, "first", "write"), "AGAIN": create_token(file, "second", "write")}
    tokens["READ"] = create_token(file, "reader", "read")
    with copied(trained_collection, tmp_path / "photos") as folder, run_service(folder, "--tokens", file) as service:
        output = walked("token.mjs", str(service.base_url).rstrip("/"), str(file), **tokens)
    assert output.split("\n")[:3] == ["asked for: ok", "expires: ok", "reads: ok"]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Pictures, folders and labels with names that are scripts, and a model that suggests these labels."""
    place = tmp_path / "photos"
    lines = ["file_name,labels"]
    for number in range(36):
        name = f"{SCRIPTS[0]} {number % 2}/{number:02d} {SCRIPTS[number % 2 * 5]}.png"
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        out = BytesIO()
        with Image.open(BytesIO(draw_picture(("red", "green", "blue")[number % 3], number))) as picture:
            picture.save(out, "PNG")
        (place / name).write_bytes(out.getvalue())
        if number < 24:
            labels = ";".join([SCRIPTS[number % 3], SCRIPTS[3 + number % 3]])
            lines.append(",".join('"' + cell.replace('"', '""') + '"' for cell in (name, labels)))
    (place / "metadata.csv").write_text("\n".join(lines))
    with create_collection(place) as collection:
        scan_collection(collection, by=SCRIPTS[0])
        train_collection_model(collection, by=SCRIPTS[0], features="colour", dim=8, epochs=20, threads=1)
    return place


def test_names_that_are_scripts_are_shown_and_do_not_run(hostile: Path) -> None:
    with run_service(hostile) as service:
        assert "addresses: ok" in walked("hostile.mjs", str(service.base_url).rstrip("/"))
