"""`wsabie reproduce`, as the shell calls it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

Cli = Callable[..., Any]


def test_list(cli: Cli) -> None:
    ran = cli("reproduce", "list")
    assert ran.code == 0
    assert "  wsabie-table-5            Dimensions of the space\n" in ran.out
    assert len(cli("reproduce", "list", "--json").json["tables"]) >= 24


def test_a_table_without_data(cli: Cli, tmp_path: Path) -> None:
    ran = cli("reproduce", "slides-example", "--out", tmp_path / "here")
    assert ran.code == 0
    assert "AUC prefers both equally: holds (100 and 100 violations)" in ran.out
    assert sorted(file.name for file in (tmp_path / "here").iterdir()) == ["about.md", "table.csv"]


def test_a_table_on_a_users_rows(cli: Cli, rows: Path, tmp_path: Path) -> None:
    ran = cli("reproduce", "wsabie-nearest-neighbour", "--data", rows, "--out", tmp_path / "nn", "--json")
    assert ran.code == 0, ran.err
    found = ran.json
    assert (found["schema"], found["table"], found["data"]["name"]) == (1, "wsabie-nearest-neighbour", "rows.txt")
    assert found["files"] == [str(tmp_path / "nn" / name) for name in ("table.csv", "about.md")]


def test_long_texts_stand_below_each_other(cli: Cli, rows: Path, tmp_path: Path) -> None:
    ran = cli("reproduce", "wsabie-table-4", "--data", rows, "--epochs", 1, "--out", tmp_path / "t4")
    assert ran.code == 0, ran.err
    assert "\ndolphin\n  nearest, Web: delphin, dauphin" in ran.out


def test_bad_input(cli: Cli, tmp_path: Path) -> None:
    assert "did you mean 'wsabie-table-2'?" in cli("reproduce", "wsabie-table2").err
    assert cli("reproduce", "wsabie-table-2", "--data", "visterm:huge").code == 1
    assert cli("reproduce", "wsabie-table-2", "--data", tmp_path / "none").code == 1
    assert "leave --data out" in cli("reproduce", "slides-example", "--data", "sample").err
    (tmp_path / "file").write_text("")
    blocked = cli("reproduce", "slides-example", "--out", tmp_path / "file")
    assert blocked.code == 1
    assert "cannot write" in blocked.err


def test_files_of_the_users_stay(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("mine")
    ran = cli("reproduce", "slides-example", "--out", tmp_path)
    assert ran.code == 1
    assert "not made by an earlier run" in ran.err
    assert (tmp_path / "table.csv").read_text() == "mine"
    assert cli("reproduce", "slides-example", "--out", tmp_path / "new").code == 0
    assert cli("reproduce", "slides-example", "--out", tmp_path / "new").code == 0  # its own are replaced
