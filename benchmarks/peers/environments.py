"""The throw-away virtual environments of the peers: which Python each needs, what is installed, what is missing."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

HOME = Path(__file__).resolve().parents[1] / ".cache" / "environments"
_STAMP = "recipe.json"
_PACKAGE = Path(__file__).resolve().parents[2] / "src" / "wsabie"
_ROOMS = ("core", "kernels", "embedding", "training", "models")


class MissingError(Exception):
    """Something that an environment needs is not on this machine; the sentence says what and what to do."""


@dataclass(frozen=True)
class Recipe:
    """Recipe of a peer's environment.

    Attributes
    ----------
    pythons : tuple of str
        Versions that it works with, the preferred one first.
    steps : tuple of tuple of str
        Arguments of one `pip install` after the other.
    probe : str
        A statement that works when the installation does.
    compiler : bool
        Whether C code is compiled, which takes a compiler and Python's headers.
    why : str
        What is special about it.
    """

    pythons: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]
    probe: str
    compiler: bool = False
    why: str = ""


_ANY = ("3.11", "3.10", "3.12")
RECIPES = {
    "lightfm": Recipe(
        ("3.10",),
        (
            ("numpy<2", "scipy<1.12", "cython<3", "setuptools<65", "wheel", "requests", "scikit-learn<1.6"),
            ("--no-build-isolation", "--no-deps", "lightfm==1.17"),
        ),
        "from lightfm import LightFM; from lightfm._lightfm_fast_openmp import fit_warp",
        compiler=True,
        why="there is no wheel, and the source neither builds on Python 3.11 nor with newer build tools",
    ),
    "fasttext": Recipe(
        _ANY, (("numpy<2", "scipy", "fasttext-wheel==0.9.2"),), "import fasttext", why="its binding breaks on NumPy 2"
    ),
    "napkinxc": Recipe(_ANY, (("numpy<2", "scipy", "napkinxc==0.7.2"),), "import napkinxc.models"),
    "pecos": Recipe(
        _ANY,
        (("numpy<2", "scipy<1.14", "scikit-learn<1.6"), ("--no-deps", "libpecos==1.2.8")),
        "from pecos.xmc.xlinear.model import XLinearModel",
        why="its dependency torch (several GB) serves a part of it that is not measured here",
    ),
    "omikuji": Recipe(_ANY, (("numpy", "scipy", "omikuji==0.5.2"),), "import omikuji"),
}


def interpreter(system: str, home: Path = HOME) -> Path:
    """The Python that runs a system's adapter: of its own environment, or this one for wsabie."""
    return Path(sys.executable) if system not in RECIPES else home / system / "bin" / "python"


def ensure(system: str, home: Path = HOME) -> dict[str, object]:
    """Make the environment of a peer unless it is there, and tell its Python and packages.

    Raises
    ------
    MissingError
        No suitable Python, no compiler or headers, or an installation that failed.
    """
    if system in RECIPES and not _is_made(system, home):
        _make(system, home)
    python = interpreter(system, home)
    frozen = _output([str(python), "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"])
    packages = {package["name"].lower(): package["version"] for package in json.loads(frozen or "[]")}
    return {"python": _version(python), "packages": packages}


def _is_made(system: str, home: Path) -> bool:
    stamp = home / system / _STAMP
    return stamp.exists() and stamp.read_text() == _fingerprint(RECIPES[system])


def code_of(system: str) -> str:
    """Return a fingerprint of the code behind a figure: the peer's recipe, or this package's sources."""
    if system in RECIPES:
        return _fingerprint(RECIPES[system])[:12]
    digest = hashlib.sha256()
    for file in sorted(path for room in _ROOMS for path in (_PACKAGE / room).rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _fingerprint(recipe: Recipe) -> str:
    return hashlib.sha256(json.dumps(asdict(recipe), sort_keys=True).encode()).hexdigest()


def _make(system: str, home: Path) -> None:
    recipe, folder = RECIPES[system], home / system
    base = _suitable_python(system, recipe)
    _log(f"{system}: making an environment with {base}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run_checked(system, [str(base), "-m", "venv", str(folder)])
    python = str(folder / "bin" / "python")
    for packages in recipe.steps:
        _log(f"{system}: pip install {' '.join(packages)}")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run_checked(system, [*install, *packages])
    _run_checked(system, [python, "-c", recipe.probe])
    (folder / _STAMP).write_text(_fingerprint(recipe))


def _suitable_python(system: str, recipe: Recipe) -> Path:
    interpreters = pythons()
    for version in recipe.pythons:
        if version in interpreters:
            if recipe.compiler:
                _check_compiler(system, interpreters[version])
            return interpreters[version]
    has = ", ".join(sorted(interpreters)) or "none"
    reason = f" ({recipe.why})" if recipe.why else ""
    raise MissingError(
        f"{system} needs Python {' or '.join(recipe.pythons)}{reason}, but this machine has {has}; "
        f"install one, for instance with `pyenv install {recipe.pythons[0]}`"
    )


def _check_compiler(system: str, python: Path) -> None:
    if not shutil.which("gcc") and not shutil.which("cc"):
        raise MissingError(f"{system} is compiled from source, but there is no C compiler; install gcc")
    code = "import sysconfig; print(sysconfig.get_paths()['include'])"
    headers = Path(_output([str(python), "-c", code]).strip()) / "Python.h"
    if not headers.exists():
        raise MissingError(
            f"{system} is compiled from source, but {headers} is not there; install Python's headers (-dev)"
        )


def pythons() -> dict[str, Path]:
    """Interpreters on this machine by "major.minor": on the PATH, under pyenv, and this one."""
    versions = sorted({version for recipe in RECIPES.values() for version in recipe.pythons})
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [Path(sys.executable), *sorted(root.glob("*/bin/python"))]
    for version in versions:
        on_path = shutil.which(f"python{version}")
        candidates += [Path(on_path)] if on_path else []
    interpreters: dict[str, Path] = {}
    for candidate in candidates:
        interpreters.setdefault(_version(candidate).rpartition(".")[0], candidate)
    interpreters.pop("", None)
    return interpreters


def _version(python: Path) -> str:
    """ "3.10.13", or "" when it does not run or cannot make environments."""
    code = "import sys, venv, ensurepip; print('.'.join(map(str, sys.version_info[:3])))"
    return _output([str(python), "-c", code]).strip()


def _output(command: list[str]) -> str:
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout if process.returncode == 0 else ""


def _run_checked(system: str, command: list[str]) -> None:
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        last = "\n".join((process.stderr or process.stdout).strip().splitlines()[-15:])
        raise MissingError(f"{system}: `{' '.join(command)}` failed:\n{last}")


def _log(message: str) -> None:
    sys.stderr.write(message + "\n")
    sys.stderr.flush()
