"""Known holes in what this project is built, tested and run with: `make audit`.

Without files pip-audit and `npm audit` ask the databases of PyPI and npm about everything that `locks/` and
`web/package-lock.json` name. With files, exports of osv.dev (`all.zip` of an ecosystem, or records as .json), nobody is
asked. The exit code is 0 where nothing is known, 1 where something is, 2 where that cannot be told: also where exports
say nothing of any package that we have from PyPI, or from npm.
"""

import json
import re
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parents[1]
EXPORTS = "https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip and .../npm/all.zip"
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;]+)")
_SEMVER = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+.*)?")


class Package(NamedTuple):
    """What is installed: ecosystem ("PyPI" or "npm"), name, version."""

    ecosystem: str
    name: str
    version: str


class Hole(NamedTuple):
    """A package and what is known of it."""

    package: Package
    id: str
    told: str


class UnreachableError(Exception):
    """A database that does not answer, or an export that cannot be read."""


def locked(root: Path) -> list[Package]:
    """All that is installed from `locks/` and `web/package-lock.json`."""
    found = {
        Package("PyPI", canonicalize_name(match[1]), match[2])
        for path in sorted((root / "locks").glob("*.txt"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if (match := _PIN.match(line))
    }
    modules = json.loads((root / "web" / "package-lock.json").read_bytes())["packages"]
    for place, one in modules.items():
        if place:
            found.add(Package("npm", one.get("name", place.rpartition("node_modules/")[2]), one["version"]))
    return sorted(found)


def known(packages: Iterable[Package], records: Iterable[dict[str, Any]]) -> list[Hole]:
    """The packages that records of OSV (ossf.github.io/osv-schema) are about, in their versions."""
    there: defaultdict[tuple[str, str], list[Package]] = defaultdict(list)
    for package in packages:
        there[package.ecosystem, package.name].append(package)
    found = {}
    for record in records:
        for affected in () if record.get("withdrawn") else (record.get("affected") or ()):
            for package in there.get(_key(affected), ()):
                if _affects(affected, package):
                    found[package, record["id"]] = Hole(package, record["id"], _told(record))
    return sorted(found.values())


def _key(affected: dict[str, Any]) -> tuple[str, str]:
    """Ecosystem and name of the package that a part of a record is about."""
    about = affected.get("package") or {}
    ecosystem, name = str(about.get("ecosystem", "")).partition(":")[0], str(about.get("name", ""))
    return ecosystem, canonicalize_name(name) if ecosystem == "PyPI" else name


def _told(record: dict[str, Any]) -> str:
    names = ", ".join(record.get("aliases", ()))
    summary = " ".join(str(record.get("summary") or record.get("details") or "").split())[:120]
    return f"{summary} ({names})" if names else summary


def _affects(affected: dict[str, Any], package: Package) -> bool:
    if package.version in affected.get("versions", ()):
        return True
    order = _python if package.ecosystem == "PyPI" else _semver
    ranges = (one for one in affected.get("ranges", ()) if one.get("type") in ("ECOSYSTEM", "SEMVER"))
    return any(_within(one.get("events", ()), order(package.version), order) for one in ranges)


def _within(events: Iterable[dict[str, str]], version: Any, order: Callable[[str], Any]) -> bool:
    """Whether a version lies in a range: each event opens or closes it for all versions from there on."""
    inside = False
    steps = [(order(said), what) for event in events for what, said in event.items() if what != "limit"]
    for at, what in sorted(steps):
        if what == "introduced" and version >= at:
            inside = True
        elif (what == "fixed" and version >= at) or (what == "last_affected" and version > at):
            inside = False
    return inside


def _python(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        return Version("0")  # rather too much told than too little


def _semver(text: str) -> tuple[Any, ...]:
    """A key in the order of semver.org: 1.0.0-rc.1 comes before 1.0.0, and rc.2 before rc.10."""
    match = _SEMVER.fullmatch(text)
    if match is None:
        return (0, 0, 0, 0, ())
    number = tuple(int(match[i]) for i in (1, 2, 3))
    before = () if match[4] is None else tuple((not p.isdecimal(), p.zfill(20)) for p in match[4].split("."))
    return (*number, match[4] is None, before)


def records_of(path: Path) -> Iterator[dict[str, Any]]:
    """The records of an export: a .zip of .json files, one .json file, or a folder of them."""
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    yield from _records(archive.read(name))
        else:
            for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
                yield from _records(file.read_bytes())
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise UnreachableError(f"{path} is no export of osv.dev ({error}); take {EXPORTS}") from error


def _records(content: bytes) -> Iterator[dict[str, Any]]:
    told = json.loads(content)
    for one in told if isinstance(told, list) else [told]:
        if not isinstance(one, dict) or "id" not in one:
            raise ValueError("a record without an id")
        if not all(isinstance(affected, dict) for affected in one.get("affected") or ()):
            raise ValueError(f"{one['id']} does not say what it affects")
        yield one


def asked_of_pypi(lock: Path) -> list[Hole]:
    """What pip-audit says of a lock; a package that its database does not tell of is not taken to be sound."""
    words = ["--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json", "--requirement", str(lock)]
    told, said = _answer([sys.executable, "-m", "pip_audit", *words])
    silent = [one["name"] for one in (told or {}).get("dependencies", ()) if "skip_reason" in one]
    if told is None or silent:
        why = f"it says nothing of {silent[0]}" if silent else said
        raise UnreachableError(f"the advisory database of PyPI cannot be reached ({why})")
    return [
        Hole(Package("PyPI", one["name"], one["version"]), hole["id"], _told({**hole, "summary": hole["description"]}))
        for one in told["dependencies"]
        for hole in one["vulns"]
    ]


def asked_of_npm(web: Path) -> list[Hole]:
    """What `npm audit` says."""
    told, said = _answer(["npm", "audit", "--json", "--prefix", str(web)])
    if told is None or "vulnerabilities" not in told:
        said = str((told or {}).get("message") or said)
        raise UnreachableError(f"the advisory database of npm cannot be reached ({said})")
    return [
        Hole(Package("npm", name, one["range"]), str(way.get("source", "")), str(way.get("title", "")))
        for name, one in told["vulnerabilities"].items()
        for way in one["via"]
        if isinstance(way, dict)  # else it is the name of another that is listed too
    ]


def _answer(words: list[str]) -> tuple[dict[str, Any] | None, str]:
    """The JSON that a program prints, and the last line of what it says beside."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
    try:
        return json.loads(done.stdout), lines[-1][:200] if lines else ""
    except ValueError:
        return None, lines[-1][:200] if lines else f"{words[0]} ended with {done.returncode}"


def _asked(root: Path) -> tuple[list[Hole], list[str]]:
    """What the databases say, and why those say nothing that cannot be reached."""
    found: set[Hole] = set()
    away = []
    for ask, paths in ((asked_of_pypi, sorted((root / "locks").glob("*.txt"))), (asked_of_npm, [root / "web"])):
        try:
            for path in paths:
                found.update(ask(path))
        except UnreachableError as error:
            away.append(str(error))
    return sorted(found), away


class _Read:
    """The records of exports, one at a time; how many there were, of which packages, and the day of the last."""

    def __init__(self, exports: list[Path]) -> None:
        self.exports, self.count, self.latest = exports, 0, ""
        self.names: set[tuple[str, str]] = set()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for path in self.exports:
            for record in records_of(path):
                self.count += 1
                self.latest = max(self.latest, str(record.get("modified", "")))
                self.names.update(_key(affected) for affected in (record.get("affected") or ()))
                yield record

    def gaps(self, packages: Iterable[Package]) -> list[str]:
        """Why nothing can be told of the packages of an ecosystem: no record is about any of them."""
        keys = {(package.ecosystem, package.name) for package in packages}
        return [
            f"the exports ({self.count:,} records) say nothing of any of our packages from {ecosystem}"
            for ecosystem in sorted({key[0] for key in keys} - {key[0] for key in keys & self.names})
        ]

    def summary(self, packages: Iterable[Package]) -> str:
        """What was looked into."""
        known = len({(package.ecosystem, package.name) for package in packages} & self.names)
        return f"{self.count:,} records about {known} of them and others, the last of {self.latest[:10] or 'no day'}"


def audit(exports: list[Path], root: Path = ROOT) -> int:
    """Look, tell, and return the exit code."""
    packages = locked(root)
    away: list[str] = []
    if exports:
        read = _Read(exports)
        found = known(packages, read)
        away, by = read.gaps(packages), read.summary(packages)
    else:
        (found, away), by = _asked(root), "the databases of PyPI and npm"
    for hole in found:
        print(f"{hole.package.name} {hole.package.version} ({hole.package.ecosystem}): {hole.id}: {hole.told}")
    for reason in away:
        print(reason, file=sys.stderr)
    if away:
        print(f"give exports of osv.dev instead: make audit ADVISORIES=FILE, from {EXPORTS}", file=sys.stderr)
    if found:
        print(
            f"{len(found)} known holes in {len(packages)} packages, by {by}; run: make lock NEWEST=1", file=sys.stderr
        )
    elif not away:
        print(f"no known hole in {len(packages)} packages, by {by}")
    return 1 if found else 2 if away else 0


if __name__ == "__main__":
    try:
        sys.exit(audit([Path(word) for word in sys.argv[1:]]))
    except UnreachableError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
