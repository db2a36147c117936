"""Every format and every command that reads data: it is read, or refused in a sentence that says what to do."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

from files_of_formats import WRITERS, write_folder, write_pictures
from wsabie.io.data_sources import open_source
from wsabie.io.format_detection import FORMATS, FORMATS_BY_KIND, REGION_FORMATS, detect_format
from wsabie.io.records import FeatureTable

TRAIN = ["--dim", 4, "--epochs", 2, "--threads", 1, "--hold-out", 0]
FEATURES = {"pictures": "colour", "sounds": "mfcc"}
KINDS = {"rows": "kpca", "pictures": "images", "sounds": "audio", "documents": "text"}
SPLITS = {
    "sounds": r"split writes rows or pictures .* extract features first: wsabie features audio",
    "documents": r"split writes rows or pictures .* extract features first: wsabie features text",
    "regions": r"holds regions of pictures, which are not copied; extract features first: wsabie features images",
    "file": r"the validation side of the split would be empty; use other fractions or more rows",
}
NO_COLUMN = r"has no column 'path' .*; name the files in one"
IMPORTS = {
    "listing": None,
    "coco": None,
    "parquet": r"is not UTF-8 text; convert the file",
    "file": r"is not UTF-8 text; convert the file",
    "open-images": r"has no column 'labels' .*; put the labels in one of these",
    "mirflickr": r"names a column twice; rename one",
}


def list_cells(kind: str, path: Path, modality: str, folder: Path) -> Iterator[tuple[list[object], str | None]]:
    """The words of every command, and the sentence of its refusal."""
    model, features = folder / "model", ["--features", FEATURES[modality]] if modality in FEATURES else []
    examples = write_folder(folder / "more") if kind == "file" else path
    yield (
        ["train", examples, "--model", model, "--dim", 4, "--epochs", 2, "--threads", 1, "--hold-out", 0, *features],
        None,
    )
    yield ["evaluate", model, path, "--allow-overlap"], None
    yield ["annotate", model, path], None
    yield ["search", model, get_label(path), "--in", path], None
    yield ["update", model, path, "--without-replay"], None
    yield ["features", KINDS[modality], path, "--out", folder / "features.parquet", *features], None
    content = "regions" if kind in REGION_FORMATS else "file" if kind == "file" else modality
    yield ["split", path, "--out", folder / "parts"], SPLITS.get(content)
    hint = None if modality == "rows" else "shards hold rows; extract features first with `wsabie features`"
    yield ["shards", path, "--out", folder / "more shards"], hint
    hint = r"run: wsabie collection init|give the folder that `wsabie train --model FOLDER` wrote"
    yield ["info", path], hint if path.is_dir() and kind != "shards" else None
    hint = None if path.is_dir() else "is a file; give the folder that holds your pictures"
    yield ["collection", "init", path], hint


def get_label(path: Path) -> str:
    source = open_source(path)
    return source.label_names[0] if isinstance(source, FeatureTable) else next(iter(source)).labels[0]


@pytest.mark.parametrize("name", WRITERS)
def test_every_command_reads_a_format_or_says_what_to_do(cli: Cli, tmp_path: Path, name: str) -> None:
    kind, write = WRITERS[name]
    path = write(tmp_path)
    assert detect_format(path) == kind
    source = open_source(path)
    modality = "rows" if isinstance(source, FeatureTable) else source.modality
    for words, refusal in list_cells(kind, path, modality, tmp_path):
        err = call(cli, words, refusal)
        if refusal is None and words[0] in ("evaluate", "split", "update") and kind != "shards":
            assert f"{path}: {FORMATS_BY_KIND[kind].title}: " in err


def call(cli: Cli, words: list[object], refusal: str | None) -> str:
    """Run a command that works, or is refused with a sentence; what it printed."""
    result = cli(*words)
    message = " ".join(result.err.split())
    assert result.code == (refusal is not None), f"{words}: {message}"
    assert refusal is None or re.search(f"wsabie: .*{refusal}", message), f"{words}: {message}"
    return message


def test_a_collection_takes_the_tags_of_a_format_or_says_what_to_do(cli: Cli, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    write_pictures(photos)
    call(cli, ["collection", "init", photos, "--tags", "none"], None)
    for name, (kind, write) in WRITERS.items():
        if kind in ("magnatagatune", "spoken-digits", "shards") or name == "exiftool":
            continue
        folder = tmp_path / name
        folder.mkdir()
        path = write(folder)
        refusal = "is a folder; give the file in it that lists tags" if path.is_dir() else IMPORTS.get(kind, NO_COLUMN)
        call(cli, ["collection", "import", photos, path], refusal)


def test_every_format_has_a_file() -> None:
    assert {kind for kind, _ in WRITERS.values()} == {form.kind for form in FORMATS}
