"""Thumbnails: upright, small, kept by content, and what they refuse."""

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from sqlalchemy import select

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection
from wsabie.collection.items.thumbnails import SIZES, get_thumbnail_path, make_thumbnail
from wsabie.collection.scan.scanner import scan_collection
from wsabie.core.errors import InputError
from wsabie.samples import get_sample_path
from wsabie.storage.rejects import Rejects


def read_item_ids(collection: Collection) -> dict[str, int]:
    scan_collection(collection, by="eve")
    with begin_read(collection.engine) as connection:
        return {path: n for path, n in connection.execute(select(tables.items.c.path, tables.items.c.id))}  # noqa: C416


@pytest.mark.parametrize("size", SIZES)
def test_thumbnail_is_small_upright_and_made_once(collection: Collection, size: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # lies on its left side
    picture = Image.new("RGB", (2000, 1000), (250, 0, 0))
    picture.paste((0, 0, 250), (1000, 0, 2000, 1000))
    picture.save(collection.folder / "a.jpg", exif=exif)
    shutil.copy(collection.folder / "a.jpg", collection.folder / "copy.jpg")
    item_ids = read_item_ids(collection)
    path = make_thumbnail(collection, item_ids["a.jpg"], size)
    with Image.open(path) as small:
        assert (small.format, small.size) == ("WEBP", (size // 2, size))
        top, bottom = (small.convert("RGB").getpixel((size // 4, y)) for y in (size // 8, size - size // 8))
    assert isinstance(top, tuple)
    assert isinstance(bottom, tuple)
    assert top[0] > 200 > bottom[0]
    modified_at = path.stat().st_mtime_ns
    assert make_thumbnail(collection, item_ids["copy.jpg"], size) == path  # of one content there is one
    assert path.stat().st_mtime_ns == modified_at
    assert path.parent.parent == collection.thumbnails
    assert path.name.startswith(path.parent.name)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_every_sample_picture_has_a_thumbnail(collection: Collection) -> None:
    content = pq.read_table(get_sample_path("emoji"), columns=["image"]).column("image").to_pylist()[::100]
    for number, picture in enumerate(content):
        (collection.folder / f"{number}.webp").write_bytes(picture)
    for item in read_item_ids(collection).values():
        with Image.open(make_thumbnail(collection, item)) as small:
            small.load()


def test_unreadable_pictures_are_refused(collection: Collection) -> None:
    folder: Path = collection.folder
    noise = np.random.default_rng(0).integers(256, size=(64, 64), dtype=np.uint8)  # by chance the damage of some passes
    Image.fromarray(noise).save(folder / "a.png")
    content = (folder / "a.png").read_bytes()
    middle = len(content) // 2
    (folder / "broken.png").write_bytes(content[:middle] + bytes(200) + content[middle + 200 :])  # its header is good
    (folder / "words.png").write_text("words")
    (folder / "empty.png").write_bytes(b"")
    item_ids = read_item_ids(collection)
    for name, message in [
        ("broken.png", "cannot be shown: .*broken.png: damaged picture"),
        ("words.png", "words.png: not a picture"),
        ("empty.png", "cannot be read; repair it"),
    ]:
        with pytest.raises(InputError, match=message):
            make_thumbnail(collection, item_ids[name])
    for item in (99, -1, 2**70):
        with pytest.raises(InputError, match="there is no item with id"):
            make_thumbnail(collection, item)
    for size in (0, 255, 10**9):
        with pytest.raises(InputError, match="256 or 1024 pixels"):
            make_thumbnail(collection, item_ids["a.png"], size)
    make_thumbnail(collection, item_ids["a.png"])
    (folder / "a.png").touch()
    (folder / "a.png").unlink()
    make_thumbnail(collection, item_ids["a.png"])  # it is there
    with pytest.raises(InputError, match="unreadable file"):
        make_thumbnail(collection, item_ids["a.png"], 1024)
    Image.new("RGB", (9, 9)).save(folder / "a.png")  # no thumbnail of this may get the name of the other
    with pytest.raises(InputError, match=r"changed since it was scanned; run: `collection.scan"):
        make_thumbnail(collection, item_ids["a.png"], 1024)
    assert not list(collection.thumbnails.glob("*/*.tmp"))
    assert get_thumbnail_path(collection, "abcd", 256).name == "abcd-256.webp"


def test_paths_that_are_no_files_are_refused(collection: Collection) -> None:
    missing_names = ("loop.png", "gone.png", "pipe.png")
    for name in ("there.png", *missing_names):
        Image.new("RGB", (8, 8)).save(collection.folder / name)
    item_ids = read_item_ids(collection)
    for name in missing_names:
        (collection.folder / name).unlink()
    (collection.folder / "loop.png").symlink_to("loop.png")
    os.mkfifo(collection.folder / "pipe.png")
    for name, message in [
        ("loop.png", "Too many levels of symbolic links"),
        ("gone.png", "No such file"),
        ("pipe.png", "is no longer a file"),
    ]:
        with pytest.raises(InputError, match=message):
            make_thumbnail(collection, item_ids[name])
    rejects = Rejects()
    assert scan_collection(collection, by="eve", rejects=rejects).missing == 3
    assert rejects.counts == {"link that leads to itself": 1, "not a regular file": 1}
