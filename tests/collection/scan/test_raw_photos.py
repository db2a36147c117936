"""A scan reads RAW photos, and reads them again when the package is there."""

import sys

import pytest
from PIL import Image
from tests.collection.scan.conftest import read_rows, run_scan
from tests.raw_files import make_dng

from wsabie.collection.folder.collection import Collection


def test_raw_photo_becomes_readable_with_the_package(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rawpy")
    (collection.folder / "1.dng").write_bytes(make_dng(Image.new("RGB", (64, 48))))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "rawpy", None)
        assert run_scan(collection).unreadable == 1
    assert run_scan(collection).unreadable == 0
    assert read_rows(collection)["1.dng"][1] == "present"
