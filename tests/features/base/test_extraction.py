"""Extraction to a file: complete, resumed or killed, with the same bytes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from wsabie.core.errors import InputError, UnreadableItemError
from wsabie.core.execution import ProcessExecutor
from wsabie.features.base import extraction as module
from wsabie.features.base.extraction import extract_to_file, write_shard
from wsabie.features.extractors.visual_words import VisualWords
from wsabie.features.images import image_decoder
from wsabie.io.data_sources import open_source
from wsabie.io.records import Item, ItemList
from wsabie.storage.rejects import Rejects


def read_rows(path):
    return open_source(path, rejects=Rejects(strict=True))


def are_equal(a, b):
    assert (a.X != b.X).nnz == 0
    assert a.X.shape == b.X.shape
    assert (a.Y != b.Y).nnz == 0
    assert (a.ids, a.label_names, a.groups, a.times, a.counts) == (b.ids, b.label_names, b.groups, b.times, b.counts)


def test_file_holds_the_rows(tmp_path, extractor, collection):
    assert extract_to_file(collection, extractor, tmp_path / "a.parquet", shard_pictures=7) == 24
    are_equal(read_rows(tmp_path / "a.parquet"), extractor.transform(collection))
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]
    extract_to_file(collection, extractor, tmp_path / "b.parquet", augment=1)
    are_equal(read_rows(tmp_path / "b.parquet"), extractor.transform(collection, augment=1))


def test_columns_and_notes_have_the_documented_format(tmp_path, extractor, collection):
    extract_to_file(collection, extractor, tmp_path / "a.parquet")
    schema = pq.read_schema(tmp_path / "a.parquet")
    assert [f"{field.name} {field.type}" for field in schema] == [
        "id string",
        "labels list<element: string>",
        "group string",
        "indices list<element: uint32>",
        "values list<element: float>",
    ]
    assert json.loads(schema.metadata[b"wsabie"]) == {
        "schema": 1,
        "n_features": 60,
        "counts": True,
        "extractor_fingerprint": extractor.fingerprint(),
        "augment": 0,
        "near_equality": None,
        "label_names": ["bricks", "grass", "photo", "sky"],
    }


def test_groups_and_times_are_written_only_if_present(tmp_path, extractor, collection):
    plain = [p._replace(group=None, time=f"2020-01-0{i % 9 + 1}") for i, p in enumerate(collection)]
    extract_to_file(ItemList(collection.path, plain), extractor, tmp_path / "a.parquet", shard_pictures=5)
    assert pq.read_schema(tmp_path / "a.parquet").names == ["id", "labels", "time", "indices", "values"]


def test_weighted_values_are_no_counts(tmp_path, collection):
    extractor = VisualWords(40, weighting="tfidf").fit(collection)
    extract_to_file(collection, extractor, tmp_path / "a.parquet")
    rows = read_rows(tmp_path / "a.parquet")
    assert not rows.counts
    are_equal(rows, extractor.transform(collection))


def test_picture_with_changed_permissions_is_read_again(tmp_path, extractor, collection, monkeypatch):
    """Neither size nor time of change of a file tell of its permissions."""
    locked, opened = collection.items[3].content, image_decoder.open_image_stream

    def refusing(content):
        if content == locked:
            raise UnreadableItemError("unreadable file", "Permission denied")
        return opened(content)

    with monkeypatch.context() as patch:
        patch.setattr(image_decoder, "open_image_stream", refusing)
        patch.setattr(os, "access", lambda path, mode: path != locked)
        assert extract_to_file(collection, extractor, tmp_path / "a.parquet", shard_pictures=7) == 23
    assert extract_to_file(collection, extractor, tmp_path / "a.parquet", shard_pictures=7) == 24


def test_worker_processes_write_the_same_bytes(tmp_path, extractor, spoilt):
    rejects = Rejects()
    extract_to_file(spoilt, extractor, tmp_path / "a.parquet", shard_pictures=6)
    extract_to_file(
        spoilt,
        extractor,
        tmp_path / "b.parquet",
        shard_pictures=6,
        executor=ProcessExecutor(2, local_seconds=0),
        rejects=rejects,
    )
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert [where for where, _, _ in rejects.listed] == ["words.jpg", "gone.jpg", "cut.png"]


def test_concurrent_extraction_into_one_file_is_refused(tmp_path, extractor, collection, monkeypatch):
    """Else the file would hold shards of both."""
    other_items = ItemList(collection.path, [item._replace(id=f"another {item.id}") for item in collection.items])
    write, refused = module.write_shard, []

    def meanwhile(*arguments):
        with pytest.raises(InputError, match=r"another command is changing .*a\.parquet\.parts") as error:
            extract_to_file(other_items, extractor, tmp_path / "a.parquet", shard_pictures=7)
        refused.append(error)
        write(*arguments)

    monkeypatch.setattr(module, "write_shard", meanwhile)
    extract_to_file(collection, extractor, tmp_path / "a.parquet", shard_pictures=7)
    assert read_rows(tmp_path / "a.parquet").ids == [item.id for item in collection.items]
    assert len(refused) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


class StopHereError(Exception):
    pass


class Breaking(ItemList):
    """Fails after some pictures have been read for describing (the first reading makes the plan)."""

    readings = 0
    last_place = 0

    def __iter__(self):
        type(self).readings += 1
        for place, picture in enumerate(self.items):
            if self.readings % 2 == 0 and place == self.last_place:
                raise StopHereError
            yield picture


def interrupt(source, last_place):
    kind = type("Once", (Breaking,), {"readings": 0, "last_place": last_place})
    return kind(source.path, source.items)


def test_interrupted_extraction_resumes(tmp_path, extractor, spoilt, monkeypatch):
    complete, out = tmp_path / "whole.parquet", tmp_path / "a.parquet"
    extract_to_file(spoilt, extractor, complete, shard_pictures=4)
    for last_place in (1, 10, 19):
        with pytest.raises(StopHereError):
            extract_to_file(interrupt(spoilt, last_place), extractor, out, shard_pictures=4)
        assert not out.exists()
        assert out.with_name("a.parquet.parts").exists() == (last_place > 1)  # nothing is kept of the first
    shard_times = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "a.parquet.parts").iterdir()}
    assert sorted(shard_times) == [f"{n:08d}.parquet" for n in range(len(shard_times))]
    assert len(shard_times) >= 3
    written = []
    monkeypatch.setattr(
        module, "write_shard", lambda path, *arguments: written.append(path.name) or write_shard(path, *arguments)
    )
    rejects = Rejects()
    assert extract_to_file(spoilt, extractor, out, shard_pictures=4, rejects=rejects) == 24
    assert not set(written) & set(shard_times)
    assert out.read_bytes() == complete.read_bytes()
    assert sorted(where for where, _, _ in rejects.listed) == ["cut.png", "gone.jpg", "words.jpg"]


def test_finished_file_is_not_rewritten(tmp_path, extractor, spoilt, monkeypatch):
    out = tmp_path / "a.parquet"
    extract_to_file(spoilt, extractor, out)
    stamp = out.stat().st_mtime_ns
    (tmp_path / "a.parquet.parts").mkdir()  # killed between the last rename and the tidying
    (tmp_path / "a.parquet.parts" / "00000000.parquet").write_bytes(b"x")
    monkeypatch.setattr(module, "write_shard", None)
    rejects = Rejects()
    assert extract_to_file(spoilt, extractor, out, rejects=rejects) == 24
    assert out.stat().st_mtime_ns == stamp
    assert len(rejects) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize(
    "change", ["labels", "content", "extractor_fingerprint", "augment", "again", "shards", "damage"]
)
def test_changed_inputs_are_extracted_again(tmp_path, collection, extractor, change):
    pictures = [p._replace(content=p.content.read_bytes()) for p in collection]
    out, options = tmp_path / "a.parquet", {"shard_pictures": 8}
    with pytest.raises(StopHereError):
        extract_to_file(interrupt(ItemList(collection.path, pictures), 20), extractor, out, **options)
    first = tmp_path / "a.parquet.parts" / "00000000.parquet"
    stamp = first.stat().st_mtime_ns
    if change == "labels":
        pictures[1] = pictures[1]._replace(labels=("other",))
    elif change == "content":
        pictures[1] = pictures[1]._replace(content=pictures[2].content)
    elif change == "extractor_fingerprint":
        extractor = VisualWords(60, seed=1).fit(collection)
    elif change == "augment":
        options["augment"] = 1
    elif change == "again":
        options["resume"] = False
    elif change == "shards":
        options["shard_pictures"] = 6
    else:
        first.write_bytes(first.read_bytes()[:-9])
    source = ItemList(collection.path, pictures)
    extract_to_file(source, extractor, out, **options)
    are_equal(read_rows(out), extractor.transform(source, augment=options.get("augment", 0)))
    assert out.stat().st_mtime_ns > stamp


def test_swapped_file_of_equal_size_is_extracted_again(tmp_path, collection, extractor):
    for number, picture in enumerate(collection.items[:3]):
        with Image.open(picture.content) as image:
            image.resize((48, 48)).save(tmp_path / f"{number}.bmp")
    replaced, same_size = tmp_path / "0.bmp", tmp_path / "2.bmp"
    source = ItemList(tmp_path, [Item(str(n), tmp_path / f"{n}.bmp", ("a",)) for n in range(2)])
    out = tmp_path / "a.parquet"
    extract_to_file(source, extractor, out)
    old_rows, stamp = read_rows(out), replaced.stat()
    replaced.write_bytes(same_size.read_bytes())
    assert replaced.stat().st_size == stamp.st_size
    os.utime(replaced, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1_000_000))
    extract_to_file(source, extractor, out)
    are_equal(read_rows(out), extractor.transform(source))
    assert (read_rows(out).X[0] != old_rows.X[0]).nnz


def test_grown_source_keeps_its_complete_shards(tmp_path, collection, extractor, monkeypatch):
    out = tmp_path / "a.parquet"
    with pytest.raises(StopHereError):
        extract_to_file(interrupt(collection, 20), extractor, out, shard_pictures=8)
    more = ItemList(collection.path, [*collection, Item("new", collection.items[0].content, ("sky",))])
    written = []
    monkeypatch.setattr(
        module, "write_shard", lambda path, *arguments: written.append(path.name) or write_shard(path, *arguments)
    )
    assert extract_to_file(more, extractor, out, shard_pictures=8) == 25
    assert written == ["00000002.parquet", "00000003.parquet"]


def test_unwritable_output_is_refused(tmp_path, extractor, collection):
    with pytest.raises(InputError, match="is a folder; give the name of a file"):
        extract_to_file(collection, extractor, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        extract_to_file(collection, extractor, tmp_path / "file" / "a.parquet")
    with pytest.raises(InputError, match="shard_pictures is 0"):
        extract_to_file(collection, extractor, tmp_path / "a.parquet", shard_pictures=0)


def test_source_without_readable_items_is_refused(tmp_path, extractor):
    with pytest.raises(InputError, match="none of the pictures of here can be read"):
        extract_to_file(ItemList(Path("here"), [Item("a", b"x", ())]), extractor, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="here holds no pictures"):
        extract_to_file(ItemList(Path("here"), []), extractor, tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


def test_full_disk_keeps_finished_shards(tmp_path, extractor, collection, monkeypatch):
    import errno

    out = tmp_path / "a.parquet"

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pyarrow.parquet.ParquetWriter", full)
        with pytest.raises(InputError, match="the disk is full"):
            extract_to_file(collection, extractor, out, shard_pictures=8)
    assert len(list((tmp_path / "a.parquet.parts").glob("0*.parquet"))) == 3
    assert extract_to_file(collection, extractor, out, shard_pictures=8) == 24


def test_file_is_synced_before_shards_are_removed(tmp_path, extractor, collection, monkeypatch):
    """A power cut right after must not lose both."""
    calls: list[object] = []
    flush = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: calls.append(os.fstat(handle).st_ino) or flush(handle))
    monkeypatch.setattr(module.shutil, "rmtree", lambda folder, **options: calls.append(folder))
    out = tmp_path / "a.parquet"
    extract_to_file(collection, extractor, out)
    assert calls[-3:] == [out.stat().st_ino, tmp_path.stat().st_ino, tmp_path / "a.parquet.parts"]


KILLED = """
import sys, time
from pathlib import Path
from wsabie.features.base.extraction import extract_to_file
from wsabie.features.extractors.visual_words import VisualWords
from wsabie.io.records import Item, ItemList

class Slow(ItemList):
    def __iter__(self):
        for picture in self.items:
            time.sleep(0.003)
            yield picture

folder, extractor, out = map(Path, sys.argv[1:])
pictures = [Item(p.name, p, (p.name.split("-")[0],)) for p in sorted(folder.iterdir())] * 4
pictures = [p._replace(id=f"{i} {p.id}") for i, p in enumerate(pictures)]
print(extract_to_file(Slow(folder, pictures), VisualWords.load(extractor), out, shard_pictures=8))
"""


def start_extraction(*arguments):
    command = [sys.executable, "-c", KILLED, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_repeatedly_killed_extraction_loses_no_row(tmp_path, extractor, collection):
    extractor.save(tmp_path / "extractor")
    shutil.copytree(collection.path, tmp_path / "pictures", copy_function=shutil.copy2)
    complete, out = tmp_path / "whole.parquet", tmp_path / "a.parquet"
    assert start_extraction(tmp_path / "pictures", tmp_path / "extractor", complete).communicate()[0] == "96\n"
    shards: set[tuple[str, int]] = set()
    for n_shards in (1, 4):
        process = start_extraction(tmp_path / "pictures", tmp_path / "extractor", out)
        until = time.monotonic() + 60
        while len(finished(tmp_path)) < n_shards and process.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.communicate()
        now = finished(tmp_path)
        assert shards <= now  # nothing that was finished is written again
        shards = now
        assert not out.exists()
    assert len(shards) >= 4
    out_text, error = start_extraction(tmp_path / "pictures", tmp_path / "extractor", out).communicate()
    assert out_text == "96\n", error
    assert out.read_bytes() == complete.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.parquet", "extractor", "pictures", "whole.parquet"]
    assert np.array_equal(read_rows(out).X[0].toarray(), read_rows(out).X[24].toarray())


def finished(folder):
    parts = folder / "a.parquet.parts"
    return {(p.name, p.stat().st_mtime_ns) for p in parts.glob("0*.parquet")} if parts.is_dir() else set()


def test_names_with_invalid_characters_are_escaped(tmp_path, extractor, collection):
    content = collection.items[0].content
    source = ItemList(tmp_path, [Item("a\udcff", content, (" sky ", "sky", "")), Item("b", content, ("\udc80",))])
    rejects = Rejects()
    assert extract_to_file(source, extractor, tmp_path / "a.parquet", rejects=rejects) == 1
    rows = read_rows(tmp_path / "a.parquet")
    assert (rows.ids, rows.label_names) == (["a\\udcff"], ["sky"])
    assert rejects.listed == [("b", "label that is not valid text", "('\\udc80',)")]
    are_equal(extractor.transform(source), rows)


def test_shard_with_a_flipped_bit_is_named(tmp_path, extractor, collection, monkeypatch):
    out = tmp_path / "a.parquet"
    with pytest.raises(StopHereError):
        extract_to_file(interrupt(collection, 20), extractor, out, shard_pictures=8)
    first = tmp_path / "a.parquet.parts" / "00000000.parquet"
    content = bytearray(first.read_bytes())
    content[60] ^= 1
    first.write_bytes(content)
    with pytest.raises(InputError, match=r"00000000\.parquet is damaged; remove .*a\.parquet\.parts and run"):
        extract_to_file(collection, extractor, out, shard_pictures=8)
