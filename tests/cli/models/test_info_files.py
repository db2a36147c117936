"""`wsabie info` on data files, and the summary that every command prints of its input."""

from pathlib import Path

import pytest

from wsabie.io.format_detection import FORMATS

SINGLE = ("json", "table", "svmlight", "fasttext", "pairs")
"""Formats whose examples need no other file."""


@pytest.mark.parametrize("form", [form for form in FORMATS if form.kind in SINGLE], ids=lambda form: form.kind)
def test_info_explains_a_data_file(cli, tmp_path: Path, form) -> None:
    path = tmp_path / "data"
    path.write_text(f"{form.example}\n")
    document = cli("info", path, "--json").json
    best = document["formats"][0]
    assert (document["kind"], best["kind"]) == (form.kind, form.kind)
    assert document["content"].startswith(f"{form.title}: 1 ")
    shown = " ".join(cli("info", path).out.split())
    assert best["reason"] in shown
    assert document["content"] in shown


def test_every_command_reports_the_rows_that_it_read(cli, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("id\tlabel\n1\tfox\n2\tfox\n2\tmoss\n3\n")
    result = cli("split", path, "--out", tmp_path / "parts", "--test", 0.5)
    assert f"{path}: list of id TAB label: 2 rows, 3 labels in 2 names, e.g. fox, moss\n" in result.err
    assert "1 skipped: line without two or three columns (1)" in result.err


def test_model_options_are_refused_for_files(cli, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("1\tfox\n")
    for flag in ("--epochs", "--verify"):
        result = cli("info", tmp_path / "a.tsv", flag)
        assert (result.code, f"leave {flag} out" in result.err) == (1, True)
