"""Keys of the JSON output against the documentation."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

Cli = Callable[..., Any]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line" / "json.md"


def read_documented_keys(command: str) -> set[str]:
    """Keys of the page on JSON: what stands in backticks outside of brackets, and before a semicolon."""
    rows = [line.split("|") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    text, *_ = [keys.partition("; `demo`")[0] for _, names, keys, _ in rows if f"`{command}`" in names]  # of rows
    while "(" in text:
        text = re.sub(r"\([^()]*\)", "", text)
    return set(re.findall(r"`([a-z_]+)`", text))


def test_json_has_the_documented_keys(cli: Cli, rows: Path, pictures: Path, model: Path, tmp_path: Path) -> None:
    """Fingerprints of pictures and the history are there where there are pictures and where it is asked for."""
    ours, features = tmp_path / "m", tmp_path / "f.parquet"
    commands = [
        ("train", rows, "--model", ours, "--epochs", 2, "--threads", 1),
        ("evaluate", ours, rows, "--allow-overlap"),
        ("annotate", ours, rows),
        ("neighbours", ours, "1"),
        ("compare", rows, "--models", "wsabie,popularity", "--threads", 1),
        ("split", rows, "--out", tmp_path / "parts", "--by", "row"),
        ("features", "images", pictures, "--out", features, "--n-words", 32, "--size", 32, "--threads", 1),
        ("info", model, "--epochs"),
    ]
    kernel = {"kernel_error", "explained", "landmarks_error", "landmarks_explained", "evaluated_rows", "holdout"}
    absent = {
        "train": {"source_fingerprint", "extractor"},
        "evaluate": {"siblings"},
        "annotate": {"marks", "no_tag_fits", "rows", "out"},
        "neighbours": {"marks"},
        "features": {"kpca", "map", "components", "landmarks", "bytes", *kernel},
        "info": {"tuning", "members", "blend", "crop", "normalise", "output", "rate"},
    }
    for words in commands:
        document = cli(*words, "--json").json
        assert document.pop("schema") == 1
        assert set(document) == read_documented_keys(words[0]) - absent.get(words[0], set()), words[0]
    assert "history" not in cli("info", model, "--json").json
