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


def test_circles_through_functions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    class Graph:
        modules = ("a", "b", "c", "d")

        def find_modules_directly_imported_by(self, name: str) -> set[str]:
            return {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set[str]()}[name]

    monkeypatch.setattr(check_code, "build_graph", lambda *_, **__: Graph())
    assert check_code.RULES["circles"].check([])[1] == ["a <-> b <-> c"]


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
