"""`import wsabie` is light: what is heavy is loaded when it is used."""

import json
import subprocess
import sys
from pathlib import Path

import wsabie

HEAVY = ("numba", "sklearn", "scipy", "pyarrow", "PIL", "matplotlib", "typer", "rich", "safetensors", "optuna")


def loaded_after(statement: str) -> set[str]:
    """Top-level modules in a fresh interpreter."""
    script = f"{statement}\nimport sys, json\nprint(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(process.stdout))


def test_import_loads_nothing_heavy() -> None:
    loaded = loaded_after("import wsabie; wsabie.__version__; dir(wsabie)")
    assert "wsabie" in loaded
    assert not loaded & set(HEAVY)


def test_a_public_name_loads_its_libraries() -> None:
    """The counterpart: the check above would notice."""
    assert loaded_after("import wsabie; wsabie.Wsabie") >= {"sklearn", "numpy"}


def test_a_type_checker_refuses_names_that_are_not_public(tmp_path: Path) -> None:
    (tmp_path / "public_names.pyi").write_text(Path(wsabie.__file__).with_suffix(".pyi").read_text())
    (tmp_path / "script.py").write_text("import public_names\npublic_names.Wsabie\npublic_names.nothing\n")
    options = ["--config-file=", "--follow-imports=skip", f"--cache-dir={tmp_path}", "public_names.pyi", "script.py"]
    process = subprocess.run([sys.executable, "-m", "mypy", *options], cwd=tmp_path, capture_output=True, text=True)
    assert process.stdout.splitlines()[0] == 'script.py:3: error: Module has no attribute "nothing"  [attr-defined]'


def test_public_errors_load_nothing_heavy() -> None:
    assert not loaded_after("import wsabie; wsabie.InputError") & set(HEAVY)
