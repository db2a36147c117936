"""Users without a name, a home or rights, and locales that know only ASCII: a command works or says why not."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tagged_items import draw_pictures
from wsabie.io.tags.tag_writer import write_sidecar

NOBODY = 12345
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of that user: none may enter those of pytest."""
    if os.geteuid() != 0:
        pytest.skip("another user can be taken on by root alone")
    with TemporaryDirectory(prefix="wsabie-") as folder:
        os.chown(folder, NOBODY, NOBODY)
        yield Path(folder)


@pytest.fixture
def stranger(place: Path) -> Command:
    """Run `wsabie` as a user whom the system does not know."""

    def run(*words: object, **variables: str) -> "subprocess.CompletedProcess[str]":
        become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        command = [*become, sys.executable, "-m", "wsabie", *map(str, words)]
        environment = {"PATH": os.environ["PATH"], **variables}
        return subprocess.run(command, env=environment, cwd=place, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def photos(place: Path) -> Path:
    """Pictures with tags beside them that belong to that user."""
    names = ["a.jpg", "2024/b.jpg", "2024/c.jpg"]
    draw_pictures(place / "photos", names)
    for name in names:
        write_sidecar(place / "photos" / name, ["日本"])
    for path in (place / "photos", *(place / "photos").rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    return place / "photos"


def test_a_user_without_a_name_and_a_home(stranger: Command, photos: Path) -> None:
    init_run = stranger("collection", "init", photos, HOME="/nonexistent")
    assert (init_run.returncode, "3 new" in init_run.stderr) == (0, True), init_run.stderr
    history_run = stranger("collection", "history", photos, "--json")
    assert json.loads(history_run.stdout)["entries"][0]["by"] == f"uid {NOBODY}"
    assert sorted(path.name for path in photos.parent.iterdir()) == ["photos"]  # and no folder called "~"


def test_nothing_is_made_where_not_all_can_be(stranger: Command, photos: Path) -> None:
    for refused, message in [
        (("--by", "a\nb"), "cannot be in the journal"),
        (("--tags", "metadata"), "has no metadata.csv"),
        (("--rejects", "/nonexistent/rejects"), "cannot write /nonexistent/rejects"),
    ]:
        process = stranger("collection", "init", photos, *refused)
        assert (process.returncode, message in process.stderr, "Traceback" in process.stderr) == (1, True, False), (
            process.stderr
        )
        assert not (photos / ".wsabie").exists()
    os.chown(photos, 0, 0)
    process = stranger("collection", "init", photos)
    assert (process.returncode, "you may not write there" in process.stderr) == (1, True), process.stderr


def test_folders_that_may_not_be_entered_are_listed(stranger: Command, photos: Path, place: Path) -> None:
    assert stranger("collection", "init", photos).returncode == 0
    (photos / "link.jpg").symlink_to(photos / "2024/b.jpg")
    (photos / "2024").chmod(0o644)  # its names may be read
    process = stranger("collection", "scan", photos, "--json", "--rejects", place / "rejects")
    assert (process.returncode, json.loads(process.stdout)["scanned"]["missing"]) == (0, 0), process.stderr
    listed = [json.loads(line) for line in (place / "rejects").read_text().splitlines()]
    assert [(reject["where"], reject["reason"]) for reject in listed] == [
        ("2024", "folder that cannot be read"),
        ("link.jpg", "unreadable file"),
    ]


def test_a_locale_that_knows_only_ascii(tmp_path: Path) -> None:
    draw_pictures(tmp_path / "photos", ["日.jpg"])
    write_sidecar(tmp_path / "photos/日.jpg", ["日本"])
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}

    def run(*words: str, **variables: str) -> str:
        command = [sys.executable, "-m", "wsabie", "collection", *words]
        environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", ""), **variables}
        process = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stderr
        return process.stdout

    run("init", "photos", PYTHONUTF8="1")
    assert json.loads(run("scan", "photos", "--json", **ascii_only))["scanned"]["unchanged"] == 1
    assert r"\u65e5\u672c" in run("labels", "photos", **ascii_only)
