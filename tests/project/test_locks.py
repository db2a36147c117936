"""Locked builds and tests: every version is pinned, every content is known, known holes are found."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("developer", "package", "tools", "node")
_ENTRY = re.compile(r"([a-z0-9.-]+)==(\S+)(?: ; [^\\]+)? \\")
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")

# Both are in the databases: GHSA-8r7q-cvjq-x353 is CVE-2014-1402, GHSA-35jh-r3h4-6jhm is CVE-2021-23337.
OF_JINJA = {
    "id": "GHSA-8r7q-cvjq-x353",
    "modified": "2024-09-24T20:49:16Z",
    "aliases": ["CVE-2014-1402"],
    "summary": "Incorrect Privilege Assignment in Jinja2",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "Jinja2"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.7.2"}]}],
        }
    ],
}
OF_LODASH = {
    "id": "GHSA-35jh-r3h4-6jhm",
    "aliases": ["CVE-2021-23337"],
    "summary": "Command Injection in lodash",
    "affected": [
        {
            "package": {"ecosystem": "npm", "name": "lodash"},
            "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "4.17.21"}]}],
        }
    ],
}


def lines_of(lock: str) -> list[str]:
    return (ROOT / "locks" / f"{lock}.txt").read_text(encoding="utf-8").splitlines()


def versions(lock: str) -> dict[str, str]:
    return {match[1]: match[2] for line in lines_of(lock) if (match := _ENTRY.fullmatch(line))}


@pytest.mark.parametrize("lock", LOCKS)
def test_everything_that_is_installed_has_a_version_and_hashes(lock: str) -> None:
    kinds = {"entry": 0, "hash": 0}
    last = ""
    for line in lines_of(lock):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        kind = "hash" if _HASH.match(text) else "entry" if _ENTRY.fullmatch(text) else ""
        assert kind, f"neither a version nor a hash: {line}"  # nor an option, an index or an address
        assert (kind == "hash") or last in ("", "hash"), f"no hash above {line}"
        kinds[kind] += 1
        last = kind
    assert last == "hash"
    assert kinds["entry"] == len(versions(lock)) > 0


def test_locks_fit_what_the_project_asks_for() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, build = pyproject["project"], pyproject["build-system"]["requires"]
    extras = project["optional-dependencies"]
    weights = tomllib.loads((ROOT / "weights" / "pyproject.toml").read_text(encoding="utf-8"))
    build += weights["build-system"]["requires"]
    photos = [requirement for requirement in extras["photos"] if not requirement.startswith("wsabie-lite0")]
    assert len(photos) == len(extras["photos"]) - 1  # weights/ itself, which is installed from the folder
    for lock, requirements in (
        ("package", [*project["dependencies"], *build, *photos]),
        ("developer", [*project["dependencies"], *build, *photos, *extras["dev"], *extras["docs"]]),
    ):
        locked_versions = versions(lock)
        for requirement in map(Requirement, requirements):
            version = locked_versions.get(canonicalize_name(requirement.name), "none")
            assert version in requirement.specifier, f"{lock}: {requirement} is {version}; run: make lock"
    developer = versions("developer")
    for lock in ("package", "tools"):  # they go into one environment
        assert {name: v for name, v in versions(lock).items() if developer.get(name, v) != v} == {}


def test_modules_of_the_pages_have_hashes_and_no_address() -> None:
    modules = json.loads((ROOT / "web" / "package-lock.json").read_bytes())["packages"]
    package = json.loads((ROOT / "web" / "package.json").read_bytes())
    for name, version in {**package["dependencies"], **package["devDependencies"]}.items():
        assert modules[f"node_modules/{name}"]["version"] == version
    for place, module in modules.items():
        if place:
            assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", module["integrity"]), place
            assert module.get("resolved", "https://registry.npmjs.org/").startswith("https://registry.npmjs.org/"), (
                place
            )
    assert "ignore-scripts=true" in (ROOT / "web" / ".npmrc").read_text().splitlines()


def test_nothing_is_installed_beside_the_locks() -> None:
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert rules.count("pip install") == 1
    installed = re.findall(r"\$\((LOCKED|INSTALL)\) ([^;\n]+)", rules)
    unlocked = [arguments for variable, arguments in installed if variable == "INSTALL"]
    assert unlocked == ["--require-hashes --requirement", "--no-build-isolation ./weights --editable ."]
    assert {arguments for variable, arguments in installed if variable == "LOCKED"} == {
        f"locks/{lock}.txt" for lock in LOCKS
    }


# ---- the audit


def audited(root: Path, *exports: Path) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'scripts')!r}); from pathlib import Path; import audit; " + (
        f"sys.exit(audit.audit([Path(p) for p in {[str(p) for p in exports]!r}], Path({str(root)!r})))"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A project with a version of Jinja2 and one of lodash that have holes."""
    (tmp_path / "locks").mkdir()
    (tmp_path / "web").mkdir()
    (tmp_path / "locks" / "package.txt").write_text("jinja2==2.7.1 \\\n    --hash=sha256:00\nnumpy==2.4.6 \\\n")
    modules = {"": {}, "node_modules/a/node_modules/lodash": {"version": "4.17.20"}}
    (tmp_path / "web" / "package-lock.json").write_text(json.dumps({"packages": modules}))
    return tmp_path


def export(path: Path, *records: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for record in records:
            archive.writestr(f"{record['id']}.json", json.dumps(record))
    return path


def test_old_versions_are_found_in_an_export(old: Path) -> None:
    process = audited(old, export(old / "all.zip", OF_JINJA, OF_LODASH))
    assert process.returncode == 1
    assert process.stdout.splitlines() == [
        "jinja2 2.7.1 (PyPI): GHSA-8r7q-cvjq-x353: Incorrect Privilege Assignment in Jinja2 (CVE-2014-1402)",
        "lodash 4.17.20 (npm): GHSA-35jh-r3h4-6jhm: Command Injection in lodash (CVE-2021-23337)",
    ]
    assert "2 known holes in 3 packages, by 2 records about 2 of them and others, the last of 2024-09" in process.stderr


@pytest.mark.parametrize(
    ("version", "change", "hit"),
    [
        ("2.7.2", {}, False),
        ("2.7.2rc1", {}, True),
        ("2.10", {}, False),
        ("2.7.1", {"withdrawn": "2025-01-01T00:00:00Z"}, False),
        ("3.0", {"affected": [{**OF_JINJA["affected"][0], "versions": ["3.0"]}]}, True),  # type: ignore[index]
        (
            "2.9",
            {
                "affected": [
                    {
                        "package": {"ecosystem": "PyPI", "name": "jinja2"},
                        "ranges": [
                            {
                                "type": "ECOSYSTEM",
                                "events": [
                                    {"introduced": "2.8"},
                                    {"last_affected": "2.9"},
                                    {"introduced": "0"},
                                    {"fixed": "1"},
                                ],
                            }
                        ],
                    }
                ]
            },
            True,
        ),
    ],
)
def test_which_versions_a_record_is_about(old: Path, version: str, change: dict[str, Any], hit: bool) -> None:
    (old / "locks" / "package.txt").write_text(f"jinja2=={version} \\\n")
    record = old / "one.json"
    record.write_text(json.dumps({**OF_JINJA, **change}))
    process = audited(old, record)
    assert (process.returncode == 1) == hit, process.stdout + process.stderr


def test_an_export_that_is_none_is_told(old: Path) -> None:
    for name, content in (
        ("all.zip", b"PK"),
        ("one.json", b"{}"),
        ("one.json", b"["),
        ("one.json", b'{"id": "a", "affected": [1]}'),
        ("none.json", None),
    ):
        path = old / name
        if content is not None:
            path.write_bytes(content)
        process = subprocess.run(
            [sys.executable, ROOT / "scripts" / "audit.py", path], capture_output=True, text=True, check=False
        )
        assert process.returncode == 2
        assert "is not an export of osv.dev" in process.stderr
        assert "Traceback" not in process.stderr


@pytest.mark.parametrize("records", [(), (OF_JINJA,), (OF_LODASH,), ({"id": "a", "affected": []},)])
def test_an_export_that_says_nothing_of_an_ecosystem_is_no_answer(
    old: Path, records: tuple[dict[str, Any], ...]
) -> None:
    (old / "locks" / "package.txt").write_text("jinja2==99 \\\n")
    modules = {"": {}, "node_modules/lodash": {"version": "99.0.0"}}
    (old / "web" / "package-lock.json").write_text(json.dumps({"packages": modules}))
    (old / "folder").mkdir()
    (old / "list.json").write_text(json.dumps(records))
    for place in (export(old / "all.zip", *records), old / "list.json", *([] if records else [old / "folder"])):
        process = audited(old, place)
        assert (process.returncode, process.stdout) == (2, ""), place
        assert "say nothing of any of our packages from" in process.stderr
    assert audited(old, export(old / "all.zip", OF_JINJA, OF_LODASH)).returncode == 0


def test_databases_that_do_not_answer_are_told_and_not_taken_for_a_yes(old: Path) -> None:
    """In a place without programs and without a network."""
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'scripts')!r}); from pathlib import Path; import audit; "
    code += f"sys.executable = '/nothing/python'; sys.exit(audit.audit([], Path({str(old)!r})))"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PATH": ""}, check=False
    )
    assert process.returncode == 2, process.stderr
    for name in ("PyPI", "npm"):
        assert f"the advisory database of {name} cannot be reached" in process.stderr
    assert "make audit ADVISORIES=FILE" in process.stderr
    assert process.stdout == ""


def test_what_is_locked_now_has_none_of_these(tmp_path: Path) -> None:
    of_react = json.loads(json.dumps(OF_LODASH).replace('"lodash"', '"react"'))
    process = audited(ROOT, export(tmp_path / "all.zip", OF_JINJA, of_react))
    assert process.returncode == 0, process.stdout
    assert re.match(r"no known hole in \d{3} packages, by 2 records about 2 of them", process.stdout)
