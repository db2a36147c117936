"""Names of several kinds: in tables, in the tags of sounds, and which of them a collection has."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.datasets.attribute_recognition import read_attributes, read_metadata_attributes, read_tag_attributes
from wsabie.io.datasets.item_attributes import AttributeTable
from wsabie.storage.rejects import Rejects

TABLE = """file_name,artist,album,genres,tag,split,group
a.wav,"Earth, Wind & Fire","I am, you are|Live","funk, soul",slow;quiet,train,1
./b.wav,Nina,Blue,soul,,test,2
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_are_kinds_and_commas_separate_names_in_plurals(tmp_path: Path) -> None:
    related = read_attributes(write(tmp_path / "metadata.csv", TABLE))
    assert related.ids == ["a.wav", "b.wav"]
    assert related.pairs == {
        "artist": [("a.wav", "Earth, Wind & Fire"), ("b.wav", "Nina")],
        "album": [("a.wav", "I am, you are"), ("a.wav", "Live"), ("b.wav", "Blue")],
        "genres": [("a.wav", "funk"), ("a.wav", "soul"), ("b.wav", "soul")],
        "tag": [("a.wav", "slow;quiet")],
    }
    assert related.splits == {"a.wav": "train", "b.wav": "test"}
    assert read_metadata_attributes(tmp_path, rejects=Rejects()) == related  # by its folder
    assert list(read_attributes(tmp_path, kinds=["group", "artist"]).pairs) == ["group", "artist"]


def test_separator_and_compression_make_no_difference(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.csv", "id,artist\n1,Nina\n2,Miles\n")
    tabs = tmp_path / "a.tsv.gz"
    tabs.write_bytes(gzip.compress(plain.read_bytes().replace(b",", b"\t")))
    assert read_attributes(tabs).pairs == read_attributes(plain).pairs == {"artist": [("1", "Nina"), ("2", "Miles")]}


def test_json_lines_hold_lists_numbers_and_repeated_items(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "tags": ["slow", " slow "], "year": 1969},
        {"id": "b", "tags": "piano", "year": None},
        {"id": "a", "tags": ["piano", ""]},
    ]
    related = read_attributes(write(tmp_path / "songs.jsonl", "\n".join(map(json.dumps, rows))))
    assert related.pairs == {"tags": [("a", "slow"), ("b", "piano"), ("a", "piano")], "year": [("a", "1969")]}
    assert related.ids == ["a", "b"]


def test_bad_rows_are_listed(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "file_name,artist,split\na,Nina,train\n,Nina,\n../b,Nina,\nc,N\na,Miles,test\n")
    rejects = Rejects()
    assert read_attributes(path, rejects=rejects).pairs == {"artist": [("a", "Nina")]}
    assert rejects.listed == [
        (f"{path}:5", "wrong number of cells", "2 of 3"),
        (f"{path}:3", "row without an id", ""),
        (f"{path}:4", "path that leads out of the folder", "'../b'"),
        (f"{path}:6", "row at odds with another of its file", "split test and not train"),
    ]
    with pytest.raises(InputError, match=r"without `strict`"):
        read_attributes(path, rejects=Rejects(strict=True))


@pytest.mark.parametrize(
    ("name", "content", "kinds", "message"),
    [
        ("t.csv", "artist\nNina\n", None, r"no column 'file_name' or 'id' \(it has 'artist'\)"),
        ("t.csv", "id,artist\n1,Nina\n", ["album"], "no column 'album'; it has 'artist', 'id'"),
        ("t.csv", "id,artist\n", None, "holds no rows of items"),
        ("t.csv", "id,id\n1,2\n", None, "names a column twice"),
        ("t.csv", "", None, "holds no rows of items"),
        (
            "t.jsonl",
            '{"id": 1, "year": 1.5}',
            None,
            "holds 1.5, which is not a label.*or leave the column out of kinds=",
        ),
        ("t.jsonl", '{"id": 1, "a": "x"}\n{"id": 2, "a": 3}', None, "holds the number 3 but the text 'x'"),
    ],
)
def test_invalid_tables_give_one_sentence(tmp_path: Path, name: str, content: str, kinds: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_attributes(write(tmp_path / name, content), kinds=kinds)


@given(st.binary(max_size=200), st.sampled_from(["t.csv", "t.jsonl"]))
def test_any_bytes_give_names_or_one_sentence(result_or_sentence, tmp_path_factory, content: bytes, name: str) -> None:
    path = tmp_path_factory.mktemp("t") / name
    path.write_bytes(b"id,artist\n" + content if name == "t.csv" else content)
    related = result_or_sentence(read_attributes, path)
    assert related is None or isinstance(related, AttributeTable)


def test_audio_tags_become_attributes(tmp_path: Path) -> None:
    mutagen = pytest.importorskip("mutagen", reason="mutagen reads tags")
    soundfile = pytest.importorskip("soundfile", reason="soundfile writes the sounds")
    for name, tags in {
        "a/1.flac": {"artist": ["Nina"], "album": ["Blue"], "genre": ["jazz;soul"]},
        "a/2.mp3": {"artist": ["Nina"], "title": ["Song"]},
        "3.ogg": {"title": ["no more"]},
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        soundfile.write(path, [0.0, 0.5] * 2_000, 8_000)
        file = mutagen.File(path, easy=True)
        if file.tags is None:
            file.add_tags()
        file.update(tags)
        file.save()
    (tmp_path / "4.mp3").write_bytes(b"ID3\x04\0\0\0\0\0\x7f damaged")
    rejects = Rejects()
    related = read_attributes(tmp_path, rejects=rejects)
    assert related.pairs == {
        "artist": [("a/1.flac", "Nina"), ("a/2.mp3", "Nina")],
        "album": [("a/1.flac", "Blue")],
        "genre": [("a/1.flac", "jazz"), ("a/1.flac", "soul")],
    }
    assert sorted((where, reason) for where, reason, _ in rejects.listed) == [
        ("3.ogg", "sound without labels"),
        ("4.mp3", "tags that cannot be read"),
    ]
    assert set(related.ids) <= {item.id for item in open_source(tmp_path, labels_from="none")}
    assert list(read_attributes(tmp_path, kinds=["album"]).pairs) == ["album"]
    with pytest.raises(InputError, match="no names of the kind 'mood'; choose among artist, album, genre"):
        read_attributes(tmp_path, kinds=["mood"])


def test_missing_data_give_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no sounds with tags"):
        read_attributes(tmp_path)
    with pytest.raises(InputError, match="there is no file or folder"):
        read_attributes(tmp_path / "missing")
    with pytest.raises(InputError, match=r"has no metadata\.csv or metadata\.jsonl"):
        read_metadata_attributes(tmp_path, rejects=Rejects())
    with pytest.raises(InputError, match="there is no file or folder"):
        read_tag_attributes(tmp_path / "missing", rejects=Rejects())


def test_attributes_are_filtered_by_split(tmp_path: Path) -> None:
    related = read_attributes(write(tmp_path / "metadata.csv", TABLE))
    assert related.select_side("test").ids == ["b.wav"]
    assert related.select_side("test").pairs["artist"] == [("b.wav", "Nina")]
    with pytest.raises(InputError, match="on the side 'dev' of a split; choose one of test, train"):
        related.select_side("dev")
