"""A small disk that can be filled."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mount_disk(place: Path) -> Iterator[bool]:
    """Mount 16 MB of memory as a disk on a folder; False where that is not allowed, which wants root."""
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(place)]
    allowed = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield allowed
    finally:
        if allowed:
            subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """16 MB of memory as a disk of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    with mount_disk(place) as allowed:
        if not allowed:
            pytest.skip("no file system can be mounted here: that wants root")
        yield place


def fill(disk: Path, free_bytes: int = 0) -> Path:
    """Take all of the space but so many bytes."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(1 << 12)):
                pass
        except OSError:
            pass
        file.truncate(max(0, file.tell() - free_bytes))
    return filler
