"""`python -m papers`, as the shell calls it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]


def test_list(papers_cli: Cli) -> None:
    ran = papers_cli("list")
    assert ran.code == 0
    assert "  wsabie-table-5            Dimensions of the space\n" in ran.out
    assert len(papers_cli("list", "--json").json["tables"]) >= 24


def test_a_table_without_data(papers_cli: Cli, tmp_path: Path) -> None:
    ran = papers_cli("slides-example", "--out", tmp_path / "here")
    assert ran.code == 0
    assert "AUC prefers both equally: holds (100 and 100 violations)" in ran.out
    assert sorted(file.name for file in (tmp_path / "here").iterdir()) == ["about.md", "table.csv"]


def test_a_table_on_a_users_rows(papers_cli: Cli, rows: Path, tmp_path: Path) -> None:
    ran = papers_cli("wsabie-nearest-neighbour", "--data", rows, "--out", tmp_path / "nn", "--json")
    assert ran.code == 0, ran.err
    report = ran.json
    assert (report["schema"], report["table"], report["data"]["name"]) == (1, "wsabie-nearest-neighbour", "rows.txt")
    assert report["files"] == [str(tmp_path / "nn" / name) for name in ("table.csv", "about.md")]


def test_long_texts_stand_below_each_other(papers_cli: Cli, rows: Path, tmp_path: Path) -> None:
    ran = papers_cli("wsabie-table-4", "--data", rows, "--epochs", 1, "--out", tmp_path / "t4")
    assert ran.code == 0, ran.err
    assert "\ndolphin\n  nearest, Web: delphin, dauphin" in ran.out


def test_bad_input(papers_cli: Cli, tmp_path: Path) -> None:
    assert "did you mean 'wsabie-table-2'?" in papers_cli("wsabie-table2").err
    assert papers_cli("wsabie-table-2", "--data", "visterm:huge").code == 1
    assert papers_cli("wsabie-table-2", "--data", tmp_path / "none").code == 1
    assert "leave --data out" in papers_cli("slides-example", "--data", "sample").err
    (tmp_path / "file").write_text("")
    blocked = papers_cli("slides-example", "--out", tmp_path / "file")
    assert blocked.code == 1
    assert "cannot write" in blocked.err


def test_files_of_the_users_stay(papers_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("mine")
    ran = papers_cli("slides-example", "--out", tmp_path)
    assert ran.code == 1
    assert "not written by an earlier run" in ran.err
    assert (tmp_path / "table.csv").read_text() == "mine"
    assert papers_cli("slides-example", "--out", tmp_path / "new").code == 0
    assert papers_cli("slides-example", "--out", tmp_path / "new").code == 0  # its own are replaced


def test_papers_find_what_they_cite(papers_cli: Cli, data_dir: Path, tmp_path: Path) -> None:
    cora = data_dir / "planetoid_docs" / "cora.docs.txt"
    ran = papers_cli("documents", "--data", cora, "--epochs", 3, "--out", tmp_path / "d", "--json")
    assert ran.code == 0, ran.err
    recalls = {row["row"]: row["figures"]["recall@10"] for row in ran.json["here"]}
    assert recalls["tf-idf cosine"] == pytest.approx(0.245, abs=0.001)
    assert ran.json["data"]["rows"] == {"train": 2166, "valid": 271, "test": 271}
    assert str(data_dir) not in (tmp_path / "d" / "about.md").read_text()


def test_songs_of_spoken_digits(papers_cli: Cli, data_dir: Path, tmp_path: Path) -> None:
    """From recordings to the table: digits in the place of artists."""
    pytest.importorskip("soundfile", reason="soundfile decodes")
    pytest.importorskip("soxr", reason="soxr changes rates")
    (tmp_path / "digits" / "recordings").mkdir(parents=True)
    shutil.copy(data_dir / "fsdd" / "metadata.txt", tmp_path / "digits")
    for name in (f"{digit}_theo_{take}.wav" for digit in range(3) for take in range(2, 15)):
        shutil.copy(data_dir / "fsdd" / "recordings" / name, tmp_path / "digits" / "recordings")
    words = ("music-bigdata", "--data", tmp_path / "digits", "--out", tmp_path / "m", "--epochs", 5)
    assert "no names of the kind 'artist'; choose --artists among digit" in papers_cli(*words).err
    ran = papers_cli(*words, "--artists", "digit")
    assert ran.code == 0, ran.err
    assert "The kind 'digit' stands for artists. 3 artists" in ran.out
    assert "Wsabie, all tasks (d = 100) > Wsabie, single task (d = 100) in song p@1: " in ran.out
    assert str(tmp_path) not in (tmp_path / "m" / "about.md").read_text()


def test_tables_that_want_data_of_their_own(papers_cli: Cli, rows: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "t")
    assert "documents needs data; name some with --data: NAME.docs.txt" in papers_cli("documents", *out).err
    assert "is not a file of documents with pairs" in papers_cli("documents", "--data", rows, *out).err
    assert "holds no sounds" in papers_cli("tagatune", "--data", rows, *out).err
    assert "choose from tiny, S, L" in papers_cli("music-bigdata", "--data", "songs:huge", *out).err


def test_objects_and_parts(papers_cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "near"
    ran = papers_cli("parts-table6", "--data", "parts:tiny", "--epochs", 1, "--out", out, "--json")
    assert ran.code == 0, ran.err
    assert "training is told of 23 relations" in ran.err  # before any figure
    assert "23 relations are too few to rank models by" in ran.err
    assert len(ran.json["here"]) == 10
    assert set(ran.json["here"][0]["figures"]) == {"Shared (IW)", "Unshared (IW)"}
    assert "too few to rank models by" in (out / "about.md").read_text()


def test_unsuitable_options_of_a_table_are_refused(papers_cli: Cli, rows: Path, tmp_path: Path) -> None:
    refused = papers_cli("wsabie-table-2", "--data", rows, "--knowledge", tmp_path)
    assert refused.code == 1
    assert "--knowledge says nothing to wsabie-table-2; leave --knowledge out" in refused.err
    assert "leave --inherit out" in papers_cli("slides-example", "--inherit").err
    assert "leave --knowledge" in papers_cli("parts-table3", "--data", "parts:tiny", "--inherit").err
    assert "name WordNet with --knowledge" in papers_cli("parts-table3", "--data", rows).err
    assert "parts:paper, parts:S or parts:tiny" in papers_cli("parts-table3").err
    assert papers_cli("parts-table3", "--data", "parts:tiny", "--seeds", 0).code != 0
