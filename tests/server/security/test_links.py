"""Links and pipes in place of files."""

import os
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import draw_picture

from wsabie.collection.folder.collection import open_collection
from wsabie.collection.items.item_files import find_item_file, open_item_file
from wsabie.collection.scan.scanner import scan_collection
from wsabie.core.errors import InputError


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "private.png").write_bytes(draw_picture("red", 19))
    return place


def assert_refused_everywhere(api: TestClient, item: int) -> None:
    for view in ("file", "thumbnail", "thumbnail?size=1024", "heat?label=red", "annotate?region=0,0,9,9"):
        refused = api.get(f"/api/v1/items/{item}/{view}")
        assert refused.status_code == 422, view
        assert "leads out of" in refused.json()["detail"]


def test_link_made_after_the_scan_is_not_followed(api: TestClient, folder: Path, outside: Path) -> None:
    first, second = api.get("/api/v1/items?k=2").json()["items"]
    api.get(f"/api/v1/items/{second['id']}/thumbnail")  # which is kept, and not shown any more
    for item in (first, second):
        (folder / item["path"]).unlink()
        (folder / item["path"]).symlink_to(outside / "private.png")
        assert_refused_everywhere(api, item["id"])


def test_folder_replaced_by_a_link_is_not_followed(api: TestClient, folder: Path, outside: Path) -> None:
    item = api.get("/api/v1/items?k=1").json()["items"][0]
    place = item["path"].rpartition("/")[0]
    shutil.move(folder / place, outside / "moved")
    (folder / place).symlink_to(outside / "moved")
    assert (folder / item["path"]).is_file()
    assert_refused_everywhere(api, item["id"])


def test_scan_skips_links_that_lead_outside(folder: Path, outside: Path) -> None:
    (folder / "one.png").symlink_to(outside / "private.png")
    (folder / "all").symlink_to(outside)
    (folder / "up").symlink_to("..")
    (folder / "loop.png").symlink_to("loop.png")
    with open_collection(folder) as collection:
        assert scan_collection(collection, by="eve").new == 0


def test_file_swapped_for_a_link_during_opening_is_refused(
    folder: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at its path and the opening of it; in the second case and back again."""
    with open_collection(folder) as collection:
        item_file, back = find_item_file(collection, 1), False
        content, real_open = item_file.path.read_bytes(), os.open

        def swapped(path: Path, flags: int) -> int:
            path.unlink()
            path.symlink_to(outside / "private.png")
            handle = real_open(path, flags)
            if back:
                path.unlink()
                path.write_bytes(content)
            return handle

        for turn in (False, True):
            back = turn
            monkeypatch.setattr("wsabie.collection.items.item_files.os.open", swapped)
            with pytest.raises(InputError, match="leads out of"):
                open_item_file(item_file)
            monkeypatch.undo()
            item_file.path.unlink()
            item_file.path.write_bytes(content)
        with open_item_file(item_file) as stream:
            item_file.path.unlink()
            assert stream.read() == content


def test_pipe_in_place_of_a_file_is_refused(api: TestClient, folder: Path) -> None:
    item = api.get("/api/v1/items?k=1").json()["items"][0]
    (folder / item["path"]).unlink()
    os.mkfifo(folder / item["path"])
    for view in ("file", "thumbnail", "heat?label=red"):
        assert api.get(f"/api/v1/items/{item['id']}/{view}").status_code == 422


def test_served_files_are_closed(api: TestClient) -> None:
    def open_files() -> list[str]:
        targets = [entry.readlink() for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
        return [str(path) for path in targets if path.suffix in (".png", ".webp")]

    for ask in ("file", "thumbnail", "heat?label=red", "file", "annotate?region=0,0,9,9"):
        assert api.get(f"/api/v1/items/1/{ask}").status_code in (200, 422), ask  # colours have no heat map
    part = api.get("/api/v1/items/1/file", headers={"range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"\x89PNG")
    assert open_files() == []
