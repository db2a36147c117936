"""The rules for names, docstrings, sizes and imports find what they are for."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
import check_code

FAULTS = {
    "names": "found = 1\nmatches = 2\n",
    "docstrings": '"""What it is."""\n\n\ndef load():\n    """Load it."""\n',
    "first-lines": f'"""{"x" * 101}"""\n\n\ndef load():\n    """{"x" * 100}"""\n',
    "marks": "# as in [W] section 4\n",
    "interface-words": 'note = f"{1} is left; add --seed 1"\nother = "run: pg_dump --clean"\n',
    "classes": "class A: ...\n\n\nclass A: ...\n",
    "functions": ("def f():\n" + "    x = 1\n" * 81) * 3,
    "functions-18": "def f():\n" + "    x = 1\n" * 18,
    "functions-6": "def f():\n" + "    x = 1\n" * 6,
    "files": "x = 1\n" * 501,
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_rule_finds_its_fault(name: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(FAULTS[name])
    (tmp_path / "sound.py").write_text('"""Load rows."""\n\nmatches = 2\n')
    figure, places = check_code.RULES[name].check(check_code.read_modules(tmp_path))
    assert len(places) == (3 if name == "functions" else 1)
    assert figure > check_code.RULES[name].limit


def test_templates_name_no_command(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "page.html").write_text("<p>wsabie tune</p> <p>wsabie tuning</p>")
    (tmp_path / "templates" / "model_card.md.jinja").write_text("$ wsabie annotate FOLDER NEW")
    assert check_code.RULES["interface-words"].check(check_code.read_modules(tmp_path))[1] == ["page.html wsabie tune"]


def test_a_folder_of_21_modules_is_full(tmp_path: Path) -> None:
    for number in range(21):
        (tmp_path / f"module_{number}.py").write_text("")
    rule = check_code.RULES["folders"]
    assert rule.check(check_code.read_modules(tmp_path))[0] == 1
    (tmp_path / "module_0.py").unlink()
    assert rule.check(check_code.read_modules(tmp_path))[0] == 0


def test_modules_with_one_importer_count_unless_it_is_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "wsabie"
    (package / "formats").mkdir(parents=True)
    for number in range(6):
        (package / "formats" / f"format_{number}.py").write_text("from wsabie import shared\n")
    (package / "shared.py").write_text("")
    (package / "part.py").write_text("from wsabie.formats.format_0 import load\n")
    (package / "table.py").write_text(
        "from wsabie.formats import format_0, format_1, format_2, format_3, format_4, format_5\n"
        "from wsabie.part import load\n"
    )
    monkeypatch.setattr(check_code, "PACKAGE", package)
    places = check_code.RULES["importers"].check(check_code.read_modules(package))[1]
    assert places == ["wsabie.part <- wsabie.table"]


def _find_circles(package: Path, monkeypatch: pytest.MonkeyPatch, **contents: str) -> list[str]:
    for name, content in contents.items():
        package.mkdir(exist_ok=True)
        (package / f"{name}.py").write_text(content)
    monkeypatch.setattr(check_code, "PACKAGE", package)
    return check_code.RULES["circles"].check(check_code.read_modules(package))[1]


@pytest.mark.parametrize(
    "content", ["from wsabie import b\n", "try:\n    import wsabie.b\nexcept ImportError:\n    pass\n"]
)
def test_two_modules_that_import_each_other_at_the_top_are_a_circle(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _find_circles(tmp_path / "wsabie", monkeypatch, a=content, b="from wsabie.a import x\n") == [
        "wsabie.a <-> wsabie.b"
    ]


INNER_IMPORTS = (
    "def f():\n    from wsabie import {}\n",
    "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from wsabie import {}\n",
)


@pytest.mark.parametrize("inner", INNER_IMPORTS)
def test_inner_imports_may_join_two_modules_but_not_three(
    inner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "wsabie"
    pair = {"a": "from wsabie import b\n", "b": inner.format("a"), "d": "from wsabie import a\n"}
    assert _find_circles(package, monkeypatch, **pair) == []
    three = {"b": "from wsabie import c\n", "c": inner.format("a")}
    assert _find_circles(package, monkeypatch, **three) == ["wsabie.a <-> wsabie.b <-> wsabie.c"]


def test_marks_in_pages_count_but_not_in_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/index.md", "docs/how-to/sound.md")
    for name in (*pages, "docs/decisions/storage.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# Sound\n\nAs in [W], section 4.\n")
    monkeypatch.setattr(check_code, "ROOT", tmp_path)
    assert check_code.main(["page-marks"]) == 0
    places = capsys.readouterr().out.splitlines()
    assert sorted(places) == sorted(f"{name}:3 As in [W], section 4." for name in pages)
    assert check_code.PAGE_RULES["page-marks"].limit == 0


@pytest.mark.parametrize(("name", "content"), [("other-names", FAULTS["names"]), ("other-docs", FAULTS["docstrings"])])
def test_names_and_docstrings_are_held_outside_the_package(
    name: str, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_module.py").write_text(content)
    monkeypatch.setattr(check_code, "ROOT", tmp_path)
    monkeypatch.setattr(check_code, "RULES", {})
    assert check_code.main([]) == 1
    assert f"all 1: python scripts/check_code.py {name}" in capsys.readouterr().out
