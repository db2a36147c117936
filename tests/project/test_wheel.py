"""The wheel that people install: built here and opened."""

import os
import re
import shutil
import subprocess
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wsabie.samples import PARTS

ROOT = Path(__file__).resolve().parents[2]
PAGES = "wsabie/server/static"
TEMPLATES = "wsabie/workflows/report/templates"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    builders = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed; run `make setup`")
    from hatch_build import BuildPages

    if not BuildPages._built(SimpleNamespace(root=ROOT)):  # type: ignore[arg-type]  # it asks for its root alone
        pytest.skip("the pages are not built, or older than what they are made of; run `make web`")
    folder = tmp_path_factory.mktemp("wheel")
    [path] = builders.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(path) as opened:
        yield opened


def test_the_wheel_has_the_pages_and_all_that_they_load(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    page = wheel.read(f"{PAGES}/index.html").decode()
    loaded = re.findall(r'(?:src|href)="/([^"]+)"', page)
    assert {Path(name).suffix for name in loaded} >= {".js", ".css"}
    for name in loaded:
        assert len(wheel.read(f"{PAGES}/{name}")) > 100, name
    on_disk = {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / PAGES).rglob("*") if path.is_file()
    }
    assert on_disk <= names


def test_the_wheel_has_the_samples_the_templates_and_the_migrations(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    samples = ("photos/metadata.csv", "scenes.csv", "scenes/lake.jpg", "documentation.jsonl.gz", "LICENSES.txt")
    expected = {f"wsabie/samples/{name}" for name in samples}
    folder = ROOT / "src/wsabie/collection/db/migrations/versions"
    expected |= {f"wsabie/collection/db/migrations/versions/{path.name}" for path in folder.glob("*.py")}
    expected |= {f"{TEMPLATES}/{path.name}" for path in (ROOT / "src" / TEMPLATES).iterdir()}
    assert expected | {"wsabie/py.typed", "wsabie/server/no_page.html"} <= names
    assert wheel.testzip() is None


def test_the_wheel_has_nothing_else(wheel: zipfile.ZipFile) -> None:
    parts = {part for name in wheel.namelist() for part in Path(name).parts}
    assert not parts & {"node_modules", "papers", "benchmarks", "tests", "web", "__pycache__"}
    assert not parts & {f"{part}.parquet" for part in PARTS}
    assert {Path(name).parts[0].split("-")[0] for name in wheel.namelist()} == {"wsabie"}
    kinds = {Path(name).suffix for name in wheel.namelist()}
    assert not kinds & {".map", ".ts", ".tsx", ".mjs", ".pyc", ".log"}
    assert sum(entry.compress_size for entry in wheel.infolist()) < 8_000_000


def test_the_lines_of_the_container_run_in_an_empty_environment(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """They install the wheels from `dist` and compile the kernels; `make dist` runs them on what is published."""
    from hatchling.builders.wheel import WheelBuilder

    (tmp_path / "dist").mkdir()
    shutil.copy(str(wheel.filename), tmp_path / "dist")
    [*WheelBuilder(str(ROOT / "weights")).build(directory=str(tmp_path / "dist"), versions=["standard"])]
    venv.create(tmp_path / "empty", with_pip=True)
    run: Any = {"cwd": tmp_path, "env": {**os.environ, "PATH": f"{tmp_path}/empty/bin:{os.environ['PATH']}"}}
    if subprocess.run(["pip", "index", "versions", "numpy"], capture_output=True, check=False, **run).returncode:
        pytest.skip("no package index can be reached")
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    script = "\n".join(line.removeprefix("RUN ") for line in lines if line.startswith("RUN "))
    process = subprocess.run(["sh", "-exc", script], capture_output=True, text=True, check=False, **run)
    assert process.returncode == 0, process.stderr
    assert any((tmp_path / "cache").rglob("*.nbc"))
    assert not (tmp_path / "demo").exists()


def test_built_pages_are_no_source() -> None:
    """They are in the wheel, and never in the repository."""
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert f"src/{PAGES}/" in ignored
