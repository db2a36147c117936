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
    """Installed package: ecosystem ("PyPI" or "npm"), name, version."""

    ecosystem: str
    name: str
    version: str


class Hole(NamedTuple):
    """A package and what is known of it."""

    package: Package
    id: str
    summary: str


class UnreachableError(Exception):
    """A database that does not answer, or an export that cannot be read."""


def locked(root: Path) -> list[Package]:
    """All that is installed from `locks/` and `web/package-lock.json`."""
    packages = {
        Package("PyPI", canonicalize_name(match[1]), match[2])
        for path in sorted((root / "locks").glob("*.txt"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if (match := _PIN.match(line))
    }
    modules = json.loads((root / "web" / "package-lock.json").read_bytes())["packages"]
    for place, module in modules.items():
        if place:
            packages.add(Package("npm", module.get("name", place.rpartition("node_modules/")[2]), module["version"]))
    return sorted(packages)


def find_holes(packages: Iterable[Package], records: Iterable[dict[str, Any]]) -> list[Hole]:
    """The packages that records of OSV (ossf.github.io/osv-schema) are about, in their versions."""
    packages_by_name: defaultdict[tuple[str, str], list[Package]] = defaultdict(list)
    for package in packages:
        packages_by_name[package.ecosystem, package.name].append(package)
    holes = {}
    for record in records:
        for affected in () if record.get("withdrawn") else (record.get("affected") or ()):
            for package in packages_by_name.get(_key(affected), ()):
                if _affects(affected, package):
                    holes[package, record["id"]] = Hole(package, record["id"], summarise_record(record))
    return sorted(holes.values())


def _key(affected: dict[str, Any]) -> tuple[str, str]:
    """Ecosystem and name of the package that a part of a record is about."""
    about = affected.get("package") or {}
    ecosystem, name = str(about.get("ecosystem", "")).partition(":")[0], str(about.get("name", ""))
    return ecosystem, canonicalize_name(name) if ecosystem == "PyPI" else name


def summarise_record(record: dict[str, Any]) -> str:
    names = ", ".join(record.get("aliases", ()))
    summary = " ".join(str(record.get("summary") or record.get("details") or "").split())[:120]
    return f"{summary} ({names})" if names else summary


def _affects(affected: dict[str, Any], package: Package) -> bool:
    if package.version in affected.get("versions", ()):
        return True
    order = _python if package.ecosystem == "PyPI" else _semver
    ranges = (
        version_range
        for version_range in affected.get("ranges", ())
        if version_range.get("type") in ("ECOSYSTEM", "SEMVER")
    )
    return any(_within(version_range.get("events", ()), order(package.version), order) for version_range in ranges)


def _within(events: Iterable[dict[str, str]], version: Any, order: Callable[[str], Any]) -> bool:
    """Return whether a version lies in a range: an event opens or closes it for all later versions."""
    inside = False
    steps = [
        (order(event_version), event_kind)
        for event in events
        for event_kind, event_version in event.items()
        if event_kind != "limit"
    ]
    for at, event_kind in sorted(steps):
        if event_kind == "introduced" and version >= at:
            inside = True
        elif (event_kind == "fixed" and version >= at) or (event_kind == "last_affected" and version > at):
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
    prerelease = () if match[4] is None else tuple((not p.isdecimal(), p.zfill(20)) for p in match[4].split("."))
    return (*number, match[4] is None, prerelease)


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
        raise UnreachableError(f"{path} is not an export of osv.dev ({error}); take {EXPORTS}") from error


def _records(content: bytes) -> Iterator[dict[str, Any]]:
    document = json.loads(content)
    for record in document if isinstance(document, list) else [document]:
        if not isinstance(record, dict) or "id" not in record:
            raise ValueError("a record without an id")
        if not all(isinstance(affected, dict) for affected in record.get("affected") or ()):
            raise ValueError(f"{record['id']} does not say what it affects")
        yield record


def asked_of_pypi(lock: Path) -> list[Hole]:
    """Return the holes that pip-audit reports for a lock; a package missing there raises an error."""
    words = ["--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json", "--requirement", str(lock)]
    report, message = _answer([sys.executable, "-m", "pip_audit", *words])
    silent = [
        dependency["name"] for dependency in (report or {}).get("dependencies", ()) if "skip_reason" in dependency
    ]
    if report is None or silent:
        why = f"it says nothing of {silent[0]}" if silent else message
        raise UnreachableError(f"the advisory database of PyPI cannot be reached ({why})")
    return [
        Hole(
            Package("PyPI", dependency["name"], dependency["version"]),
            hole["id"],
            summarise_record({**hole, "summary": hole["description"]}),
        )
        for dependency in report["dependencies"]
        for hole in dependency["vulns"]
    ]


def asked_of_npm(web: Path) -> list[Hole]:
    """Return the holes that `npm audit` reports."""
    report, message = _answer(["npm", "audit", "--json", "--prefix", str(web)])
    if report is None or "vulnerabilities" not in report:
        message = str((report or {}).get("message") or message)
        raise UnreachableError(f"the advisory database of npm cannot be reached ({message})")
    return [
        Hole(Package("npm", name, advisory["range"]), str(way.get("source", "")), str(way.get("title", "")))
        for name, advisory in report["vulnerabilities"].items()
        for way in advisory["via"]
        if isinstance(way, dict)  # else it is the name of another that is listed too
    ]


def _answer(words: list[str]) -> tuple[dict[str, Any] | None, str]:
    """The JSON that a program prints, and the last line of what it says beside."""
    try:
        process = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    lines = [line for line in process.stderr.strip().splitlines() if line.strip()]
    try:
        return json.loads(process.stdout), lines[-1][:200] if lines else ""
    except ValueError:
        return None, lines[-1][:200] if lines else f"{words[0]} ended with {process.returncode}"


def ask_services(root: Path) -> tuple[list[Hole], list[str]]:
    """Return the holes by all databases, and the reasons why some cannot be reached."""
    holes: set[Hole] = set()
    unreachable = []
    for ask, paths in ((asked_of_pypi, sorted((root / "locks").glob("*.txt"))), (asked_of_npm, [root / "web"])):
        try:
            for path in paths:
                holes.update(ask(path))
        except UnreachableError as error:
            unreachable.append(str(error))
    return sorted(holes), unreachable


class ExportReader:
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
        """Return a phrase that says which records were read."""
        n_names = len({(package.ecosystem, package.name) for package in packages} & self.names)
        return f"{self.count:,} records about {n_names} of them and others, the last of {self.latest[:10] or 'no day'}"


def audit(exports: list[Path], root: Path = ROOT) -> int:
    """Look, tell, and return the exit code."""
    packages = locked(root)
    unreachable: list[str] = []
    if exports:
        reader = ExportReader(exports)
        holes = find_holes(packages, reader)
        unreachable, by = reader.gaps(packages), reader.summary(packages)
    else:
        (holes, unreachable), by = ask_services(root), "the databases of PyPI and npm"
    for hole in holes:
        print(f"{hole.package.name} {hole.package.version} ({hole.package.ecosystem}): {hole.id}: {hole.summary}")
    for reason in unreachable:
        print(reason, file=sys.stderr)
    if unreachable:
        print(f"give exports of osv.dev instead: make audit ADVISORIES=FILE, from {EXPORTS}", file=sys.stderr)
    if holes:
        print(
            f"{len(holes)} known holes in {len(packages)} packages, by {by}; run: make lock NEWEST=1", file=sys.stderr
        )
    elif not unreachable:
        print(f"no known hole in {len(packages)} packages, by {by}")
    return 1 if holes else 2 if unreachable else 0


if __name__ == "__main__":
    try:
        sys.exit(audit([Path(word) for word in sys.argv[1:]]))
    except UnreachableError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
